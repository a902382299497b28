"""Lists the slash commands offered to an editor and renders their results as Markdown."""

from ostler.core.protocols import Session
from ostler.frontends.acp_agent.tool_content import fence_lines
from ostler.interaction.builtin_commands import ALIASES, COMMANDS
from ostler.interaction.dispatcher import CommandDispatcher
from ostler.interaction.results import (
    ChangeDisplay,
    EditFile,
    Quit,
    ShowDiff,
    ShowLines,
    SlashCommandResult,
    StartTurn,
    SwitchSession,
)
from ostler.interaction.services import CommandServices
from ostler.knowledge.prompt_syntax import parse_slash_command
from ostler.wire.acp import AvailableCommand, AvailableCommandInput

# The editor has its own controls for these.
HANDLED_BY_EDITOR = frozenset(["new", "resume", "fork", "memory", "details", "theme", "steer", "quit"])


class EditorSlashCommands:
    """The slash commands of one session."""

    def __init__(self, commands: CommandDispatcher, services: CommandServices, session: Session) -> None:
        self._commands = commands
        self._services = services
        self._session = session

    async def available_commands(self) -> tuple[AvailableCommand, ...]:
        """Return all commands. The backend's take precedence over custom ones, and those over built-in ones."""
        remote = {
            command.name: AvailableCommand(
                command.name,
                command.description or command.name,
                AvailableCommandInput(command.hint) if command.hint else None,
            )
            for command in self._session.info.commands
        }
        custom = {
            command.name: AvailableCommand(command.name, command.description or command.name, AvailableCommandInput(""))
            for command in await self._services.commands(self._session)
        }
        builtin = {
            name: AvailableCommand(name, entry.description, AvailableCommandInput(entry.hint) if entry.hint else None)
            for name, entry in COMMANDS.items()
            if name not in HANDLED_BY_EDITOR
        }
        return tuple({**builtin, **custom, **remote}.values())

    async def run(self, text: str) -> SlashCommandResult | None:
        """Run a command and return its result. Return None if the text is not a command of Ostler."""
        name, rest = parse_slash_command(text)
        remote = {command.name for command in self._session.info.commands}
        if not name or name in remote or not await self._is_known(name):
            return None
        return await self._commands.run(name, rest)

    async def _is_known(self, name: str) -> bool:
        if name in COMMANDS or name in ALIASES:
            return True
        return any(command.name == name for command in await self._services.commands(self._session))


def result_markdown(result: SlashCommandResult) -> str:
    """Render the result of a command as Markdown."""
    match result:
        case ShowLines(lines, draft):
            return "\n\n".join(filter(None, [fence_lines(lines) if lines else "", draft]))
        case ShowDiff(diff):
            return fence_lines(diff.split("\n"), "diff")
        case EditFile(path):
            return f"Open it in your editor: {path}"
        case SwitchSession() | Quit() | ChangeDisplay():
            return "Use the editor's own controls for this."
        case StartTurn(_, notices):
            return "\n".join(notices)
