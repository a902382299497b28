"""One session at the prompt: what is typed becomes turns, commands and answers, one after the other."""

import asyncio
from collections.abc import AsyncIterator, Callable

import msgspec

from ostler.commands.complete import Completing
from ostler.commands.outcomes import Adjust, Changes, EditFile, Enter, Outcome, Quit, Say, Told
from ostler.commands.run import Commands
from ostler.commands.services import Services
from ostler.commands.table import leaves_turn
from ostler.drawing.diffs import diff_lines
from ostler.drawing.paint import THEMES, Paint
from ostler.drawing.scroll import Scroll
from ostler.drawing.waiting import WaitingLines
from ostler.drawing.wrap import told_rows
from ostler.faces.repl.asking import Asking
from ostler.faces.repl.console import IDLE, Console, Interrupt, Leave, Steering, Typed, WantDetails
from ostler.faces.repl.playing import Playing, new_id
from ostler.faces.repl.replay import Replay
from ostler.faces.repl.status import Status
from ostler.faces.repl.typed import Shell, Slash, Words, meaning
from ostler.text.sanitise import sanitise
from ostler.vocabulary.errors import OstlerError
from ostler.vocabulary.events import Envelope, Event, PermissionAsked, QuestionAsked, TurnEnded, TurnStarted
from ostler.vocabulary.seams import Session
from ostler.vocabulary.sessions import Steer

AGAIN = "Ctrl-C again leaves"
NEXT_TIME = "a session that begins from now on is told it: /new"
RUNNING = "something is running; cancel it first (Ctrl-C)"
WORTH_RINGING_SECONDS = 5.0


class Over(msgspec.Struct, frozen=True):
    """The session is left; without a status, for the session named, or for a new one."""

    status: int | None
    session: str = ""


