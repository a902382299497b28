"""`ostler acp comply CMD`: does an agent keep to the protocol?"""

import argparse

from ostler.cli.arguments import Parser, seconds
from ostler.core.errors import UsageError

EPILOG = """\
exit status: 0 it keeps to the protocol · 1 it does not · 2 usage. What is only advised does not count without --strict.
"""


def main(arguments: list[str]) -> int:
    """Parse, then run the suite."""
    parser = Parser("ostler acp comply", description="Put an ACP agent to the test.", epilog=EPILOG)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.add_argument("--only", metavar="AREA", action="append", default=[], help="an area or an id; repeatable")
    parser.add_argument("--prompt", metavar="TEXT", default="", help="what to say where any words will do")
    parser.add_argument("--timeout", metavar="SECONDS", type=seconds, default=60.0, help="how long an answer may take")
    parser.add_argument("--cwd", metavar="DIR", default="", help="where it works (default: an empty scratch folder)")
    parser.add_argument("-a", "--agent", metavar="NAME", default="", help="an agent of your settings, instead of CMD")
    parser.add_argument("--strict", action="store_true", help="advice counts too")
    parser.add_argument("command", metavar="CMD", nargs=argparse.REMAINDER, help="the agent and its arguments")
    given = parser.parse_args(arguments)
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    if bool(command) == bool(given.agent):
        raise UsageError(
            "which agent?", hint="write its command last, `ostler acp comply gemini --acp`, or name it: -a"
        )

    import asyncio

    from ostler.app.conformance.report import DEFAULT_PROMPT, ConformanceRun

    comply = ConformanceRun(
        tuple(command),
        tuple(name.lower() for name in given.only),
        given.prompt or DEFAULT_PROMPT,
        given.timeout,
        given.cwd,
        given.output == "json",
        given.strict,
        given.agent,
    )
    return asyncio.run(comply.run())
