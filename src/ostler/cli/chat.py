"""`ostler chat`, and `ostler` alone in a terminal: a prompt on the workspace."""

from ostler.cli.arguments import (
    Parser,
    add_backend,
    add_limit_options,
    add_model,
    add_permission_options,
    add_resume_options,
    add_workspace,
    run_options,
)

EPILOG = "In the prompt: /help lists the commands, !command runs one, @path attaches a file, Ctrl-D leaves."


def main(arguments: list[str]) -> int:
    """Parse, then talk until the person leaves."""
    parser = Parser("ostler chat", description="Work on this folder at a prompt.", epilog=EPILOG)
    parser.add_argument("--plain", action="store_true", help="plain lines only: nothing moves, menus have numbers")
    add_resume_options(parser)
    add_workspace(parser)
    add_backend(parser)
    add_model(parser)
    add_permission_options(parser)
    add_limit_options(parser)
    given = parser.parse_args(arguments)

    from ostler.app.chat import ChatClient

    return ChatClient(run_options(given), given.resume or "", given.plain).run()
