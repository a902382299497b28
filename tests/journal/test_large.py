"""A session of one gigabyte opens in seconds and with limited memory."""

import subprocess
import sys

import pytest

from ostler.core.events import (
    Envelope,
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
from ostler.journal.journal_store import JournalStore

GIGABYTE = 1_000_000_000
OPEN = """
import sys, time
from pathlib import Path
from ostler.journal.file_journal import FileJournal
from ostler.journal.active_records import ActiveRecords
from ostler.session.state import state_from_records
started = time.process_time()
journal = FileJournal(Path(sys.argv[1]), "s1")
state = state_from_records(journal.records())
ActiveRecords(journal.records())
lines = Path("/proc/self/status").read_text().splitlines()
peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))  # unlike `rusage`, without the parent
print(time.process_time() - started, peak / 1024, state.turns)
journal.close()
"""


def turn_events(number):
    yield TurnStarted(f"t{number}", Prompt("p", (TextContent("please look " * 20),)))
    for step in range(10):
        call = ToolCall(f"c{number}-{step}", "read", {"path": "a.py"})
        yield MessageDone(Message(f"m{number}-{step}", (TextContent("Let me look. " * 10), CallPart(call))))
        yield ToolStarted(call.id, "read", False)
        yield ToolFinished(ToolResult(call.id, "ok", 'def f(x): return "y"\n' * 2000))
    yield TurnEnded(f"t{number}", "done")


@pytest.mark.slow
@pytest.mark.req("SE-1")
@pytest.mark.timeout(300)
def test_gigabyte_opens_in_two_seconds_and_200_megabytes(tmp_path):
    session = JournalStore(tmp_path).session("p", "s1")
    session.folder.mkdir(parents=True)
    seq, size, turns = 1, 0, 0
    with open(session.journal_path, "wb") as file:
        file.write(record_codec.encode(Envelope(1, 1e9, SessionOpened("s1", "/w", "engine", "1"))))
        while size < GIGABYTE:
            turns += 1
            for event in turn_events(turns):
                seq += 1
                size += file.write(record_codec.encode(Envelope(seq, 1e9 + seq, event)))
    command = [sys.executable, "-c", OPEN, str(session.folder)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(3)]
    seconds, megabytes = min(float(run[0]) for run in runs), max(float(run[1]) for run in runs)
    assert int(runs[0][2]) == turns
    assert megabytes <= 200
    assert seconds <= 2
