"""`ostler serve`: prints the JSON Schema of the server protocol, and manages the tokens of users."""

import json
import sys

from ostler.cli.arguments import Parser

DESCRIPTION = "Run the agent loop for clients that run the tools on their own machine."


def main(arguments: list[str]) -> int:
    """Parse the arguments and run a subcommand."""
    from ostler.cli.serve_token import add_token_parser, run_token

    parser = Parser("ostler serve", description=DESCRIPTION)
    actions = parser.add_subparsers(dest="action", required=True, metavar="schema|token")
    actions.add_parser("schema", help="print the JSON Schema of the messages")
    add_token_parser(actions)
    args = parser.parse_args(arguments)
    return run_token(args) if args.action == "token" else _schema()


def _schema() -> int:
    from ostler.wire.frames_schema import frames_schema

    sys.stdout.write(json.dumps(frames_schema(), indent=2) + "\n")
    return 0
