"""`ostler demo`: fixes a failing test in a temporary folder, with your model or with a recording."""

from ostler.cli.arguments import Parser, add_model, model_flags


def main(arguments: list[str]) -> int:
    """Parse the arguments and run the demo."""
    parser = Parser(
        "ostler demo",
        description="Create a temporary folder with a failing test and let the agent fix it: with your model, or with "
        "recorded model replies if none is available. The tools, edits and tests are real.",
    )
    parser.add_argument(
        "--recording", action="store_true", help="use the recorded replies even if a model is available"
    )
    parser.add_argument("--keep", action="store_true", help="keep the temporary folder")
    add_model(parser)
    args = parser.parse_args(arguments)

    from ostler.demo.run import Demo

    return Demo(model_flags(args), recording=args.recording, keep=args.keep).run()
