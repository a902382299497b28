"""Runs a slash command by name: a built-in one, a custom one, or a suggestion for a mistyped one."""

from collections.abc import Callable, Sequence

from ostler.core.errors import UsageError
from ostler.core.events import Envelope
from ostler.core.prompt import Prompt, TextContent
from ostler.core.protocols import Session
from ostler.core.sessions import Steer
from ostler.interaction.builtin_commands import ALIASES, COMMANDS
from ostler.interaction.info_commands import InfoCommands
from ostler.interaction.results import (
    ChangeDisplay,
    EditFile,
    Quit,
    ShowDiff,
    ShowLines,
    SlashCommandResult,
    StartTurn,
    SwitchSession,
    show_lines,
)
from ostler.interaction.services import CommandServices, NamedItem, PromptSource, active_agent, left_out_notices
from ostler.interaction.session_commands import SessionCommands
from ostler.interaction.timeline import Timeline
from ostler.interaction.usage import UsageTracker
from ostler.text.closest_name import closest_name
from ostler.text.sanitise import sanitise

INIT_PROMPT = (
    "Look around in this workspace and write an AGENTS.md at its root for coding agents that work here: what it is, "
    "how it is built, tested and checked (the exact commands), how the code is laid out, and which conventions are not "
    "obvious. Keep it short and true; if there is one already, improve it. Do not invent what you have not seen."
)
INPUT_HELP = (
    "  !command runs a command, @path attaches a file, @server:uri a resource of an MCP server; "
    "@agent:name selects the agent for this and later prompts"
)

EXTERNAL_TITLE = "  custom commands, and commands of the backend and of MCP servers:"


class CommandDispatcher:
    """Runs the commands of one session. It must receive every event of the session, from the first."""

    def __init__(self, session: Session, services: CommandServices, new_id: Callable[[], str]) -> None:
        self._session = session
        self._services = services
        self.pasted = ""  # text that the user pasted, which may be part of the input
        self.may_be_pasted = False  # for a frontend that cannot tell
        self._new_id = new_id
        self.usage = UsageTracker()
        self.timeline = Timeline()
        self.sessions: SessionCommands = SessionCommands(session, services, self.timeline)
        self.info: InfoCommands = InfoCommands(session, services, self.usage)

    def on_event(self, envelope: Envelope) -> None:
        self.usage.on_event(envelope.event)
        if envelope.event.persisted:
            self.timeline.on_event(envelope)

    async def run(self, name: str, rest: str) -> SlashCommandResult:
        """Run a command and return its result. Raises `OstlerError`."""
        if command := COMMANDS.get(ALIASES.get(name, name)):
            if rest and not command.hint:
                raise UsageError(f"/{name} takes no arguments", hint=f"run /{name} alone")
            return await command.handler(self)(rest)
        if self.is_prompt(name):
            return StartTurn(Prompt(self._new_id(), (TextContent(f"/{name} {rest}".rstrip()),)))
        built = await self._services.expand(name, rest, self._session.call, self._source())
        return StartTurn(built.prompt, tuple(built.notices)) if built else show_lines(await self._unknown_message(name))

    def is_prompt(self, name: str) -> bool:
        """Return whether a command becomes a prompt as it was typed, because the backend expands it itself."""
        is_builtin = ALIASES.get(name, name) in COMMANDS
        return not is_builtin and any(name == command.name for command in self._session.info.commands)

    async def _unknown_message(self, name: str) -> str:
        external = [command.name for command in await self.external_commands()]
        suggestion = closest_name(name, [*COMMANDS, *ALIASES, *external])
        return f"  there is no /{sanitise(name)}; " + (
            f"did you mean /{suggestion}?" if suggestion else "/help lists them"
        )

    async def help(self, rest: str) -> ShowLines:
        requested = rest.removeprefix("/")
        name = ALIASES.get(requested, requested)
        if name in COMMANDS:
            entry = COMMANDS[name]
            return show_lines(f"  {entry.usage}", f"  {entry.description}")
        external = await self.external_commands()
        if requested:
            matching = [_command_line(command) for command in external if command.name == requested]
            return show_lines(*(matching or [await self._unknown_message(requested)]))
        width = max(len(entry.usage) for entry in COMMANDS.values())
        builtins = [f"  {entry.usage:<{width}}  {entry.description}" for entry in COMMANDS.values()]
        more = ["", EXTERNAL_TITLE, *map(_command_line, external)] if external else []
        return show_lines(*builtins, *more, "", INPUT_HELP)

    async def external_commands(self) -> list[NamedItem]:
        """Return the commands of the backend, the custom ones, and the prompts of MCP servers."""
        commands = self._session.info.commands
        offered = [NamedItem(command.name, command.description or command.hint) for command in commands]
        return [*offered, *await self._services.commands(self._session)]

    async def resources(self, query: str) -> Sequence[NamedItem]:
        """Return the resources of the session's MCP servers whose mention begins with `query`."""
        return await self._services.resources(self._session, query)

    async def new(self, rest: str) -> SlashCommandResult:
        return SwitchSession()

    async def quit(self, rest: str) -> SlashCommandResult:
        return Quit()

    async def details(self, rest: str) -> SlashCommandResult:
        return ChangeDisplay("details")

    async def theme(self, rest: str) -> SlashCommandResult:
        return ChangeDisplay("theme", rest)

    async def memory(self, rest: str) -> SlashCommandResult:
        return EditFile(self._services.memory())

    async def init(self, rest: str) -> SlashCommandResult:
        text = f"{INIT_PROMPT}\n\n{rest}" if rest else INIT_PROMPT
        return StartTurn(Prompt(self._new_id(), (TextContent(text),)))

    async def diff(self, rest: str) -> SlashCommandResult:
        diff = await self._services.diff(rest)
        return ShowDiff(diff) if diff.strip() else show_lines("  no changes")

    async def steer(self, rest: str) -> SlashCommandResult:
        if not rest:
            return show_lines("  usage: /steer words")
        built = await self._services.build_prompt(rest, self._source())
        if self._session.turn is None:
            return StartTurn(built.prompt, left_out_notices(built))
        if not await self._session.apply(Steer(built.prompt)):
            return show_lines("  not sent: this backend does not accept input during a turn; send it afterwards")
        return show_lines(f"  ↳ {sanitise(rest)}", *(f"  {sanitise(line)}" for line in left_out_notices(built)))

    def _source(self) -> PromptSource:
        return PromptSource(
            active_agent(self._session), self.pasted, may_be_pasted=self.may_be_pasted, session_id=self._session.id
        )


def _command_line(command: NamedItem) -> str:
    return sanitise(f"  /{command.name}  {command.description}").rstrip()
