"""The messages that wait to be sent to one client. Waiting deltas of the same message are joined."""

import asyncio
from collections import deque
from typing import Any

import msgspec

from ostler.core.events import Envelope, Notice, TextDelta, ThoughtDelta
from ostler.text.truncate import truncate_middle
from ostler.wire.event_codec import encode_event
from ostler.wire.frames import MARGIN, MAX_FRAME_BYTES, encode_frame
from ostler.wire.server_frames import AssistantDelta, EventMessage, ServerFrame

TEXT_SIZE = 500_000  # characters of a joined delta; one character has at most 6 bytes in a message
TEXT_LIMITS = (200_000, 5_000)  # characters of one text
_BINARY_FIELD = "data"  # of an image, which cannot be cut


class OutgoingMessage(msgspec.Struct, frozen=True):
    """An encoded message and its `seq`, or 0 if it has none."""

    data: bytes
    seq: int = 0


class _Text(msgspec.Struct):
    """Joined deltas: those of `assistant.delta` have an offset, those of `event` the envelope of the last one."""

    key: tuple[str, str]
    parts: list[str]
    seq: int
    size: int
    offset: int = 0
    envelope: Envelope | None = None


class Outbox:
    """A queue with a limit. `wait_for_space` slows down the log; other messages count against twice the limit."""

    def __init__(
        self, session_id: str, epoch: str, max_frames: int, max_bytes: int, max_frame: int = MAX_FRAME_BYTES
    ) -> None:
        self._max_frame = max_frame
        self._session_id = session_id
        self._epoch = epoch
        self._max_frames = max_frames
        self._max_bytes = max_bytes
        self._items: deque[OutgoingMessage | _Text] = deque()
        self._bytes = 0
        self._ready = asyncio.Event()
        self._space = asyncio.Event()
        self._space.set()
        self.closed = False

    @property
    def overflowed(self) -> bool:
        """Whether so much waits that the client must be closed."""
        return len(self._items) > 2 * self._max_frames or self._bytes > 2 * self._max_bytes

    def put(self, frame: ServerFrame) -> None:
        if isinstance(frame, AssistantDelta):
            self._put_text(
                ("", frame.message_id), _Text(("", frame.message_id), [frame.content], frame.seq, 0, frame.offset)
            )
        else:
            self._append(OutgoingMessage(encode_frame(frame), getattr(frame, "seq", 0)))

    def put_event(self, envelope: Envelope) -> None:
        """Queue an event of the log for a client that gets events."""
        event = envelope.event
        if isinstance(event, TextDelta | ThoughtDelta):
            key = (type(event).__name__, event.message_id)
            self._put_text(key, _Text(key, [event.text], envelope.seq, 0, envelope=envelope))
        else:
            self._append(OutgoingMessage(encode_frame(self._event_frame(envelope)), envelope.seq))

    async def wait_for_space(self) -> None:
        await self._space.wait()

    async def get(self) -> OutgoingMessage | None:
        """Return the next message, or None when the outbox is closed and empty."""
        while not self._items:
            if self.closed:
                return None
            self._ready.clear()
            await self._ready.wait()
        item = self._items.popleft()
        self._bytes -= item.size if isinstance(item, _Text) else len(item.data)
        self._update()
        return self._encode(item) if isinstance(item, _Text) else item

    def close(self) -> None:
        """Refuse further messages; those that wait are still returned."""
        self.closed = True
        self._ready.set()
        self._space.set()

    def _put_text(self, key: tuple[str, str], text: _Text) -> None:
        last = self._items[-1] if self._items else None
        text.size = sum(map(len, text.parts)) + 64
        is_short = isinstance(last, _Text) and last.size + text.size < TEXT_SIZE
        if is_short and isinstance(last, _Text) and last.key == key and self._continues(last, text):
            last.parts += text.parts
            last.seq, last.envelope, last.size = text.seq, text.envelope, last.size + text.size - 64
            self._bytes += text.size - 64
            self._update()
        else:
            self._append(text)

    def _continues(self, last: _Text, text: _Text) -> bool:
        return text.envelope is not None or last.offset + sum(map(len, last.parts)) == text.offset

    def _append(self, item: OutgoingMessage | _Text) -> None:
        if self.closed:
            return
        self._items.append(item)
        self._bytes += item.size if isinstance(item, _Text) else len(item.data)
        self._update()
        self._ready.set()

    def _update(self) -> None:
        if self.closed or (len(self._items) < self._max_frames and self._bytes < self._max_bytes):
            self._space.set()
        else:
            self._space.clear()

    def _encode(self, item: _Text) -> OutgoingMessage:
        text = "".join(item.parts)
        if item.envelope is None:
            frame: ServerFrame = AssistantDelta(self._session_id, text, item.seq, self._epoch, item.key[1], item.offset)
        else:
            event = item.envelope.event
            assert isinstance(event, TextDelta | ThoughtDelta)
            joined = type(event)(event.message_id, text)
            frame = self._event_frame(Envelope(item.seq, item.envelope.time, joined))
        return OutgoingMessage(encode_frame(frame), item.seq)

    def _event_frame(self, envelope: Envelope) -> EventMessage:
        event = msgspec.Raw(fit_event(encode_event(envelope.event), self._max_frame - MARGIN))
        return EventMessage(self._session_id, envelope.seq, self._epoch, envelope.time, event)


def fit_event(data: bytes, limit: int) -> bytes:
    """Return an encoded event with at most `limit` bytes: long texts are cut, and a notice stands for what is left."""
    if len(data) <= limit:
        return data
    event = msgspec.json.decode(data)
    for longest in TEXT_LIMITS:
        shortened = msgspec.json.encode(_shorten(event, longest))
        if len(shortened) <= limit:
            return shortened
    return encode_event(Notice("warning", f"an event of {len(data)} bytes is too large to be sent"))


def _shorten(value: Any, longest: int, name: str = "") -> Any:
    match value:
        case str() if len(value) > longest:
            return "" if name == _BINARY_FIELD else truncate_middle(value, longest).text
        case list():
            return [_shorten(item, longest) for item in value]
        case dict():
            return {key: _shorten(item, longest, key) for key, item in value.items()}
        case _:
            return value
