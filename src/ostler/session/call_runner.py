"""The calls that run: each once, kept by its turn's checkpoint or its own, and ended with what it belongs to."""

import asyncio
import traceback
from collections.abc import Sequence, Set

from ostler.core.errors import BackendError, Fault, JournalError, OstlerError
from ostler.core.events import Event, Notice, ToolCalled, ToolFinished, ToolStarted
from ostler.core.protocols import BackendContext, Records, ToolRunner
from ostler.core.tools import ToolCall, ToolResult
from ostler.session.checkpointing import Checkpointer, WorkCheckpoint
from ostler.session.state import SessionState

HEARTBEAT_SECONDS = 1.0  # seconds between the signs of life of a call that runs


class CallRunner:
    """Those of the turn, which end with it, and those `beside` it, by their ids, which go on."""

    def __init__(
        self, tools: ToolRunner, context: BackendContext, state: SessionState, checkpointer: Checkpointer
    ) -> None:
        self.standalone: set[str] = set()
        self._tools = tools
        self._context = context
        self._state = state
        self._checkpointer = checkpointer
        self._running: dict[str, asyncio.Task[ToolResult]] = {}
        self._turn_checkpoint: WorkCheckpoint | None = None
        self._own_checkpoints: dict[str, WorkCheckpoint] = {}

    def begin_turn(self, turn_id: str) -> None:
        self._turn_checkpoint = self._checkpointer.start(turn_id)

    async def end_turn(self) -> Sequence[str]:
        """Stop its calls and end its checkpoint; what went wrong with that is told."""
        await self._stop(self._running.keys() - self.standalone)
        turn, self._turn_checkpoint = self._turn_checkpoint, None
        for call_id in (
            self.standalone - self._own_checkpoints.keys()
        ):  # the turn's checkpoint was theirs too, up to now
            self._own_checkpoints[call_id] = self._checkpointer.start(call_id)
            if self._state.started.get(call_id):
                self._own_checkpoints[call_id].require()
        return await turn.finish() if turn else ()

    async def stop_all(self) -> None:
        await self._stop(set(self._running))

    async def wait_for_checkpoint(self, call_id: str = "") -> Sequence[str]:
        """Wait until a call, or the turn itself, may have an effect; what undo does not reach is told once.

        Should the turn end meanwhile, the call is kept by a checkpoint of its own.
        """
        uncovered: list[str] = []
        waited: WorkCheckpoint | None = None
        while (unit := self._checkpoint_of(call_id)) is not waited:
            waited = unit
            uncovered += await unit.wait_ready() if unit else ()
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

    def begin_standalone(self, call_id: str) -> None:
        self.standalone.add(call_id)
        if self._turn_checkpoint is None:
            self._own_checkpoints[call_id] = self._checkpointer.start(call_id)

    async def end_standalone(self, call_id: str) -> None:
        self.standalone.discard(call_id)
        if unit := self._own_checkpoints.pop(call_id, None):
            await unit.finish()

    def events_after_turn(self) -> list[Event]:
        """What is to be told again after the turn's end, which closes the book on all calls before it."""
        told: list[Event] = []
        for call in self._state.calls_without_result():
            if call.id in self.standalone:
                effects = self._state.started.get(call.id)
                told.append(ToolCalled(call))
                told += [] if effects is None else [ToolStarted(call.id, call.tool, effects)]
        return told

    def _checkpoint_of(self, call_id: str) -> WorkCheckpoint | None:
        return self._own_checkpoints.get(call_id, self._turn_checkpoint)

    async def _stop(self, call_ids: Set[str]) -> None:
        for task in (tasks := [self._running[call_id] for call_id in call_ids]):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run_once(self, call: ToolCall) -> ToolResult:
        result = ToolResult(call.id, "cancelled", "Cancelled before it finished.")
        asyncio.get_running_loop().call_later(HEARTBEAT_SECONDS, self._heartbeat, call.id)
        try:
            result = await self._tools.run(call, self._context)
        except (asyncio.CancelledError, JournalError):
            raise
        except OstlerError as error:
            result = ToolResult(call.id, "failed", str(error), fault=error.fault)
        except Exception as bug:
            fault = fault_from_exception(bug)
            told = f"{call.tool} failed in an unexpected way ({fault.message}); please report it"
            self._context.emit(Notice("error", told))
            result = ToolResult(call.id, "failed", f"The tool itself failed: {fault.message}", fault=fault)
        finally:
            self._running.pop(call.id, None)
            self._after_call(call.id)
            self._context.emit(ToolFinished(result))
        return result

    def _heartbeat(self, call_id: str) -> None:
        """While a call runs, what it changed so far is known as its work even if this process is killed."""
        if call_id in self._running:
            if unit := self._checkpoint_of(call_id):
                unit.heartbeat()
            asyncio.get_running_loop().call_later(HEARTBEAT_SECONDS, self._heartbeat, call_id)

    def _after_call(self, call_id: str) -> None:
        """A call's effects are over; where nothing else runs, so are the turn's for now."""
        if unit := self._checkpoint_of(call_id):
            unit.heartbeat()
        if self._turn_checkpoint and not (self._running or self._state.info.runs_own_tools):
            self._turn_checkpoint.mark_idle()


def find_earlier_result(call: ToolCall, records: Records, active_records: Records) -> ToolResult | None:
    """What came of a call already. What was run stays so when it is reverted, unless its id now means another call."""
    if result := active_records.result(call.id):
        return result
    seq = records.result_seq(call.id)
    if seq is None:
        return None
    called = (records[at].event for at in records.indexes_of(("tool_called",)) if at < records.index_after(seq))
    same = any(isinstance(event, ToolCalled) and _is_same_call(event.call, call) for event in called)
    return records.result(call.id) if same else None


def _is_same_call(one: ToolCall, other: ToolCall) -> bool:
    return (one.id, one.tool, one.arguments) == (other.id, other.tool, other.arguments)


def fault_from_exception(error: Exception) -> Fault:
    """A fault that keeps the traceback."""
    trace = "".join(traceback.format_exception(error))
    return BackendError(f"{type(error).__name__}: {error}", code="bug", hint=trace).fault
