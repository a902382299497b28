"""One socket connection with timed reads."""

import asyncio
import socket

_PAUSE_READING_ABOVE = 1 << 20
_TCP_USER_TIMEOUT_MS = 20_000
_NO_DEADLINE = float("inf")


class SocketConnection(asyncio.Protocol):
    """The receiving end of a connection, for one reader at a time.

    With asyncio streams every read would need its own task or timer to detect silence; here one timer serves all reads.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport
        self._parts: list[bytes] = []
        self._size = 0
        self._paused = False
        self._ended = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether another request may be sent: the connection is open and has no unread data."""
        return not self._ended and not self._parts and not self.transport.is_closing()

    def write(self, data: bytes) -> None:
        """Send data without waiting; the transport buffers it."""
        self.transport.write(data)

    async def read(self, timeout: float | None = None) -> bytes | None:
        """Return all data that has arrived, b"" at the end, or None on timeout. Raises `OSError`."""
        if not self._parts and not self._ended:
            await self._wait(timeout)
        if self._parts:
            return self._take_data()
        if self._error is not None:
            raise self._error
        return b"" if self._ended else None

    def abort(self) -> None:
        """Close the connection immediately."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.transport.abort()

    def _take_data(self) -> bytes:
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        if self._paused:
            self._paused = False
            self.transport.resume_reading()
        return data

    async def _wait(self, timeout: float | None) -> None:
        self._waiter = self._loop.create_future()
        self._deadline = _NO_DEADLINE if timeout is None else self._loop.time() + timeout
        if timeout is not None and (self._timer is None or self._timer.when() > self._deadline):
            self._set_timer()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._deadline, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._waiter is None or self._deadline == _NO_DEADLINE:
            return
        if self._loop.time() < self._deadline:
            self._set_timer()
        else:
            self._wake_reader()

    def _wake_reader(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        _set_keepalive(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        if self._size > _PAUSE_READING_ABOVE and not self._paused:
            self._paused = True
            self.transport.pause_reading()
        self._wake_reader()

    def eof_received(self) -> None:
        self._ended = True
        self._wake_reader()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._error = exc
        self._wake_reader()


def _set_keepalive(sock: socket.socket | None) -> None:
    """Detect a lost peer: sent data must be acknowledged soon, and long silence is probed."""
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 5), ("TCP_USER_TIMEOUT", _TCP_USER_TIMEOUT_MS)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
