"""`ostler acp …`: be an ACP agent for an editor, drive somebody's, or look at a recorded conversation with one."""

import sys
from importlib import import_module

from ostler.core.errors import UsageError

COMMANDS = {
    "agent": ("ostler.cli.acp_agent", "be an agent for an editor; also what `ostler acp` alone does"),
    "run": ("ostler.cli.acp_run", "send one prompt to an agent, without a person"),
    "comply": ("ostler.cli.acp_comply", "put an agent to the test: does it keep to the protocol?"),
    "replay": ("ostler.cli.acp_replay", "show a recorded conversation as it would have been shown"),
}


def main(arguments: list[str]) -> int:
    """Hand over to the subcommand's own module."""
    if arguments[:1] in (["-h"], ["--help"]) or (not arguments and sys.stdin and sys.stdin.isatty()):
        sys.stdout.write(_help())
        return 0
    alone = not arguments or arguments[0].startswith("-")
    name, rest = ("agent", arguments) if alone else (arguments[0], arguments[1:])
    if name not in COMMANDS:
        raise UsageError(f"ostler acp has no command {name!r}", hint=f"it has {', '.join(COMMANDS)}")
    return int(import_module(COMMANDS[name][0]).main(rest))


def _help() -> str:
    listed = "\n".join(f"  {name:<8} {told}" for name, (_, told) in COMMANDS.items())
    return f"usage: ostler acp [COMMAND] …\n\nThe Agent Client Protocol.\n\ncommands:\n{listed}\n"
