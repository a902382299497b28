"""`ostler acp`: dispatches to the ACP subcommands `agent`, `run`, `comply` and `replay`."""

import sys
from importlib import import_module

from ostler.core.errors import UsageError

COMMANDS = {
    "agent": ("ostler.cli.acp_agent", "serve Ostler as an agent for an editor (default command)"),
    "run": ("ostler.cli.acp_run", "send one prompt to an agent, non-interactively"),
    "comply": ("ostler.cli.acp_comply", "test whether an agent conforms to the protocol"),
    "replay": ("ostler.cli.acp_replay", "print a recorded connection as text"),
}


def main(arguments: list[str]) -> int:
    """Run a subcommand and return its exit status. Raises `UsageError` if it is unknown."""
    if arguments[:1] in (["-h"], ["--help"]) or (not arguments and sys.stdin and sys.stdin.isatty()):
        sys.stdout.write(_help())
        return 0
    is_default = not arguments or arguments[0].startswith("-")
    name, rest = ("agent", arguments) if is_default else (arguments[0], arguments[1:])
    if name not in COMMANDS:
        raise UsageError(f"unknown command `ostler acp {name}`", hint=f"available: {', '.join(COMMANDS)}")
    return int(import_module(COMMANDS[name][0]).main(rest))


def _help() -> str:
    listed = "\n".join(f"  {name:<8} {description}" for name, (_, description) in COMMANDS.items())
    return f"usage: ostler acp [COMMAND] …\n\nUse the Agent Client Protocol (ACP).\n\ncommands:\n{listed}\n"
