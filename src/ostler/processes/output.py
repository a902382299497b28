"""What a command prints: the head and the tail in memory, the whole in a file when memory is too small, live pieces."""

import asyncio
import codecs
import os
from collections.abc import Callable
from typing import Literal

from ostler.text.cut import HeadTail

Stream = Literal["stdout", "stderr"]

MEMORY_CAP = 256 * 1024  # per stream
_TOLD_AT_ONCE = 40_000
FILE_CAP = 64 * 1024 * 1024
_LIVE_INTERVAL = 0.05
_LIVE_CAP = 32 * 1024


class Spill:
    """A file of mode 0600 that takes bytes up to a cap; a full disk ends it and is no error."""

    def __init__(self, folder: str, name: str, cap: int = FILE_CAP) -> None:
        self.path = os.path.join(folder, name)
        self._room = cap
        os.makedirs(folder, mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(self.path, flags, 0o600)

    def feed(self, chunk: bytes) -> None:
        if self._room <= 0 or self._fd < 0:
            return
        piece = chunk[: self._room]
        try:
            written = os.write(self._fd, piece)
        except OSError:
            self.close()
            return
        self._room -= written
        if written < len(piece):
            self.feed(piece[written:])

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Live:
    """Tells a listener what arrives, as text, at most twenty times a second and never more than a screenful of it."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.failed: Exception | None = None
        self._tell = tell
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}
        self._pending = ""
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, stream: Stream, chunk: bytes) -> None:
        self._pending = (self._pending + self._decoders[stream].decode(chunk))[-_LIVE_CAP:]
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LIVE_INTERVAL, self._flush)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for decoder in self._decoders.values():
            self._pending += decoder.decode(b"", True)
        self._flush()

    def _flush(self) -> None:
        self._timer = None
        text, self._pending = self._pending, ""
        if not text or self.failed:
            return
        try:
            self._tell(text)
        except Exception as error:  # the listener's fault must not leave the command without a reader
            self.failed = error


class Output:
    """All that one command prints. `open_spill` is called once, when it is more than whoever asked is told at once.

    `errors` is what becomes of bytes that are no UTF-8, in Python's words.
    """

    def __init__(
        self,
        open_spill: Callable[[], Spill],
        live: Live | None = None,
        cap: int = MEMORY_CAP,
        errors: str = "replace",
    ) -> None:
        self.streams: dict[Stream, HeadTail] = {
            name: HeadTail(cap // 2, cap // 2, errors) for name in ("stdout", "stderr")
        }
        self.spilled = ""
        self._open_spill = open_spill
        self._live = live
        # In order of arrival, both streams, until a spill takes it over; as long as nothing is cut it is bounded.
        self._all: bytearray | None = bytearray()
        self._spill: Spill | None = None

    def feed(self, stream: Stream, chunk: bytes) -> None:
        kept = self.streams[stream]
        kept.feed(chunk)
        if self._live:
            self._live.feed(stream, chunk)
        if self._all is not None:
            self._all += chunk
            if kept.cut or len(self._all) > _TOLD_AT_ONCE:
                self._begin_spill()
        elif self._spill:
            self._spill.feed(chunk)

    @property
    def cut(self) -> bool:
        return any(kept.cut for kept in self.streams.values())

    def close(self) -> None:
        if self._spill:
            self._spill.close()
        if self._live:
            self._live.close()
            if self._live.failed:
                raise self._live.failed

    def _begin_spill(self) -> None:
        arrived, self._all = self._all or b"", None
        try:
            self._spill = self._open_spill()
        except OSError:
            return
        self.spilled = self._spill.path
        self._spill.feed(bytes(arrived))
