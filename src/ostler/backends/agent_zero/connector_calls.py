"""Runs the operations that a server requests over its connector, and sends their results."""

import asyncio
from collections.abc import Callable
from typing import Any

from ostler.backends.agent_zero.connector_operations import operation_reply, read_operation, refusal
from ostler.backends.agent_zero.transport import TurnListener
from ostler.core.errors import BackendError, OstlerError, ToolError

MAX_RUNNING = 32


class OperationRunner:
    """The operations of one session. Results that cannot be sent wait for the next connection."""

    def __init__(
        self,
        listener: TurnListener,
        send: Callable[[str, dict[str, Any]], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self.exec_config: dict[str, Any] = {}  # of the server
        self._listener = listener
        self._send = send
        self._on_failure = on_failure
        self._running: set[asyncio.Task[None]] = set()
        self._unsent: list[tuple[str, dict[str, Any]]] = []

    @property
    def is_busy(self) -> bool:
        return bool(self._running)

    def start(self, event: str, members: dict[str, Any], problem: str = "") -> None:
        """Start an operation; with a `problem` it is refused."""
        if not problem and len(self._running) >= MAX_RUNNING:
            problem = "too many operations run at the same time"
        if problem:
            self._reply(event, refusal(members, problem))
            return
        task = asyncio.ensure_future(self._run(event, members))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def send_waiting(self) -> None:
        """Send the results of operations that ended without a connection."""
        waiting, self._unsent = self._unsent, []
        for event, reply in waiting:
            self._reply(event, reply)

    async def stop(self) -> None:
        """Cancel the running operations, because the turn has ended."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._unsent.clear()

    async def _run(self, event: str, members: dict[str, Any]) -> None:
        try:
            request = read_operation(event, members, self.exec_config)
            reply = operation_reply(members, await self._listener.run_tool(request))
        except ToolError as error:
            reply = refusal(members, str(error))
        except OstlerError as error:
            self._on_failure(error)
            reply = refusal(members, str(error))
        except asyncio.CancelledError:
            self._reply(event, refusal(members, "the user cancelled the turn"))
            raise
        except Exception as error:
            self._on_failure(error)
            reply = refusal(members, "Ostler failed; the user was told")
        self._reply(event, reply)

    def _reply(self, event: str, reply: dict[str, Any]) -> None:
        try:
            self._send(f"{event[:100]}_result", reply)
        except BackendError:
            self._unsent.append((event, reply))
