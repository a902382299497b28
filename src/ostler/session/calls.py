"""The calls that run: each once, kept by its turn's checkpoint or its own, and ended with what it belongs to."""

import asyncio
import traceback
from collections.abc import Sequence, Set

from ostler.session.keeping import Keeping, Unit
from ostler.session.state import SessionState
from ostler.vocabulary.errors import BackendError, Fault, JournalError, OstlerError
from ostler.vocabulary.events import Event, Notice, ToolCalled, ToolFinished, ToolStarted
from ostler.vocabulary.seams import Past, Stage, ToolRunner
from ostler.vocabulary.tools import ToolCall, ToolResult

BEAT = 1.0  # seconds between the signs of life of a call that runs


class Calls:
    """Those of the turn, which end with it, and those `beside` it, by their ids, which go on."""

    def __init__(self, tools: ToolRunner, stage: Stage, state: SessionState, keeping: Keeping) -> None:
        self.beside: set[str] = set()
        self._tools = tools
        self._stage = stage
        self._state = state
        self._keeping = keeping
        self._running: dict[str, asyncio.Task[ToolResult]] = {}
        self._turn: Unit | None = None
        self._own: dict[str, Unit] = {}

    def begin_turn(self, turn_id: str) -> None:
        self._turn = self._keeping.begin(turn_id)

    async def end_turn(self) -> Sequence[str]:
        """Stop its calls and end its checkpoint; what went wrong with that is told."""
        await self._stop(self._running.keys() - self.beside)
        turn, self._turn = self._turn, None
        for call_id in self.beside - self._own.keys():  # the turn's checkpoint was theirs too, up to now
            self._own[call_id] = self._keeping.begin(call_id)
            if self._state.started.get(call_id):
                self._own[call_id].hold()
        return await turn.finish() if turn else ()

    async def stop_all(self) -> None:
        await self._stop(set(self._running))

    async def ready(self, call_id: str = "") -> Sequence[str]:
        """Wait until a call, or the turn itself, may have an effect; what undo does not reach is told once.

        Should the turn end meanwhile, the call is kept by a checkpoint of its own.
        """
        uncovered: list[str] = []
        waited: Unit | None = None
        while (unit := self._unit_of(call_id)) is not waited:
            waited = unit
            uncovered += await unit.ready() if unit else ()
        return uncovered

    async def run(self, call: ToolCall) -> ToolResult:
        """What comes of a call; who asks again while it runs gets the same."""
        if call.id not in self._running:
            self._running[call.id] = asyncio.create_task(self._run_once(call), name=f"tool {call.id}")
        try:
            return await asyncio.shield(self._running[call.id])
        except asyncio.CancelledError:
            task = self._running.get(call.id)
            if task:
                task.cancel()
                await asyncio.wait([task])
            raise

    def begin_beside(self, call_id: str) -> None:
        self.beside.add(call_id)
        if self._turn is None:
            self._own[call_id] = self._keeping.begin(call_id)

    async def end_beside(self, call_id: str) -> None:
        self.beside.discard(call_id)
        if unit := self._own.pop(call_id, None):
            await unit.finish()

    def outliving(self) -> list[Event]:
        """What is to be told again after the turn's end, which closes the book on all calls before it."""
        told: list[Event] = []
        for call in self._state.unanswered():
            if call.id in self.beside:
                effects = self._state.started.get(call.id)
                told.append(ToolCalled(call))
                told += [] if effects is None else [ToolStarted(call.id, call.tool, effects)]
        return told

    def _unit_of(self, call_id: str) -> Unit | None:
        return self._own.get(call_id, self._turn)

    async def _stop(self, of: Set[str]) -> None:
        for task in (tasks := [self._running[call_id] for call_id in of]):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run_once(self, call: ToolCall) -> ToolResult:
        result = ToolResult(call.id, "cancelled", "Cancelled before it finished.")
        asyncio.get_running_loop().call_later(BEAT, self._beat, call.id)
        try:
            result = await self._tools.run(call, self._stage)
        except (asyncio.CancelledError, JournalError):
            raise
        except OstlerError as error:
            result = ToolResult(call.id, "failed", str(error), fault=error.fault)
        except Exception as bug:
            fault = fault_of_bug(bug)
            told = f"{call.tool} failed in an unexpected way ({fault.message}); please report it"
            self._stage.emit(Notice("error", told))
            result = ToolResult(call.id, "failed", f"The tool itself failed: {fault.message}", fault=fault)
        finally:
            self._running.pop(call.id, None)
            self._rest_after(call.id)
            self._stage.emit(ToolFinished(result))
        return result

    def _beat(self, call_id: str) -> None:
        """While a call runs, what it changed so far is known as its work even if this process is killed."""
        if call_id in self._running:
            if unit := self._unit_of(call_id):
                unit.living()
            asyncio.get_running_loop().call_later(BEAT, self._beat, call_id)

    def _rest_after(self, call_id: str) -> None:
        """A call's effects are over; where nothing else runs, so are the turn's for now."""
        if unit := self._unit_of(call_id):
            unit.living()
        if self._turn and not (self._running or self._state.info.acts_itself):
            self._turn.resting()


def ran_before(call: ToolCall, past: Past, counting: Past) -> ToolResult | None:
    """What came of a call already. What was run stays so when it is reverted, unless its id now means another call."""
    if result := counting.result(call.id):
        return result
    seq = past.result_seq(call.id)
    if seq is None:
        return None
    called = (past[at].event for at in past.of(("tool_called",)) if at < past.after(seq))
    same = any(isinstance(event, ToolCalled) and _same(event.call, call) for event in called)
    return past.result(call.id) if same else None


def _same(one: ToolCall, other: ToolCall) -> bool:
    return (one.id, one.tool, one.arguments) == (other.id, other.tool, other.arguments)


def fault_of_bug(bug: Exception) -> Fault:
    """A fault that keeps the traceback."""
    trace = "".join(traceback.format_exception(bug))
    return BackendError(f"{type(bug).__name__}: {bug}", code="bug", hint=trace).fault
