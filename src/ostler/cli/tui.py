"""`ostler tui`: starts the full-screen client."""

from ostler.cli.arguments import Parser, add_backend, add_model, add_session_options, fill, run_options

EPILOG = "F1 shows the keys, F2 the commands; F10 exits."


def main(arguments: list[str]) -> int:
    """Parse the arguments and run the full-screen client until the user exits."""
    parser = Parser("ostler tui", description="Start the full-screen client in this workspace.", epilog=EPILOG)
    add_session_options(parser)
    add_backend(parser)
    add_model(parser)
    parser.add_argument(
        "--worktree",
        metavar="NAME",
        nargs="?",
        const="",
        help="work in a new git worktree of the workspace, on a branch of its own",
    )
    parser.add_argument(
        "--slow", action="store_true", help="for slow connections: fewer frames, nothing moves by itself"
    )
    parser.add_argument(
        "--leave-transcript", action="store_true", help="on exit, print the conversation to the terminal"
    )
    args = parser.parse_args(arguments)
    if args.worktree is not None and args.resume:
        parser.error("a new worktree has no session to resume; remove --worktree or --resume")

    from ostler.app.tui import FullScreenClient

    return fill(FullScreenClient, args, options=run_options(args)).run()
