"""`ostler acp agent`: serves Ostler as an ACP agent on stdin and stdout."""

from ostler.cli.arguments import Parser, add_access_options, add_agent, add_backend, add_model, run_options


def main(arguments: list[str]) -> int:
    """Parse the arguments and serve until the input ends."""
    parser = Parser("ostler acp", description="Serve Ostler as an ACP agent on stdin and stdout, for an editor.")
    add_agent(parser)
    parser.add_argument(
        "--own-shell", action="store_true", help="run commands in Ostler's sandbox, not in the editor's terminals"
    )
    parser.set_defaults(cwd=".")
    add_backend(parser)
    add_model(parser)
    add_access_options(parser)
    args = parser.parse_args(arguments)

    from ostler.app.acp_agent import AcpAgentServer

    return AcpAgentServer(run_options(args), args.own_shell).run()
