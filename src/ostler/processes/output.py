"""Captures command output: head and tail in memory, everything in a spill file, live updates."""

import asyncio
import codecs
import os
from collections.abc import Callable
from typing import Literal

from ostler.text.truncate import HeadTail

StreamName = Literal["stdout", "stderr"]

MEMORY_CAP = 256 * 1024  # per stream
_SPILL_THRESHOLD = 40_000
FILE_CAP = 64 * 1024 * 1024
_LIVE_INTERVAL = 0.05
_LIVE_CAP = 32 * 1024


class SpillFile:
    """A private file for output, up to a size limit. Write errors, such as a full disk, are ignored."""

    def __init__(self, folder: str, name: str, cap: int = FILE_CAP) -> None:
        self.path = os.path.join(folder, name)
        self._bytes_left = cap
        os.makedirs(folder, mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(self.path, flags, 0o600)

    def feed(self, chunk: bytes) -> None:
        if self._bytes_left <= 0 or self._fd < 0:
            return
        data = chunk[: self._bytes_left]
        try:
            written = os.write(self._fd, data)
        except OSError:
            self.close()
            return
        self._bytes_left -= written
        if written < len(data):
            self.feed(data[written:])

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class LiveOutput:
    """Passes new output as text to a callback, at most 20 times per second and only the latest part of much output."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self.error: Exception | None = None
        self._on_text = on_text
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}
        self._pending = ""
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, stream: StreamName, chunk: bytes) -> None:
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
        if not text or self.error:
            return
        try:
            self._on_text(text)
        except Exception as error:  # raised later, so that the output is still read
            self.error = error


class CommandOutput:
    """The output of one command. `open_spill` is called once, when the output is too long to return in full.

    `errors` is the decoding error handler for bytes that are not valid UTF-8.
    """

    def __init__(
        self,
        open_spill: Callable[[], SpillFile],
        live: LiveOutput | None = None,
        cap: int = MEMORY_CAP,
        errors: str = "replace",
    ) -> None:
        self.streams: dict[StreamName, HeadTail] = {
            name: HeadTail(cap // 2, cap // 2, errors) for name in ("stdout", "stderr")
        }
        self.spill_path = ""
        self._open_spill = open_spill
        self._live = live
        # Both streams in order of arrival, until they are moved to a spill file.
        self._unspilled: bytearray | None = bytearray()
        self._spill: SpillFile | None = None

    def feed(self, stream: StreamName, chunk: bytes) -> None:
        captured = self.streams[stream]
        captured.feed(chunk)
        if self._live:
            self._live.feed(stream, chunk)
        if self._unspilled is not None:
            self._unspilled += chunk
            if captured.truncated or len(self._unspilled) > _SPILL_THRESHOLD:
                self._start_spill()
        elif self._spill:
            self._spill.feed(chunk)

    @property
    def truncated(self) -> bool:
        return any(captured.truncated for captured in self.streams.values())

    def close(self) -> None:
        if self._spill:
            self._spill.close()
        if self._live:
            self._live.close()
            if self._live.error:
                raise self._live.error

    def _start_spill(self) -> None:
        data, self._unspilled = self._unspilled or b"", None
        try:
            self._spill = self._open_spill()
        except OSError:
            return
        self.spill_path = self._spill.path
        self._spill.feed(bytes(data))
