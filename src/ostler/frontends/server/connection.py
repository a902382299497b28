"""One client's connection to a session, independent of its transport."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from ostler.core.protocols import Session
from ostler.frontends.server.frame_translator import FrameTranslator
from ostler.frontends.server.outbox import Outbox
from ostler.wire.client_frames import Hello
from ostler.wire.frames_shared import FEATURES, CloseCode
from ostler.wire.server_frames import NEEDED_FEATURE, ErrorMessage, ServerFrame

if TYPE_CHECKING:
    from ostler.frontends.server.hub import SessionHub


class ClientConnection:
    """The announcement of a client, and the messages for it: the log in order, and others."""

    def __init__(self, hub: "SessionHub", hello: Hello, user: str) -> None:
        config = hub.config
        self.hello = hello
        self.user = user
        self.features = frozenset(hello.features) & frozenset(FEATURES)
        self.is_host = hello.tool_manifest is not None
        self.outbox = Outbox(hub.id, hub.epoch, config.outbox_frames, config.outbox_bytes, config.max_frame)
        self.position = 0  # the last record that was put into the outbox
        self.close_code = 0
        self.close_reason = ""
        self.close_error: ErrorMessage | None = None
        self.written = asyncio.Event()  # set when the transport has sent everything
        self._hub = hub
        self._translator = FrameTranslator(hub.id, hub.epoch, self.outbox, self.features, hub.trace_of)
        self._waiting: list[tuple[int, Callable[[int], ServerFrame]]] = []
        self._pump: asyncio.Task[None] | None = None

    def start(self, session: Session, since: int) -> None:
        """Begin to send the log after record `since`."""
        self.position = since
        self._send_waiting()
        if self.hello.resume and self.hello.resume.last_seq == since:
            self._translator.resume(self.hello.resume)
        self._pump = asyncio.create_task(self._send_log(session), name="log of a client")

    def send(self, frame: ServerFrame) -> None:
        """Send a message now, if the client announced its type."""
        needed = NEEDED_FEATURE.get(type(frame))
        if needed is None or needed in self.features:
            self.outbox.put(frame)
            if self.outbox.overflowed:
                self.close(CloseCode.TOO_SLOW, "the client does not read its messages")

    def send_in_order(self, make: Callable[[int], ServerFrame]) -> None:
        """Send a message after everything that is in the log now."""
        after = self._hub.last_seq
        if self.position >= after and not self._waiting:
            self.send(make(self.position))
        else:
            self._waiting.append((after, make))

    def close(self, code: int, reason: str, error: ErrorMessage | None = None) -> None:
        """End the connection after the messages that wait."""
        if self.close_code:
            return
        if error:
            self.outbox.put(error)
        self.close_error = error
        self.close_code, self.close_reason = code, reason[:110].encode("ascii", "replace").decode()
        self.stop()

    def stop(self) -> None:
        """Stop sending; called when the transport is gone."""
        if self._pump:
            self._pump.cancel()
        self.outbox.close()

    async def _send_log(self, session: Session) -> None:
        """Follow the log, also over closings of the session, in which the client takes no part."""
        while True:
            subscription = session.subscribe(self.position)
            try:
                async for envelope in subscription:
                    await self.outbox.wait_for_space()
                    self._translator.put(envelope, session.records())
                    self.position = max(self.position, envelope.seq)
                    self._send_waiting()
            finally:
                subscription.close()
            if self._hub.closing:
                return
            session = await self._hub.open_session()

    def _send_waiting(self) -> None:
        while self._waiting and self._waiting[0][0] <= self.position:
            self.send(self._waiting.pop(0)[1](self.position))
