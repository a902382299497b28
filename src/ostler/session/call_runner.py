"""Runs tool calls: each id once, within the checkpoint of its turn or its own, cancelled with its turn."""

import asyncio
import traceback
from collections.abc import Sequence, Set
from contextlib import suppress

from ostler.core.errors import BackendError, Fault, JournalError, OstlerError
from ostler.core.events import Event, Notice, ToolCalled, ToolFinished, ToolStarted, Waiting
from ostler.core.protocols import BackendContext, ToolRunner
from ostler.core.session_view import Records
from ostler.core.tools import ToolCall, ToolResult
from ostler.core.undo import WHOLE_WORKSPACE
from ostler.session.checkpointing import Checkpointer, WorkCheckpoint
from ostler.session.state import SessionState

HEARTBEAT_SECONDS = 1.0  # seconds between heartbeats of a running call
STOP_SECONDS = 10.0  # how long a cancelled call may take to stop
NOT_STOPPED = "Cancelled, but it has not stopped; it may have partly completed or still run. Check before you retry."


class _NotStoppedError(Exception):
    """A cancelled call did not stop in time."""


class CallRunner:
    """The running calls of a session. Calls of a turn end with it; `standalone` ones, by id, do not."""

    def __init__(
        self, tools: ToolRunner, context: BackendContext, state: SessionState, checkpointer: Checkpointer
    ) -> None:
        self.standalone: set[str] = set()
        self.releasing = False  # then a call that is stopped gets no result
        self._tools = tools
        self._context = context
        self._state = state
        self._checkpointer = checkpointer
        self._running: dict[str, asyncio.Task[ToolResult]] = {}
        self._abandoned: dict[str, asyncio.Task[ToolResult]] = {}
        self._turn_checkpoint: WorkCheckpoint | None = None
        self._own_checkpoints: dict[str, WorkCheckpoint] = {}

    def begin_turn(self, turn_id: str) -> None:
        self._turn_checkpoint = self._checkpointer.start(turn_id)

    async def end_turn(self) -> Sequence[str]:
        """Stop the turn's calls and finish its checkpoint. Return an error text if the turn cannot be undone."""
        await self._stop(self._running.keys() - self.standalone)
        turn, self._turn_checkpoint = self._turn_checkpoint, None
        # Standalone calls that shared the turn's checkpoint need their own from now on.
        for call_id in self.standalone - self._own_checkpoints.keys():
            self._own_checkpoints[call_id] = self._checkpointer.start(call_id)
            if self._state.started.get(call_id):
                self._own_checkpoints[call_id].begin()
                self._own_checkpoints[call_id].require()
        return await turn.finish(self._report_progress) if turn else ()

    async def stop_all(self) -> None:
        await self._stop(set(self._running))

    async def prepare_effects(self, call_id: str = "", *, files_only: bool = False) -> None:
        """Wait for the checkpoint of a call or the turn. Report the paths that undo cannot restore, once per session.

        If the turn ends in the meantime, wait for the checkpoint that the standalone call gets instead.
        """
        uncovered: list[str] = []
        previous: WorkCheckpoint | None = None
        while (checkpoint := self._checkpoint_of(call_id)) is not previous:
            previous = checkpoint
            if checkpoint:
                uncovered += await checkpoint.wait_ready(files_only=files_only, on_progress=self._report_progress)
        self.warn_about_undo(uncovered)

    def _report_progress(self, seconds: float, progress: str) -> None:
        self._context.emit(Waiting(seconds, f"saving the workspace for undo{progress and f', {progress}'}"))

    def warn_about_undo(self, not_restorable: Sequence[str]) -> None:
        for path in not_restorable:
            if path.startswith(WHOLE_WORKSPACE):
                reason = path.removeprefix(WHOLE_WORKSPACE).removesuffix(")")
                self._context.emit(Notice("warning", f"undo is off: {reason}"))
        paths = [path for path in not_restorable if not path.startswith(WHOLE_WORKSPACE)]
        if paths:
            self._context.emit(Notice("warning", "undo cannot restore: " + "; ".join(paths)))

    async def run(self, call: ToolCall) -> ToolResult:
        """Run a call and return its result. A second request while it runs waits for the same result."""
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
        if checkpoint := self._own_checkpoints.pop(call_id, None):
            await checkpoint.finish()

    def events_after_turn(self) -> list[Event]:
        """Return the events of running standalone calls, to emit again because `TurnEnded` clears all calls."""
        events: list[Event] = []
        for call in self._state.calls_without_result():
            if call.id in self.standalone:
                effects = self._state.started.get(call.id)
                events.append(ToolCalled(call))
                events += [] if effects is None else [ToolStarted(call.id, call.tool, effects)]
        return events

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
            result = await self._run_until_stopped(call)
        except (asyncio.CancelledError, JournalError):
            raise
        except _NotStoppedError:
            result = self._abandoned_result(call)
        except OstlerError as error:
            result = ToolResult(call.id, "failed", str(error), fault=error.fault)
        except Exception as bug:
            fault = fault_from_exception(bug)
            text = f"internal error in tool {call.tool}: {fault.message}; please report this bug"
            self._context.emit(Notice("error", text))
            result = ToolResult(call.id, "failed", f"Internal error in the tool: {fault.message}", fault=fault)
        finally:
            self._running.pop(call.id, None)
            self._after_call(call.id)
            if not (self.releasing and result.status in ("cancelled", "unknown")):
                self._context.emit(ToolFinished(result))
        return result

    async def _run_until_stopped(self, call: ToolCall) -> ToolResult:
        """Run a call. If it is cancelled, wait a limited time until it stops, then raise `_NotStoppedError`.

        A call that is abandoned then runs on as a task, but its result is dropped.
        """
        work: asyncio.Task[ToolResult] = asyncio.ensure_future(self._tools.run(call, self._context))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await _stop_task(work)
        if not work.done():
            self._abandoned[call.id] = work
            work.add_done_callback(lambda _: self._forget_abandoned(call.id, work))
            raise _NotStoppedError
        return work.result()

    def check_not_abandoned(self, call_id: str) -> None:
        """Raise `CancelledError` in a call that has its result already, because it did not stop in time."""
        if call_id in self._abandoned:
            raise asyncio.CancelledError

    def _forget_abandoned(self, call_id: str, work: "asyncio.Task[ToolResult]") -> None:
        del self._abandoned[call_id]
        if not work.cancelled():
            work.exception()  # marked as retrieved; nobody waits for it any more

    def _abandoned_result(self, call: ToolCall) -> ToolResult:
        text = f"{call.tool} has not stopped after {STOP_SECONDS:g} seconds; its result will be ignored"
        self._context.emit(Notice("warning", text))
        may_have_effects = self._state.started.get(call.id, False)
        if may_have_effects:
            return ToolResult(call.id, "unknown", NOT_STOPPED)
        return ToolResult(call.id, "cancelled", "Cancelled before it finished; it changed nothing.")

    def _heartbeat(self, call_id: str) -> None:
        """Repeat the heartbeat while a call runs, so that its changes are attributed to it even after a crash."""
        if call_id in self._running:
            if checkpoint := self._checkpoint_of(call_id):
                checkpoint.heartbeat()
            asyncio.get_running_loop().call_later(HEARTBEAT_SECONDS, self._heartbeat, call_id)

    def _after_call(self, call_id: str) -> None:
        """Record the end of a call's side effects. If no other call runs, the turn is idle."""
        if checkpoint := self._checkpoint_of(call_id):
            checkpoint.heartbeat()
        if self._turn_checkpoint and not (self._running or self._state.info.runs_own_tools):
            self._turn_checkpoint.mark_idle()


