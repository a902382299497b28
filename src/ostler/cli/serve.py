"""`ostler serve`: runs the server, prints the JSON Schema of its protocol, and manages the tokens of users."""

import json
import sys

from ostler.cli.arguments import Parser, add_model, add_turn_limits, add_workspace, days, fill, run_options

USAGE = """ostler serve [OPTIONS]
       ostler serve token issue|list|pair|limit|revoke
       ostler serve schema"""
DESCRIPTION = """Run the agent loop for clients that run the tools on their own machine. `token` manages the tokens of
users, and `schema` prints the JSON Schema of the messages, which docs/server-protocol.md describes."""


def main(arguments: list[str]) -> int:
    """Parse the arguments and run the server or a subcommand."""
    return _subcommand(arguments) if arguments[:1] in (["schema"], ["token"]) else _serve(arguments)


def _subcommand(arguments: list[str]) -> int:
    from ostler.cli.serve_token import add_token_parser, run_token

    parser = Parser("ostler serve", description=DESCRIPTION)
    actions = parser.add_subparsers(dest="action", required=True, metavar="schema|token")
    actions.add_parser("schema", help="print the JSON Schema of the messages")
    add_token_parser(actions)
    args = parser.parse_args(arguments)
    return run_token(args) if args.action == "token" else _schema()


def _serve(arguments: list[str]) -> int:
    parser = Parser("ostler serve", usage=USAGE, description=DESCRIPTION)
    parser.add_argument("--bind", metavar="HOST:PORT", default="", help="address (default: 127.0.0.1:8034)")
    parser.add_argument("--tls-cert", dest="certificate", metavar="FILE", default="", help="certificate chain for TLS")
    parser.add_argument("--tls-key", dest="key", metavar="FILE", default="", help="private key for TLS")
    parser.add_argument(
        "--allow-plain", action="store_true", help="let other machines connect without TLS, behind a proxy that adds it"
    )
    parser.add_argument(
        "--url",
        dest="urls",
        metavar="URL",
        action="append",
        default=[],
        help="further URL of the server, such as that of a proxy; repeatable",
    )
    parser.add_argument(
        "--unix",
        metavar="FILE",
        default="",
        help="listen on a Unix socket for the same user; without --bind on no port",
    )
    parser.add_argument(
        "--no-pairing", dest="has_pairing", action="store_false", help="do not print a one-time line for a first client"
    )
    parser.add_argument("--database", metavar="FILE", default="", help="SQLite file (default: in ~/.ostler)")
    parser.add_argument(
        "--expire",
        dest="expire_days",
        metavar="DAYS",
        type=days,
        default=30.0,
        help="delete sessions not used for this time; 0 for never (default: 30)",
    )
    add_workspace(parser)
    add_model(parser)
    add_turn_limits(parser)
    args = parser.parse_args(arguments)

    from ostler.app.server import ServeOptions, run_server

    return run_server(run_options(args), fill(ServeOptions, args))


def _schema() -> int:
    from ostler.wire.frames_schema import frames_schema

    sys.stdout.write(json.dumps(frames_schema(), indent=2) + "\n")
    return 0
