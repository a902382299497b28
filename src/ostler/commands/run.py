"""Runs a slash command: one of ours, one that files define, or a word about which was meant."""

from collections.abc import Awaitable, Callable

from ostler.commands.going_back import GoingBack
from ostler.commands.keeping import Keeping
from ostler.commands.meter import Meter
from ostler.commands.outcomes import Adjust, Changes, EditFile, Enter, Outcome, Quit, Say, Told, told
from ostler.commands.services import Named, Services
from ostler.commands.table import ALIASES, COMMANDS
from ostler.commands.telling import Telling
from ostler.commands.timeline import Timeline
from ostler.text.names import nearest
from ostler.text.sanitise import sanitise
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.events import Envelope
from ostler.vocabulary.prompt import Prompt, Text
from ostler.vocabulary.seams import Session
from ostler.vocabulary.sessions import Steer

INIT = (
    "Look around in this workspace and write an AGENTS.md at its root for coding agents that work here: what it is, "
    "how it is built, tested and checked (the exact commands), how the code is laid out, and which conventions are not "
    "obvious. Keep it short and true; if there is one already, improve it. Do not invent what you have not seen."
)
TRIGGERS = "  !command runs a command, @path attaches a file, @agent:name chooses who works from then on"
Run = Callable[[str], Awaitable[Outcome]]


class Commands:
    """All commands of one session; it must hear every event the session has, from the first."""

    def __init__(self, session: Session, services: Services, new_id: Callable[[], str]) -> None:
        self._session = session
        self._services = services
        self._new_id = new_id
        self.meter = Meter()
        self.timeline = Timeline()
        back = GoingBack(session, services, self.timeline)
        keeping = Keeping(session, services, self.timeline, back)
        telling = Telling(session, services, self.meter)
        self.choices = telling.choices
        self._ours: dict[str, Run] = {
            name: getattr(owner, name)
            for owner, names in (
                (back, "undo redo revert"),
                (keeping, "sessions resume fork export title compact uncompact"),
                (telling, "status todo models agents mode thinking profile skills mcp permissions context cost doctor"),
                (self, "help new diff memory init details theme steer quit"),
            )
            for name in names.split()
        }

    def hear(self, envelope: Envelope) -> None:
        """Take in what happened."""
        self.meter.hear(envelope.event)
        if envelope.event.kept:
            self.timeline.hear(envelope)

    async def run(self, name: str, rest: str) -> Outcome:
        """What a command comes to; an `OstlerError` says why it does not."""
        ours = ALIASES.get(name, name)
        if ours in self._ours:
            if rest and not COMMANDS[ours].hint:
                raise UsageError(f"/{name} takes no words, and nothing was done", hint=f"/{name} alone")
            return await self._ours[ours](rest)
        if name in (one.name for one in self._session.info.commands):
            return Say(Prompt(self._new_id(), (Text(f"/{name} {rest}".rstrip()),)))  # the backend knows what it means
        found = await self._services.expand(name, rest, self._session.call)
        return Say(found.prompt, tuple(found.told)) if found else told(await self._unknown(name))

    async def _unknown(self, name: str) -> str:
        theirs = [one.name for one in await self.discovered()]
        near = nearest(name, [*COMMANDS, *ALIASES, *theirs])
        return f"  there is no /{sanitise(name)}; " + (f"did you mean /{near}?" if near else "/help lists them")

    async def help(self, rest: str) -> Told:
        wanted = rest.removeprefix("/")
        name = ALIASES.get(wanted, wanted)
        if name in COMMANDS:
            entry = COMMANDS[name]
            return told(f"  /{name} {entry.hint}".rstrip(), f"  {entry.told}")
        discovered = await self.discovered()
        if wanted:
            theirs = [sanitise(f"  /{one.name}  {one.told}").rstrip() for one in discovered if one.name == wanted]
            return told(*(theirs or [await self._unknown(wanted)]))
        width = max(len(f"{name} {entry.hint}") for name, entry in COMMANDS.items())
        ours = [f"  /{f'{name} {entry.hint}':<{width}}  {entry.told}" for name, entry in COMMANDS.items()]
        theirs = [sanitise(f"  /{one.name}  {one.told}").rstrip() for one in discovered]
        return told(*ours, *(["", "  from your files and the backend:", *theirs] if theirs else []), "", TRIGGERS)

    async def discovered(self) -> list[Named]:
        """The commands that are not ours."""
        offered = [Named(one.name, one.description or one.hint) for one in self._session.info.commands]
        return [*offered, *await self._services.commands()]

    async def new(self, rest: str) -> Outcome:
        return Enter()

    async def quit(self, rest: str) -> Outcome:
        return Quit()

    async def details(self, rest: str) -> Outcome:
        return Adjust("details")

    async def theme(self, rest: str) -> Outcome:
        return Adjust("theme", rest)

    async def memory(self, rest: str) -> Outcome:
        return EditFile(self._services.memory())

    async def init(self, rest: str) -> Outcome:
        words = f"{INIT}\n\n{rest}" if rest else INIT
        return Say(Prompt(self._new_id(), (Text(words),)))

    async def diff(self, rest: str) -> Outcome:
        diff = await self._services.diff(rest)
        return Changes(diff) if diff.strip() else told("  nothing differs")

    async def steer(self, rest: str) -> Outcome:
        if not rest:
            return told("  say what: /steer words")
        ready = await self._services.words(rest)
        if self._session.turn is None:
            return Say(ready.prompt, tuple(ready.told))
        taken = await self._session.apply(Steer(ready.prompt))
        return told(f"  ↳ {sanitise(rest)}" if taken else "  nobody took it: this backend cannot be steered")