async def _stop_task(task: "asyncio.Task[ToolResult]") -> None:
    """Cancel a task and wait until it is done, at most `STOP_SECONDS`. A further cancellation is passed on to it."""
    clock = asyncio.get_running_loop().time
    end = clock() + STOP_SECONDS
    while not task.done() and (left := end - clock()) > 0:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task], timeout=left)


def find_earlier_result(call: ToolCall, records: Records, active_records: Records) -> ToolResult | None:
    """Return the result of a call that ran before, even if it was reverted, or None.

    After a revert the model can reuse an id for a different call; that one has no result yet.
    """
    if result := active_records.result(call.id):
        return result
    seq = records.result_seq(call.id)
    if seq is None:
        return None
    indexes = (index for index in records.indexes_of(("tool_called",)) if index < records.index_after(seq))
    events = (records[index].event for index in indexes)
    same = any(isinstance(event, ToolCalled) and _is_same_call(event.call, call) for event in events)
    return records.result(call.id) if same else None


def _is_same_call(call: ToolCall, other: ToolCall) -> bool:
    return (call.id, call.tool, call.arguments) == (other.id, other.tool, other.arguments)


def fault_from_exception(error: Exception) -> Fault:
    """Return a fault for an unexpected exception, with the traceback as its hint."""
    trace = "".join(traceback.format_exception(error))
    return BackendError(f"{type(error).__name__}: {error}", code="bug", hint=trace).fault
