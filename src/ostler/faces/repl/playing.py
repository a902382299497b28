"""What runs in a session, and what waits to be sent after it: one thing after the other."""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from ostler.faces.repl.typed import Shell
from ostler.vocabulary.errors import OstlerError
from ostler.vocabulary.events import Event, ToolFinished, TurnEnded, TurnStarted
from ostler.vocabulary.prompt import Prompt
from ostler.vocabulary.seams import Session, Turn
from ostler.vocabulary.sessions import Queue
from ostler.vocabulary.tools import ToolCall


class Playing:
    """The turn, the commands by hand, the slash commands under way, and the queue behind them."""

    def __init__(
        self,
        session: Session,
        changed: Callable[[], None],
        failed: Callable[[str, str], None],
    ) -> None:
        """`changed` is told that something began or ended, `failed` why words were not sent."""
        self._session = session
        self._changed = changed
        self._failed = failed
        self._turn: Turn | None = None
        self._far_turn = False
        self._work: set[asyncio.Task[None]] = set()
        self._seen: dict[str, asyncio.Event] = {}
        self._queue: deque[Prompt | Shell] = deque()
        self._kept: tuple[str, ...] = tuple(session.state.queued)
        self._keeping: set[asyncio.Task[bool]] = set()
        self._leaving = False

    @property
    def in_turn(self) -> bool:
        return self._turn is not None or self._far_turn

    @property
    def acting(self) -> bool:
        """Whether a turn or a command by hand may be changing something."""
        return self.in_turn or bool(self._seen)

    @property
    def busy(self) -> bool:
        return self.in_turn or bool(self._work)

    @property
    def queued(self) -> int:
        """How many wait; none is told of that is not kept yet."""
        return 0 if self._keeping else len(self._queue)

    def put(self, said: Prompt | Shell) -> None:
        """Now, or after what runs."""
        self._queue.append(said)
        self._keep_queue()
        self._changed()

    def next(self) -> None:
        """Where nothing runs, begin what waits first."""
        if not self.busy and self._queue:
            self._begin(self._queue.popleft())
            self._keep_queue()

    def work(self, doing: Coroutine[Any, Any, None]) -> None:
        """Let something run that a Ctrl-C can stop."""
        task = asyncio.create_task(doing, name="by hand")
        self._work.add(task)
        task.add_done_callback(self._worked)

    def cancel(self) -> bool:
        """Stop what runs, whoever began it; whether there was anything to stop."""
        turn = self._session.turn
        if turn:
            turn.cancel()
        for task in self._work:
            task.cancel()
        return turn is not None or self.busy

    def take_up(self) -> str:
        """What waited when the session was last left, which waits no more."""
        left = "\n".join(self._session.state.queued)
        self._keep_queue()
        return left

    def give_back(self) -> str:
        """What waited, which is not sent any more."""
        text = "\n".join(words_of(said) for said in self._queue)
        self._queue.clear()
        self._keep_queue()
        return text

    def hear(self, event: Event) -> None:
        match event:
            case TurnStarted(turn_id):
                self._far_turn = self._turn is None or self._turn.id != turn_id
            case TurnEnded():
                self._turn, self._far_turn = None, False
            case ToolFinished(result) if result.call_id in self._seen:
                self._seen[result.call_id].set()
            case _:
                pass

    async def aclose(self) -> None:
        """End what runs and close the session; what waited is still kept for later."""
        self._leaving = True
        self._queue.clear()
        if self._keeping:
            await asyncio.wait(self._keeping)
        for task in (tasks := tuple(self._work)):
            task.cancel()
        await self._session.aclose()
        if tasks:
            await asyncio.wait(tasks)

    def _begin(self, said: Prompt | Shell) -> None:
        try:
            if isinstance(said, Prompt):
                self._turn = self._session.start(said)
            else:
                self.work(self._call(said.command))
        except OstlerError as error:
            self._failed(f"not sent: {error}", words_of(said))

    async def _call(self, command: str) -> None:
        """A command of the person's own; it is over when its result was shown."""
        call = ToolCall(new_id(), "bash", {"command": command}, origin="person")
        seen = self._seen[call.id] = asyncio.Event()
        try:
            await self._session.call(call)
            await seen.wait()
        except OstlerError as error:
            self._failed(str(error), "")
        finally:
            del self._seen[call.id]

    def _worked(self, task: asyncio.Task[None]) -> None:
        self._work.discard(task)
        if not task.cancelled():
            task.result()  # a bug is not swallowed
        self._changed()

    def _keep_queue(self) -> None:
        """The session keeps what waits, so that it survives a crash; what begins at once never waited."""
        waits = tuple(words_of(said) for said in self._queue) if self.busy else ()
        if waits != self._kept and not self._leaving:
            self._kept = waits
            task = asyncio.create_task(self._session.apply(Queue(waits)), name="queue")
            self._keeping.add(task)
            task.add_done_callback(self._was_kept)

    def _was_kept(self, task: asyncio.Task[bool]) -> None:
        self._keeping.discard(task)
        if task.cancelled():
            return
        try:
            task.result()  # a bug is not swallowed
        except OstlerError as error:
            self._failed(f"what waits would not survive a crash: {error}", "")
        self._changed()


def words_of(said: Prompt | Shell) -> str:
    """What was typed for it."""
    return said.text if isinstance(said, Prompt) else f"!{said.command}"


def new_id() -> str:
    """An id that no other has."""
    return f"person-{os.urandom(6).hex()}"
