"""The tool host of a session: its manifest, whether it is connected, and the calls that it has to answer."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from ostler.core.tools import ToolCall, ToolSpec
from ostler.text.sanitise import sanitise
from ostler.wire.client_frames import ToolResultMessage
from ostler.wire.frames_shared import HostInfo, ManifestTool, ToolManifest
from ostler.wire.manifest_rules import MAX_BYTES, MAX_TOOLS, ManifestError, check_tool, object_schema
from ostler.wire.server_frames import HostStatus, ServerFrame, ToolCallMessage, ToolCancel

if TYPE_CHECKING:
    from ostler.frontends.server.connection import ClientConnection

MAX_CLOSED = 10_000  # ids of calls whose results may be repeated


def check_manifest(manifest: ToolManifest) -> dict[str, ToolSpec]:
    """Return the tools by name. Raises `ManifestError`."""
    if len(manifest.tools) > MAX_TOOLS:
        raise ManifestError(f"the manifest has {len(manifest.tools)} tools; at most {MAX_TOOLS} are possible")
    specs: dict[str, ToolSpec] = {}
    size = 0
    for tool in manifest.tools:
        if tool.name in specs:
            raise ManifestError(f"the manifest has two tools named {tool.name}")
        size += check_tool(tool)
        if size > MAX_BYTES:
            raise ManifestError(f"the manifest has more than {MAX_BYTES} bytes")
        specs[tool.name] = _to_spec(tool)
    return specs


def _to_spec(tool: ManifestTool) -> ToolSpec:
    description, schema = sanitise(tool.description), object_schema(tool.input_schema)
    return ToolSpec(
        tool.name, tool.kind, description, schema, tool.effects, tool.reach, tool.runs_in, tool.namespace[:64]
    )


class OpenCall(msgspec.Struct, eq=False):
    """A call that was given to a host and has no result yet."""

    call: ToolCall
    host: HostInfo
    trace_id: str
    result: "asyncio.Future[ToolResultMessage]"
    started: float
    cancelled: bool = False
    given_up: str = ""  # why nobody waits for the result any more
    sent_to: "ClientConnection | None" = None


class HostLink:
    """Survives the connections of the host and the closing of the session."""

    def __init__(self, session_id: str, epoch: str, publish: Callable[[ServerFrame], None], host_wait: float) -> None:
        """`publish` sends a message to every client that announced its type."""
        self.info = HostInfo()
        self.tools: dict[str, ToolSpec] = {}
        self.answers_checks = False
        self.connection: ClientConnection | None = None
        self.open_calls: dict[str, OpenCall] = {}
        self.waiting = 0
        self._closed: dict[str, None] = {}
        self.releasing = False
        self._session_id = session_id
        self._epoch = epoch
        self._publish = publish
        self._host_wait = host_wait
        self._absent = {"": time.monotonic()}  # since when hosts are not connected, by id
        self._changed = asyncio.Event()

    def set_host(self, info: HostInfo, tools: dict[str, ToolSpec]) -> None:
        """Use another host or another manifest from now on."""
        if info.id != self.info.id:
            waiting = {call.host.id for call in self.open_calls.values()}
            self._absent = {host: since for host, since in self._absent.items() if host in waiting}
            self._absent.setdefault(self.info.id, time.monotonic())
        self.info, self.tools = info, tools

    def give_up_calls(self, taken_by: HostInfo) -> None:
        """End the open calls of other hosts, because their user moved the tools; `connect` lets them notice."""
        for call in self.open_calls.values():
            if call.host.id != taken_by.id:
                name, other = call.host.name or call.host.id or "the client", taken_by.name or "another client"
                call.given_up = f"{name} ran it when the tools were moved to {other}"

    def connect(self, connection: "ClientConnection") -> None:
        """Make this connection the host's, and send it the open calls again; it runs each id once."""
        self.connection = connection
        self._absent.pop(self.info.id, None)
        self._notify_change()
        for call in self.open_calls.values():
            if call.host.id == self.info.id and not call.cancelled:
                self._send(call, connection)

    def disconnect(self, connection: "ClientConnection") -> None:
        if self.connection is connection:
            self.connection = None
            self._absent[self.info.id] = time.monotonic()
            self._notify_change()

    def status(self) -> HostStatus:
        """Return the state of the host."""
        return self._status(self.info, is_connected=self.connection is not None)

    def statuses(self) -> list[HostStatus]:
        """Return the state of the host, and of earlier hosts whose calls still wait for them."""
        calls = [call for call in self.open_calls.values() if call.host.id != self.info.id and not call.given_up]
        earlier = {call.host.id: call.host for call in calls}
        return [self.status(), *(self._status(host, is_connected=False) for host in earlier.values())]

    def _status(self, host: HostInfo, *, is_connected: bool) -> HostStatus:
        waiting, left = 0, 0.0
        if not is_connected:
            waiting = sum(call.host.id == host.id for call in self.open_calls.values())
            waiting += self.waiting if host.id == self.info.id else 0
        if waiting:
            left = max(0.0, self._absent_limit(host) - time.monotonic())
        return HostStatus(self._session_id, host, is_connected, waiting, round(left, 1))

    def _absent_limit(self, host: HostInfo) -> float:
        """Return until when calls wait for a host that is not connected."""
        return self._absent.setdefault(host.id, time.monotonic()) + self._host_wait

    async def wait_connected(self) -> bool:
        """Wait for a host. Return False if none is connected within the limit."""
        if self.connection:
            return True
        self.waiting += 1
        self._publish(self.status())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._host_wait):
                    while not self.connection:
                        await self._changed.wait()
        finally:
            self.waiting -= 1
        return self.connection is not None

    async def run(self, call: ToolCall, trace_id: str, timeout: float) -> ToolResultMessage | str:
        """Give a call to the host and return its result, or why there is none."""
        loop = asyncio.get_running_loop()
        open_call = OpenCall(call, self.info, trace_id, loop.create_future(), time.monotonic())
        self.open_calls[call.id] = open_call
        if self.connection:
            self._send(open_call, self.connection)
        return await self._wait_result(open_call, open_call.started + timeout)

    async def cancel(self, call_id: str, seconds: float) -> ToolResultMessage | None:
        """Tell the host to stop a call, and wait a limited time for its result."""
        call = self.open_calls.get(call_id)
        if call is None or self.releasing:
            return None
        call.cancelled = True
        if not self.connection or "tool.cancel" not in self.connection.features or call.host.id != self.info.id:
            return None
        self.connection.send(ToolCancel(self._session_id, call_id, seconds))
        await asyncio.wait([call.result], timeout=seconds)
        return call.result.result() if call.result.done() else None

    def close_call(self, call_id: str) -> None:
        call = self.open_calls.pop(call_id, None)
        self._closed[call_id] = None
        while len(self._closed) > MAX_CLOSED:
            del self._closed[next(iter(self._closed))]
        if call and not call.given_up and call.host.id != self.info.id:
            status = self._status(call.host, is_connected=False)
            if not status.waiting_calls:
                self._publish(status)

    def is_closed(self, call_id: str) -> bool:
        """Return whether this call was open before, also if it is in no record, such as that of a subagent."""
        return call_id in self._closed

    def answer(self, message: ToolResultMessage) -> bool:
        """Use the first result for a call. Return False if the call is not open."""
        call = self.open_calls.get(message.tool_call_id)
        if call is None:
            return False
        if not call.result.done():
            call.result.set_result(message)
        return True

    async def _wait_result(self, call: OpenCall, deadline: float) -> ToolResultMessage | str:
        while not call.result.done():
            if call.given_up:
                return call.given_up
            absent = self.connection is None or self.info.id != call.host.id
            limit = min(deadline, self._absent_limit(call.host)) if absent else deadline
            left = limit - time.monotonic()
            if left <= 0:
                name = call.host.name or call.host.id or "the client"
                return f"{name} was not connected for {self._host_wait:g} seconds" if absent else "it took too long"
            changed = asyncio.ensure_future(self._changed.wait())
            waits: tuple[asyncio.Future[Any], ...] = (call.result, changed)
            try:
                await asyncio.wait(waits, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
        return call.result.result()

    def _notify_change(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        for status in self.statuses():
            self._publish(status)

    def _send(self, call: OpenCall, connection: "ClientConnection") -> None:
        if call.sent_to is connection:
            return
        call.sent_to = connection
        connection.send_in_order(
            lambda seq: ToolCallMessage(
                self._session_id,
                call.call.id,
                call.call.tool,
                call.call.arguments,
                seq,
                self._epoch,
                call.trace_id,
                call.host,
                call.call.rule_layers(),
                "validation" if call.call.origin == "validation" else "model",
            )
        )
