"""Reads a journal file sequentially and reports damaged or missing records."""

from collections.abc import Iterator
from typing import BinaryIO

from ostler.core.events import SessionOpened
from ostler.core.session_view import Records
from ostler.journal import record_codec
from ostler.journal.record_codec import RecordFrame

MAX_LINES_SHOWN = 5
CHUNK_BYTES = 1024 * 1024

ScannedRecord = tuple[RecordFrame, int, bytes]  # a valid record, its offset and its line


class Damage:
    """The damage found by a scan: skipped lines, an incomplete tail, a missing newline at the end."""

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
        """Return one sentence about the skipped lines, or nothing."""
        if not self.skipped:
            return []
        lines = ", ".join(map(str, self.lines)) + (", …" if self.skipped > len(self.lines) else "")
        records = "1 damaged record" if self.skipped == 1 else f"{self.skipped} damaged records"
        return [f"{file_name}: skipped {records} (line {lines}); the remaining records are intact"]


def scan(file: BinaryIO, damage: Damage, offset: int = 0, last_seq: int = 0) -> Iterator[ScannedRecord]:
    """Yield the valid records from `offset` on, in increasing order of number; a damaged line may contain several."""
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
            skipped_bytes, ended = _skip_line(file)
            damage.tail_offset = None if ended else offset
            offset += skipped_bytes
        elif not line.endswith(b"\n") and record_codec.parse_frame(line + b"\n") is None:
            damage.tail_offset = offset
        else:
            damage.lacks_newline = not line.endswith(b"\n")
            for record in _salvage(line, offset, last_seq, damage, number):
                last_seq = int(record[0]["seq"])
                yield record
        offset += len(line)


def _salvage(line: bytes, offset: int, last_seq: int, damage: Damage, number: int) -> Iterator[ScannedRecord]:
    """Yield valid records inside an invalid line: after half a record, after NUL bytes, or two on one line."""
    unclaimed = 0  # start of the part that belongs to no record yet
    lost = False
    start = line.find(record_codec.RECORD_START)
    while start >= 0:
        following = line.find(record_codec.RECORD_START, start + 1)
        candidate = line[start : following if following >= 0 else len(line)]
        candidate = candidate[: candidate.rfind(b"}") + 1] + b"\n"
        frame = record_codec.parse_frame(candidate)
        if frame is not None and int(frame["seq"]) > last_seq:
            last_seq = int(frame["seq"])
            lost = lost or not _is_blank(line[unclaimed:start])
            unclaimed = start + len(candidate) - 1
            yield frame, offset + start, candidate
        start = following
    if lost or not _is_blank(line[unclaimed:]):
        damage.skip(number)


def _is_blank(leftover: bytes) -> bool:
    """Return whether the bytes are only whitespace, such as an editor's line endings."""
    return not leftover.strip()


def _skip_line(file: BinaryIO) -> tuple[int, bool]:
    """Skip the rest of a line that is too long. Return its size and whether a newline ended it."""
    size = 0
    while chunk := file.readline(CHUNK_BYTES):
        size += len(chunk)
        if chunk.endswith(b"\n"):
            return size, True
    return size, False


def describe_missing(records: Records, session_id: str, known_seq: int, skipped: int) -> list[str]:
    """Return a sentence if records are missing without a damaged line, or nothing.

    `known_seq` is a number that the session had reached; `skipped` records are already reported as damaged. Only an
    original session has consecutive numbers: a copy leaves out some of its source's records.
    """
    last = records[-1].seq if len(records) else 0
    missing = max(0, known_seq - last)
    if _is_original(records, session_id):
        missing += last - len(records)
    missing -= skipped
    if missing <= 0:
        return []
    count = "1 record is" if missing == 1 else f"{missing} records are"
    return [f"journal.jsonl: {count} missing; the remaining records are intact"]


def _is_original(records: Records, session_id: str) -> bool:
    first = records[0] if len(records) else None
    return first is not None and isinstance(first.event, SessionOpened) and first.event.session_id == session_id
