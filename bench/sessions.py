"""Stored sessions: appending a record, opening a long session, searching many sessions."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ostler.core.events import (
    Envelope,
    Event,
    MessageDone,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ostler.core.message import CallPart, Message
from ostler.core.prompt import Prompt, TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.journal import record_codec
from ostler.journal.file_journal import JOURNAL_NAME, FileJournal
from ostler.journal.journal_store import JournalStore
from ostler.journal.session_index import SessionIndex

Row = tuple[str, str, str, str]
OPEN_BUDGET_S, OPEN_BUDGET_MB, SEARCH_BUDGET_S = 2.0, 200.0, 0.2
OPEN_SCRIPT = """
import resource, sys, time
from pathlib import Path
from ostler.journal.file_journal import FileJournal
from ostler.journal.active_records import ActiveRecords
from ostler.session.state import state_from_records
started = time.process_time()
journal = FileJournal(Path(sys.argv[1]), "s1")
state_from_records(journal.records())
ActiveRecords(journal.records())
print(time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def rows(*, large: bool) -> Iterator[Row]:
    """Yield Markdown rows: measurement, Ostler, comparison, budget."""
    with tempfile.TemporaryDirectory(prefix="ostler-bench-") as folder:
        yield _append_row(Path(folder))
        yield from _open_rows(Path(folder), large)
        yield _search_row(Path(folder), 10_000 if large else 2_000)


def _append_row(folder: Path) -> Row:
    events = [event for number in range(100) for event in turn_events(number, 200)]
    journal = FileJournal(folder / "appended", "s1")
    started = time.perf_counter()
    for seq, event in enumerate(events, 1):
        journal.append(Envelope(seq, 1e9, event))
    ours = (time.perf_counter() - started) / len(events) * 1e6
    journal.close()
    lines = [record_codec.encode(Envelope(seq, 1e9, event)) for seq, event in enumerate(events, 1)]
    bare = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    started = time.perf_counter()
    for line in lines:
        os.write(bare, line)
    floor = (time.perf_counter() - started) / len(events) * 1e6
    os.close(bare)
    return ("append a record", f"{ours:.0f} µs", f"{ours / floor:.1f} × a plain write", "")


def _open_rows(folder: Path, large: bool) -> Iterator[Row]:
    small = _open_cost(folder, "thousand", messages=1_000)
    seconds, megabytes = _open_cost(folder, "ten-thousand", messages=10_000)
    grown = f"{seconds / small[0]:.1f} × a session of 1,000 messages"
    yield (
        "open a session of 10,000 messages",
        f"{seconds:.2f} s CPU, {megabytes:.0f} MB",
        grown,
        _budget_verdict(seconds, megabytes),
    )
    if large:
        seconds, megabytes = _open_cost(folder, "gigabyte", size=1_000_000_000)
        yield (
            "open a session of 1 GB",
            f"{seconds:.2f} s CPU, {megabytes:.0f} MB",
            "",
            _budget_verdict(seconds, megabytes),
        )


def _budget_verdict(seconds: float, megabytes: float) -> str:
    within = seconds <= OPEN_BUDGET_S and megabytes <= OPEN_BUDGET_MB
    return f"{'within' if within else '**over**'} {OPEN_BUDGET_S:g} s, {OPEN_BUDGET_MB:g} MB"


def _open_cost(folder: Path, name: str, messages: int = 0, size: int = 0) -> tuple[float, float]:
    """Return seconds and megabytes, the best of three runs."""
    place = folder / name
    place.mkdir()
    seq = written = number = 0
    with open(place / JOURNAL_NAME, "wb") as file:
        file.write(record_codec.encode(Envelope(1, 1e9, SessionOpened("s1", "/w", "engine", "1"))))
        while number * 20 < messages or written < size:
            number += 1
            for event in turn_events(number, 2000 if size else 20):
                seq += 1
                written += file.write(record_codec.encode(Envelope(seq + 1, 1e9 + seq, event)))
    command = [sys.executable, "-c", OPEN_SCRIPT, str(place)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(3)]
    return min(float(run[0]) for run in runs), max(float(run[1]) for run in runs)


def turn_events(number: int, lines: int) -> Iterator[Event]:
    """Yield a prompt and ten calls, twenty messages in all."""
    yield TurnStarted(f"t{number}", Prompt("p", (TextContent("please look " * 20),)))
    for step in range(10):
        call = ToolCall(f"c{number}-{step}", "read", {"path": "a.py"})
        yield MessageDone(Message(f"m{number}-{step}", (TextContent("Let me look. " * 10), CallPart(call))))
        yield ToolStarted(call.id, "read", False)
        yield ToolFinished(ToolResult(call.id, "ok", 'def f(x): return "y"\n' * lines))
    yield TurnEnded(f"t{number}", "done")


def _search_row(folder: Path, count: int) -> Row:
    store = JournalStore(folder / "projects")
    for number in range(count):
        place = store.session(f"p{number % 20}", f"s{number:05}")
        place.folder.mkdir(parents=True)
        events: list[Event] = [
            SessionOpened(place.id, "/w", "engine", "1"),
            TurnStarted("t1", Prompt("p", (TextContent(f"look {number}"),))),
            MessageDone(Message("m1", (TextContent("word " * 50),))),
            TurnEnded("t1", "done"),
        ]
        lines = (record_codec.encode(Envelope(seq, 1e9 + number, event)) for seq, event in enumerate(events, 1))
        (place.folder / JOURNAL_NAME).write_bytes(b"".join(lines))
    index = SessionIndex(store, folder / "index.db", lambda message: None)
    started = time.perf_counter()
    index.sessions()
    built = time.perf_counter() - started
    costs = []
    for words in (f"look {count // 2}", "word", "nothing like it"):
        started = time.process_time()
        index.search(words)
        costs.append(time.process_time() - started)
    index.close()
    verdict = "within" if max(costs) <= SEARCH_BUDGET_S else "**over**"
    result = f"{max(costs) * 1000:.0f} ms CPU"
    return (f"search {count:,} sessions", result, f"index built in {built:.1f} s", f"{verdict} {SEARCH_BUDGET_S:g} s")
