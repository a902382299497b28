"""Runs a slash command: one of ours, one that files define, or a word about which was meant."""

from collections.abc import Awaitable, Callable

from ostler.commands.builtin_commands import ALIASES, COMMANDS
from ostler.commands.info_commands import InfoCommands
from ostler.commands.results import (
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
from ostler.commands.services import CommandServices, NamedItem
from ostler.commands.session_commands import SessionCommands
from ostler.commands.timeline import Timeline
from ostler.commands.undo_commands import UndoCommands
from ostler.commands.usage import UsageTracker
from ostler.core.errors import UsageError
from ostler.core.events import Envelope
from ostler.core.prompt import Prompt, TextContent
from ostler.core.protocols import Session
from ostler.core.sessions import Steer
from ostler.text.closest_name import closest_name
from ostler.text.sanitise import sanitise

INIT_PROMPT = (
    "Look around in this workspace and write an AGENTS.md at its root for coding agents that work here: what it is, "
    "how it is built, tested and checked (the exact commands), how the code is laid out, and which conventions are not "
    "obvious. Keep it short and true; if there is one already, improve it. Do not invent what you have not seen."
)
INPUT_HELP = "  !command runs a command, @path attaches a file, @agent:name chooses who works from then on"
CommandHandler = Callable[[str], Awaitable[SlashCommandResult]]


class CommandDispatcher:
    """All commands of one session; it must hear every event the session has, from the first."""

    def __init__(self, session: Session, services: CommandServices, new_id: Callable[[], str]) -> None:
        self._session = session
        self._services = services
        self._new_id = new_id
        self.usage = UsageTracker()
        self.timeline = Timeline()
        back = UndoCommands(session, services, self.timeline)
        keeping = SessionCommands(session, services, self.timeline, back)
        telling = InfoCommands(session, services, self.usage)
        self.choices = telling.choices
        self._builtins: dict[str, CommandHandler] = {
            name: getattr(owner, name)
            for owner, names in (
                (back, "undo redo revert"),
                (keeping, "sessions resume fork export title compact uncompact"),
                (telling, "status todo models agents mode thinking profile skills mcp permissions context cost doctor"),
                (self, "help new diff memory init details theme steer quit"),
            )
            for name in names.split()
        }

    def on_event(self, envelope: Envelope) -> None:
        """Take in what happened."""
        self.usage.on_event(envelope.event)
        if envelope.event.persisted:
            self.timeline.on_event(envelope)

    async def run(self, name: str, rest: str) -> SlashCommandResult:
        """What a command comes to; an `OstlerError` says why it does not."""
        ours = ALIASES.get(name, name)
        if ours in self._builtins:
            if rest and not COMMANDS[ours].hint:
                raise UsageError(f"/{name} takes no words, and nothing was done", hint=f"/{name} alone")
            return await self._builtins[ours](rest)
        if name in (one.name for one in self._session.info.commands):
            return StartTurn(
                Prompt(self._new_id(), (TextContent(f"/{name} {rest}".rstrip()),))
            )  # the backend knows what it means
        found = await self._services.expand(name, rest, self._session.call)
        return StartTurn(found.prompt, tuple(found.notices)) if found else show_lines(await self._unknown_message(name))

    async def _unknown_message(self, name: str) -> str:
        theirs = [one.name for one in await self.external_commands()]
        near = closest_name(name, [*COMMANDS, *ALIASES, *theirs])
        return f"  there is no /{sanitise(name)}; " + (f"did you mean /{near}?" if near else "/help lists them")

    async def help(self, rest: str) -> ShowLines:
        wanted = rest.removeprefix("/")
        name = ALIASES.get(wanted, wanted)
        if name in COMMANDS:
            entry = COMMANDS[name]
            return show_lines(f"  /{name} {entry.hint}".rstrip(), f"  {entry.description}")
        discovered = await self.external_commands()
        if wanted:
            theirs = [
                sanitise(f"  /{one.name}  {one.description}").rstrip() for one in discovered if one.name == wanted
            ]
            return show_lines(*(theirs or [await self._unknown_message(wanted)]))
        width = max(len(f"{name} {entry.hint}") for name, entry in COMMANDS.items())
        ours = [f"  /{f'{name} {entry.hint}':<{width}}  {entry.description}" for name, entry in COMMANDS.items()]
        theirs = [sanitise(f"  /{one.name}  {one.description}").rstrip() for one in discovered]
        return show_lines(
            *ours, *(["", "  from your files and the backend:", *theirs] if theirs else []), "", INPUT_HELP
        )

    async def external_commands(self) -> list[NamedItem]:
        """The commands that are not ours."""
        offered = [NamedItem(one.name, one.description or one.hint) for one in self._session.info.commands]
        return [*offered, *await self._services.commands()]

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
        words = f"{INIT_PROMPT}\n\n{rest}" if rest else INIT_PROMPT
        return StartTurn(Prompt(self._new_id(), (TextContent(words),)))

    async def diff(self, rest: str) -> SlashCommandResult:
        diff = await self._services.diff(rest)
        return ShowDiff(diff) if diff.strip() else show_lines("  nothing differs")

    async def steer(self, rest: str) -> SlashCommandResult:
        if not rest:
            return show_lines("  say what: /steer words")
        ready = await self._services.build_prompt(rest)
        if self._session.turn is None:
            return StartTurn(ready.prompt, tuple(ready.notices))
        taken = await self._session.apply(Steer(ready.prompt))
        return show_lines(f"  ↳ {sanitise(rest)}" if taken else "  nobody took it: this backend cannot be steered")
