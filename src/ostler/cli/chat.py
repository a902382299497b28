"""`ostler chat`: starts an interactive session in the terminal; also the default in a terminal."""

from ostler.cli.arguments import Parser, add_backend, add_model, add_session_options, run_options

EPILOG = "At the prompt: /help lists the commands, !command runs a shell command, @path attaches a file, Ctrl-D exits."


def main(arguments: list[str]) -> int:
    """Parse the arguments and run the line client until the user exits."""
    return _run(arguments, is_default=False)


def default(arguments: list[str]) -> int:
    """Run the client that the settings choose (`ui.frontend`)."""
    return _run(arguments, is_default=True)


def add_chat_options(parser: Parser) -> None:
    """Add the options of a chat, without those of its model."""
    parser.add_argument("--plain", action="store_true", help="print plain lines only, with numbered menus")
    add_session_options(parser)


def _run(arguments: list[str], *, is_default: bool) -> int:
    parser = Parser("ostler chat", description="Start an interactive session in this workspace.", epilog=EPILOG)
    add_chat_options(parser)
    add_backend(parser)
    add_model(parser)
    args = parser.parse_args(arguments)

    from ostler.app.chat import ChatClient

    return ChatClient(run_options(args), args.resume or "", args.plain, is_default).run()
