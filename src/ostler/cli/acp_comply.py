"""`ostler acp comply CMD`: runs the protocol conformance checks against an ACP agent."""

import argparse
import os

from ostler.cli.arguments import Parser, fill, seconds
from ostler.core.errors import UsageError

EPILOG = """\
exit status: 0 the agent conforms · 1 it does not · 2 usage error. Recommendations are only enforced with --strict.
"""


def main(arguments: list[str]) -> int:
    """Parse the arguments and run the suite."""
    parser = Parser(
        "ostler acp comply", description="Test whether an ACP agent conforms to the protocol.", epilog=EPILOG
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="output format")
    parser.add_argument(
        "--only", metavar="AREA", action="append", default=[], help="run only this area or check id; repeatable"
    )
    parser.add_argument("--prompt", metavar="TEXT", default="", help="prompt to send where the text does not matter")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=60.0, help="time limit for each answer (default: 60)"
    )
    parser.add_argument(
        "--cwd", metavar="DIR", default="", help="the agent's working directory (default: a temporary folder)"
    )
    parser.add_argument("-a", "--agent", metavar="NAME", default="", help="a configured agent, instead of CMD")
    parser.add_argument("--strict", action="store_true", help="also fail on recommendations")
    parser.add_argument("command", metavar="CMD", nargs=argparse.REMAINDER, help="the agent's command line")
    args = parser.parse_args(arguments)
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if bool(command) == bool(args.agent):
        raise UsageError("pass either a command or -a NAME, such as `ostler acp comply gemini --acp`")

    import asyncio

    from ostler.conformance.report import DEFAULT_PROMPT, ConformanceRun

    argv, env = _configured_agent(args.agent) if args.agent else (_absolute_program(command), dict(os.environ))
    only, prompt = [name.lower() for name in args.only], args.prompt or DEFAULT_PROMPT
    suite = fill(ConformanceRun, args, argv=argv, env=env, only=only, prompt=prompt, json=args.output == "json")
    return asyncio.run(suite.run())


def _configured_agent(name: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command and the environment of an agent in the settings."""
    from ostler.knowledge.acp_agents import find_agent
    from ostler.knowledge.trusted_settings import load_settings
    from ostler.settings.project_paths import workspace_path

    cwd = workspace_path(".")
    agent = find_agent(name, "", cwd, load_settings(cwd))
    return (agent.entry.command, *agent.entry.args), agent.environment(os.environ)


def _absolute_program(argv: list[str]) -> tuple[str, ...]:
    """Make the path of a program absolute: it is relative to this folder, not to the agent's."""
    return (os.path.abspath(argv[0]), *argv[1:]) if "/" in argv[0] else tuple(argv)
