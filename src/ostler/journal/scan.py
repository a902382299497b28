"""Reads a journal file from end to end in bounded memory: whole records by their place, and what is damaged."""

from collections.abc import Iterator
from typing import BinaryIO

from ostler.journal import record_codec
from ostler.journal.record_codec import RecordFrame

MAX_LINES_SHOWN = 5
CHUNK_BYTES = 1024 * 1024

ScannedRecord = tuple[RecordFrame, int, bytes]  # a whole record, the offset where it begins, and its line


class Damage:
    """What a scan met: lines it skipped, where a torn tail begins, and whether the last record lacks its newline."""

    def __init__(self) -> None:
        self.lines: list[int] = []
        self.skipped = 0
        self.tail_offset: int | None = None
        self.lacks_newline = False

    def skip(self, number: int) -> None:
        self.skipped += 1
        if len(self.lines) < MAX_LINES_SHOWN:
            self.lines.append(number)

    def describe(self, file_name: str) -> list[str]:
        """One sentence for the skipped lines, if there are any."""
        if not self.skipped:
            return []
        lines = ", ".join(map(str, self.lines)) + (", …" if self.skipped > len(self.lines) else "")
        records = "1 damaged record" if self.skipped == 1 else f"{self.skipped} damaged records"
        return [f"{file_name}: skipped {records} (line {lines}); the rest is whole, and the file was left as it is"]


def scan(file: BinaryIO, damage: Damage, offset: int = 0, last_seq: int = 0) -> Iterator[ScannedRecord]:
    """Every whole record from an offset on whose number is new; a line that a crash glued together yields several."""
    number = 0
    while line := file.readline(record_codec.MAX_RECORD_BYTES):
        number += 1
        frame = record_codec.parse_frame(line)
        if frame is not None and (seq := int(frame["seq"])) > last_seq:
            last_seq = seq
            yield frame, offset, line
            offset += len(line)
            continue
        if len(line) == record_codec.MAX_RECORD_BYTES and not line.endswith(b"\n"):
            damage.skip(number)
            passed, ended = _skip_line(file)
            damage.tail_offset = None if ended else offset
            offset += passed
        elif not line.endswith(b"\n") and record_codec.parse_frame(line + b"\n") is None:
            damage.tail_offset = offset
        else:
            damage.lacks_newline = not line.endswith(b"\n")
            for found in _salvage(line, offset, last_seq, damage, number):
                last_seq = int(found[0]["seq"])
                yield found
        offset += len(line)


def _salvage(line: bytes, offset: int, last_seq: int, damage: Damage, number: int) -> Iterator[ScannedRecord]:
    """Whole records inside a line that is none: half of one and another behind it, NULs before one, two on one line."""
    rest = 0  # where what is not looked at yet begins
    lost = False
    start = line.find(record_codec.RECORD_START)
    while start >= 0:
        following = line.find(record_codec.RECORD_START, start + 1)
        piece = line[start : following if following >= 0 else len(line)]
        piece = piece[: piece.rfind(b"}") + 1] + b"\n"
        frame = record_codec.parse_frame(piece)
        if frame is not None and int(frame["seq"]) > last_seq:
            last_seq = int(frame["seq"])
            lost = lost or not _is_blank(line[rest:start])
            rest = start + len(piece) - 1
            yield frame, offset + start, piece
        start = following
    if lost or not _is_blank(line[rest:]):
        damage.skip(number)


def _is_blank(leftover: bytes) -> bool:
    """Whether nothing was lost with it: an editor's line ends, for one."""
    return not leftover.strip()


def _skip_line(file: BinaryIO) -> tuple[int, bool]:
    """How long the rest of a line is that is too long to be one of ours, and whether it ends at all."""
    passed = 0
    while piece := file.readline(CHUNK_BYTES):
        passed += len(piece)
        if piece.endswith(b"\n"):
            return passed, True
    return passed, False
