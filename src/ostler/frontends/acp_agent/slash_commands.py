"""Slash commands in an editor: those that make sense there, and what they come to in words."""

from ostler.commands.builtin_commands import ALIASES, COMMANDS
from ostler.commands.dispatcher import CommandDispatcher
from ostler.commands.results import (
    ChangeDisplay,
    EditFile,
    Quit,
    ShowDiff,
    ShowLines,
    SlashCommandResult,
    StartTurn,
    SwitchSession,
)
from ostler.commands.services import CommandServices, NamedItem
from ostler.core.protocols import Session
from ostler.frontends.acp_agent.tool_content import fence_lines
from ostler.knowledge.prompt_syntax import parse_slash_command
from ostler.wire.acp import AvailableCommand, AvailableCommandInput

# The editor has its own ways for these.
HANDLED_BY_EDITOR = frozenset(["new", "resume", "fork", "memory", "details", "theme", "steer", "quit"])


class EditorSlashCommands:
    """The commands of one session."""

    def __init__(self, commands: CommandDispatcher, services: CommandServices, session: Session) -> None:
        self._commands = commands
        self._services = services
        self._session = session

    async def available_commands(self) -> tuple[AvailableCommand, ...]:
        """What can be typed: the backend's own, those that files define, and ours; the first of a name counts."""
        far = {
            one.name: AvailableCommand(
                one.name, one.description or one.name, AvailableCommandInput(one.hint) if one.hint else None
            )
            for one in self._session.info.commands
        }
        theirs = {
            one.name: AvailableCommand(one.name, one.description or one.name, AvailableCommandInput(""))
            for one in await self._custom_commands()
        }
        ours = {
            name: AvailableCommand(name, entry.description, AvailableCommandInput(entry.hint) if entry.hint else None)
            for name, entry in COMMANDS.items()
            if name not in HANDLED_BY_EDITOR
        }
        return tuple({**ours, **theirs, **far}.values())

    async def run(self, text: str) -> SlashCommandResult | None:
        """What a command comes to; nothing for words that are none of ours: a path, or a command of the backend's."""
        name, rest = parse_slash_command(text)
        far = {one.name for one in self._session.info.commands}
        if not name or name in far or not await self._is_known(name):
            return None
        return await self._commands.run(name, rest)

    async def _is_known(self, name: str) -> bool:
        return name in COMMANDS or name in ALIASES or name in {one.name for one in await self._custom_commands()}

    async def _custom_commands(self) -> list[NamedItem]:
        return list(await self._services.commands())


def result_markdown(result: SlashCommandResult) -> str:
    """An outcome that is no prompt, as Markdown."""
    match result:
        case ShowLines(lines, draft):
            return "\n\n".join(filter(None, [fence_lines(lines) if lines else "", draft]))
        case ShowDiff(diff):
            return fence_lines(diff.split("\n"), "diff")
        case EditFile(path):
            return f"Open it in your editor: {path}"
        case SwitchSession() | Quit() | ChangeDisplay():
            return "That is done in the editor itself."
        case StartTurn(_, told):
            return "\n".join(told)