class Chat:
    """What the person does, and what they see of what happens."""

    def __init__(
        self, session: Session, console: Console, paint: Paint, services: Services, details: bool = False
    ) -> None:
        self._session = session
        self._console = console
        self._paint = paint
        self._services = services
        self._scroll = Scroll(paint)
        self._scroll.calls.whole = details
        self._asking = Asking(console, paint, session.settle)
        self._commands = Commands(session, services, new_id)
        self._status = Status(session, self._commands.meter)
        self._waiting = WaitingLines()
        self._playing = Playing(session, self._rest, self._not_sent)
        self._typed: dict[str, list[str]] = {}  # what was typed here, and what is told of it below
        self._held: list[str] = []
        self._changed = asyncio.Event()
        self._cancelled = self._warned = False
        self._began = 0.0
        self._over: Over | None = None

    async def run(self) -> Over:
        """Until the session is left."""
        following = asyncio.create_task(self._follow(self._session.subscribe(0)), name="follow")
        following.add_done_callback(self._cut_short)
        self._status.surroundings = self._services.surroundings()
        self._console.completes(Completing(self._services, self._commands, tuple(THEMES)))
        self._take_up()
        self._rest()
        try:
            return await self._listen()
        finally:
            following.remove_done_callback(self._cut_short)
            await self._playing.aclose()
            await asyncio.wait([following])
            self._console.expect(None)
            following.result()

    def _cut_short(self, _: object) -> None:
        """The session ended by itself, or what shows it failed."""
        self._console.push(Leave(1))

    def _take_up(self) -> None:
        """What an earlier process could not send any more is given back."""
        if left := self._playing.take_up() or self._services.left_behind():
            self._tell(["this was waiting to be sent when Ostler ended:"])
            self._console.draft(left)

    # -- what happens --------------------------------------------------------------------------------------------

    async def _follow(self, reading: AsyncIterator[Envelope]) -> None:
        past = Replay(self._paint)
        async for envelope in reading:
            event, new = envelope.event, envelope.seq > self._session.opened_at
            if new:
                self._console.show(past.over())
            self._scroll.prompts = not (self._console.echoes and _prompt_id(event) in self._typed)
            lines = self._scroll.take(event)
            self._commands.hear(envelope)
            self._status.hear(event)
            if not new:
                past.take(event, lines)
                continue
            self._show(lines if self._console.has_status else [*lines, *self._waiting.take(event)])
            self._asking.hear(event)
            self._show([])
            self._playing.hear(event)
            self._note(event)

    def _show(self, lines: list[str]) -> None:
        """While a person is asked, nothing that a model goes on to say comes between the ask and its answer."""
        self._held += lines
        if not self._asking and self._held:
            held, self._held = self._held, []
            self._console.show(held)

    def _note(self, event: Event) -> None:
        match event:
            case TurnStarted(_, prompt):
                self._began = asyncio.get_running_loop().time()
                self._tell(self._typed.get(prompt.id, []))
            case TurnEnded(_, reason):
                self._status.surroundings = self._services.surroundings()
                if reason == "cancelled" and (left := self._playing.give_back()):
                    self._console.draft(left)
                if asyncio.get_running_loop().time() - self._began >= WORTH_RINGING_SECONDS:
                    self._console.ring(f"Ostler: {reason}")
            case PermissionAsked(_, permission):
                self._scroll.calls.seen(permission.preview)
                self._console.ring(f"Ostler asks: {permission.title[:100]}")
            case QuestionAsked():
                self._console.ring("Ostler has a question")
            case _:
                pass
        self._rest()

    def _rest(self) -> None:
        """Go on with what waits, or wait for the person."""
        if not self._playing.busy:
            self._cancelled = False
            self._playing.next()
        if not self._asking:
            self._console.expect(None if self._playing.busy else IDLE)
        self._show_status()
        self._changed.set()

    def _show_status(self) -> None:
        """What passes is not shown beside an ask, for which a model's words could be taken."""
        busy = self._playing.busy
        passing = AGAIN if self._warned else ""
        if busy:
            passing = "" if self._asking else self._status.passing(self._scroll)
        asking, queued = self._asking.waiting, self._playing.queued
        self._console.status(passing, self._status.standing(busy=busy, asking=asking, queued=queued))

    # -- what the person does ------------------------------------------------------------------------------------

    async def _listen(self) -> Over:
        while True:
            if not self._console.live:
                await self._until(lambda: self._asking.waiting or not self._playing.busy)
            over = await self._take(await self._console.read())
            if over:
                return over

    async def _take(self, typed: Typed) -> Over | None:
        if isinstance(typed, Interrupt):
            return Over(0) if self._interrupt() else None
        self._warned = False
        match typed:
            case Leave(status):
                return self._over or await self._leave(status)
            case WantDetails():
                self._details()
            case Steering(text):
                await self._steer(text)
            case _ if self._asking:
                self._asking.answer(typed.text)
            case _:
                await self._say(typed.text)
        return None

    async def _leave(self, status: int) -> Over:
        while self._playing.busy and not self._console.live:
            self._asking.refuse_all("the input has ended")
            self._changed.clear()
            await self._changed.wait()
        return Over(status)

    def _interrupt(self) -> bool:
        """Cancel what runs; whether to leave."""
        if self._playing.cancel():
            again, self._cancelled = self._cancelled, True
            return again
        again, self._warned = self._warned, True
        if self._console.echoes and not again:
            self._console.show([AGAIN])
        self._rest()
        return again

    async def _say(self, line: str) -> None:
        said = meaning(line)
        try:
            match said:
                case None:
                    self._show_status()
                case Shell(""):
                    self._console.show(["  there is no command after the !"])
                case Shell():
                    self._echo(line)
                    self._playing.put(said)
                case Slash(name, rest):
                    self._slash(name, rest)
                case Words(text):
                    ready = await self._services.words(text)
                    self._begin(Say(ready.prompt, tuple(ready.told)))
        except OstlerError as error:
            self._not_sent(str(error), line)

    async def _steer(self, text: str) -> None:
        """Words for the turn that runs; where none does, they begin one."""
        if self._asking or not self._playing.in_turn:
            await self._say(text)
            return
        try:
            ready = await self._services.words(text)
            if await self._session.apply(Steer(ready.prompt)):
                shown = [f"  ↳ {sanitise(line)}" for line in text.strip().split("\n")]
                self._console.show([self._paint(line, "bold") for line in shown])
            elif self._session.info.can_steer:  # the turn is about to end
                self._begin(Say(ready.prompt, tuple(ready.told)))
            else:
                self._not_sent("this backend cannot be steered; Enter sends it after the turn", text)
        except OstlerError as error:
            self._not_sent(str(error), text)

    def _slash(self, name: str, rest: str) -> None:
        """In a task of its own, so that keys are heard meanwhile."""
        self._echo(f"/{name} {rest}".rstrip())
        if leaves_turn(name) and self._playing.acting:
            self._tell([RUNNING])
        else:
            self._playing.work(self._command(name, rest))

    async def _command(self, name: str, rest: str) -> None:
        try:
            await self._do(await self._commands.run(name, rest))
        except OstlerError as error:
            self._tell([str(error)])

    async def _do(self, outcome: Outcome) -> None:
        match outcome:
            case Told(lines, draft):
                self._console.show([row for line in lines for row in told_rows(line, self._paint.columns())])
                if draft:
                    self._console.draft(draft)
            case Changes(diff):
                self._console.show([f"  {line}" for line in diff_lines(sanitise(diff), self._paint)])
            case Say():
                self._begin(outcome)
            case EditFile(path):
                edited = await self._console.edit(path)
                self._tell([NEXT_TIME if edited else f"no editor could be run on {path}; set EDITOR to yours"])
            case Adjust("theme", value):
                self._theme(value)
            case Adjust():
                self._details()
            case Enter(session):
                self._end(Over(None, session))
            case Quit():
                self._end(Over(0))

    def _begin(self, said: Say) -> None:
        self._typed[said.prompt.id] = [*said.told]
        self._playing.put(said.prompt)

    def _end(self, over: Over) -> None:
        self._over = over
        self._console.push(Leave())

    # -- what is shown -------------------------------------------------------------------------------------------

    def _details(self) -> None:
        """From now on calls in full, beginning with the last; or in short again."""
        calls = self._scroll.calls
        calls.whole = not calls.whole
        self._tell([f"calls are shown in {'full' if calls.whole else 'short'} from now on"])
        if calls.whole:
            self._console.show(calls.again())

    def _theme(self, name: str) -> None:
        if name in THEMES:
            self._paint.theme = name
        elif name:
            self._tell([f"there is no theme {name}"])
        self._console.show([f"  {'*' if theme == self._paint.theme else ' '} {theme}" for theme in THEMES])

    def _echo(self, line: str) -> None:
        """What was typed goes into the scrollback, unless it stands there already."""
        if not self._console.echoes:
            self._console.show(self._scroll.typed(line))

    def _not_sent(self, why: str, text: str) -> None:
        self._tell([why])
        if text:
            self._console.draft(text)

    def _tell(self, lines: list[str]) -> None:
        rows = [row for line in lines for row in told_rows(f"  {sanitise(line)}", self._paint.columns())]
        self._console.show([self._paint(row, "dim") for row in rows])

    async def _until(self, so: Callable[[], bool]) -> None:
        while not so():
            self._changed.clear()
            await self._changed.wait()


def _prompt_id(event: Event) -> str:
    return event.prompt.id if isinstance(event, TurnStarted) else ""
