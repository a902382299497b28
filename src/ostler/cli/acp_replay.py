"""`ostler acp replay LOG`: a recorded conversation, shown as it would have been."""

from ostler.cli.arguments import Parser


def main(arguments: list[str]) -> int:
    """Parse, then show."""
    parser = Parser("ostler acp replay", description="Show a recorded conversation with an ACP agent.")
    parser.add_argument("log", metavar="LOG", help="what `ostler acp run -o jsonl` printed, or - for standard input")
    parser.add_argument("-o", "--output", choices=("text", "simple"), default="text")
    parser.add_argument("--check", action="store_true", help="hold every frame to the protocol; a fault is status 1")
    given = parser.parse_args(arguments)

    from ostler.app.acp_replay import replay

    return replay(given.log, given.output, check=given.check)
