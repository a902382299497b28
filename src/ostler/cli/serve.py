"""`ostler serve`: runs the server, or prints the JSON Schema of its protocol."""

import json
import sys

from ostler.cli.arguments import Parser, add_limit_options, add_model, add_workspace, run_options

DESCRIPTION = """Run the agent loop for clients that run the tools on their own machine. `ostler serve schema` prints
the JSON Schema of the messages, which docs/server-protocol.md describes."""


def main(arguments: list[str]) -> int:
    """Parse the arguments and run the server or a subcommand."""
    if arguments[:1] == ["schema"]:
        Parser("ostler serve schema", description="Print the JSON Schema of the messages.").parse_args(arguments[1:])
        return _schema()
    parser = Parser("ostler serve", usage="ostler serve [OPTIONS]\n       ostler serve schema", description=DESCRIPTION)
    parser.add_argument("--bind", metavar="HOST:PORT", default="", help="address (default: 127.0.0.1:8034)")
    parser.add_argument("--database", metavar="FILE", default="", help="SQLite file (default: ~/.ostler/server.db)")
    parser.add_argument(
        "--expire", metavar="DAYS", type=float, default=30.0, help="delete sessions after this time (default: 30)"
    )
    parser.set_defaults(ephemeral=False)
    add_workspace(parser)
    add_model(parser)
    add_limit_options(parser)
    args = parser.parse_args(arguments)

    from ostler.app.server import run_server
    from ostler.frontends.server.config import ServingConfig

    return run_server(run_options(args), args.bind, args.database, ServingConfig(expire_days=args.expire))


def _schema() -> int:
    from ostler.wire.frames_schema import frames_schema

    sys.stdout.write(json.dumps(frames_schema(), indent=2) + "\n")
    return 0
