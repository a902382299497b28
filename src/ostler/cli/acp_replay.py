"""`ostler acp replay LOG`: prints a recorded ACP connection."""

from ostler.cli.arguments import Parser


def main(arguments: list[str]) -> int:
    """Parse the arguments and print the recording."""
    parser = Parser("ostler acp replay", description="Print a recorded connection to an ACP agent.")
    parser.add_argument(
        "log", metavar="LOG", help="a file with the output of `ostler acp run -o jsonl`, or - for standard input"
    )
    parser.add_argument("-o", "--output", choices=("text", "simple"), default="text", help="output format")
    parser.add_argument("--check", action="store_true", help="validate every frame; exit with status 1 on a violation")
    args = parser.parse_args(arguments)

    from ostler.frontends.acp_cli.replay import replay

    return replay(args.log, args.output, check=args.check)
