"""`ostler acp`: an agent for editors, on standard streams."""

from ostler.cli.arguments import Parser, add_backend, add_limit_options, add_model, add_permission_options, run_options


def main(arguments: list[str]) -> int:
    """Parse, then serve until the input ends."""
    parser = Parser("ostler acp", description="Be an ACP agent: an editor starts this and speaks on its streams.")
    parser.add_argument("--agent", metavar="NAME", default="", help="who works: build, plan, or one of yours")
    parser.add_argument(
        "--own-shell", action="store_true", help="run commands here, in the sandbox, not in the editor's terminals"
    )
    parser.set_defaults(cwd=".")
    add_backend(parser)
    add_model(parser)
    add_permission_options(parser)
    add_limit_options(parser)
    given = parser.parse_args(arguments)

    from ostler.app.acp_agent import AcpAgentServer

    return AcpAgentServer(run_options(given), given.own_shell).run()
