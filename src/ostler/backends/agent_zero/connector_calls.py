"""Runs the operations that a server requests over its connector, and sends their results."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec

from ostler.backends.agent_zero.connector_operations import operation_reply, patience_for, read_operation, refusal
from ostler.backends.agent_zero.transport import TurnListener
from ostler.core.errors import BackendError, OstlerError, ToolError
from ostler.wire.agent_zero.loose_values import to_json

MAX_RUNNING = 32
KEEP_SECONDS = 120.0  # how long the result of an operation is kept that the server did not wait for
STILL_WAITING = "it is not finished, or the user has not allowed it yet; request exactly the same again for its result"


class _Operation(msgspec.Struct, eq=False):
    """One operation. `is_late`: the server has stopped waiting for it; `ended` is when its result then arrived."""

    task: asyncio.Task[dict[str, Any]]
    is_late: bool = False
    ended: float = 0.0


class OperationRunner:
    """The operations of one session. Results that cannot be sent wait for the next connection.

    A server waits only for some time, for example 30 seconds, but a user may need longer to decide. It then learns that
    the operation is not finished. If it requests the same again, it gets the result of the first request.
    """

    def __init__(
        self,
        host: str,
        listener: TurnListener,
        send: Callable[[str, dict[str, Any]], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self.exec_config: dict[str, Any] = {}  # of the server
        self._host = host
        self._listener = listener
        self._send = send
        self._on_failure = on_failure
        self._operations: dict[str, _Operation] = {}  # by content, if the server may request them again
        self._answering: set[asyncio.Task[None]] = set()
        self._unsent: list[tuple[str, dict[str, Any]]] = []

    @property
    def is_busy(self) -> bool:
        return bool(self._answering) or any(not operation.task.done() for operation in self._operations.values())

    def start(self, event: str, members: dict[str, Any], problem: str = "") -> None:
        """Start an operation; with a `problem` it is refused."""
        if not problem and len(self._answering) >= MAX_RUNNING:
            problem = "too many operations run at the same time"
        if problem:
            self._reply(event, refusal(members, problem, self._host))
            return
        task = asyncio.ensure_future(self._answer(event, members))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    def send_waiting(self) -> None:
        """Send the results of operations that ended without a connection."""
        waiting, self._unsent = self._unsent, []
        for event, reply in waiting:
            self._reply(event, reply)

    async def stop(self) -> None:
        """Cancel the running operations, because the turn has ended."""
        running = [*self._answering, *(operation.task for operation in self._operations.values())]
        self._operations.clear()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._unsent.clear()

    async def _answer(self, event: str, members: dict[str, Any]) -> None:
        """Run an operation, or wait for the same one that runs already, as long as the server does."""
        key = to_json([event, sorted((name, value) for name, value in members.items() if name != "op_id")])
        operation = self._operations.get(key)
        if operation is None or not operation.is_late or self._is_outdated(operation):
            operation = _Operation(asyncio.ensure_future(self._run(event, members)))
            self._operations[key] = operation
        try:
            done, _ = await asyncio.wait({operation.task}, timeout=patience_for(event, members, self.exec_config))
        except asyncio.CancelledError:
            operation.task.cancel()
            self._reply(event, refusal(members, "the user cancelled the turn", self._host))
            raise
        if done:
            self._operations.pop(key, None)
            self._reply(event, {**operation.task.result(), "op_id": members.get("op_id", "")})
        else:
            operation.is_late = True
            operation.task.add_done_callback(lambda _: _mark_ended(operation))
            self._reply(event, refusal(members, STILL_WAITING, self._host))

    async def _run(self, event: str, members: dict[str, Any]) -> dict[str, Any]:
        try:
            request = read_operation(event, members, self.exec_config)
            return operation_reply(members, await self._listener.run_tool(request))
        except ToolError as error:
            return refusal(members, str(error), self._host)
        except OstlerError as error:
            self._on_failure(error)
            return refusal(members, str(error), self._host)
        except Exception as error:
            self._on_failure(error)
            return refusal(members, "Ostler failed and has reported it to the user", self._host)

    def _is_outdated(self, operation: _Operation) -> bool:
        return operation.ended > 0 and time.monotonic() - operation.ended > KEEP_SECONDS

    def _reply(self, event: str, reply: dict[str, Any]) -> None:
        try:
            self._send(f"{event[:100]}_result", reply)
        except BackendError:
            self._unsent.append((event, reply))


def _mark_ended(operation: _Operation) -> None:
    operation.ended = time.monotonic()
