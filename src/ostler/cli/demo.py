"""`ostler demo`: the main job, on a scratch folder."""

from ostler.cli.arguments import Parser, add_model, model_flags


def main(arguments: list[str]) -> int:
    """Parse and play."""
    parser = Parser(
        "ostler demo",
        description="Make a scratch folder with a failing test and let the agent find and fix it: with the model that "
        "would be used, else with a recording of one. Everything else is real.",
    )
    parser.add_argument("--recording", action="store_true", help="play the recording even where there is a model")
    parser.add_argument("--keep", action="store_true", help="leave the scratch folder for you to look at")
    add_model(parser)
    given = parser.parse_args(arguments)

    from ostler.app.demo.run import Demo

    return Demo(model_flags(given), recording=given.recording, keep=given.keep).run()
