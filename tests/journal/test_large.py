"""A session of a gigabyte opens in seconds and in bounded memory."""

import subprocess
import sys

import pytest

from ostler.journal import record
from ostler.journal.store import Store
from ostler.vocabulary.events import (
    Envelope,
    MessageDone,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ostler.vocabulary.message import Called, Message
from ostler.vocabulary.prompt import Prompt, Text
from ostler.vocabulary.tools import ToolCall, ToolResult

GIGABYTE = 1_000_000_000
OPEN = """
import resource, sys, time
from pathlib import Path
from ostler.journal.file import FileJournal
from ostler.journal.counting import Counting
from ostler.session.state import state_of
begun = time.process_time()
journal = FileJournal(Path(sys.argv[1]), "s1")
state = state_of(journal.past())
Counting(journal.past())
print(time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, state.turns)
journal.close()
"""


def a_turn(number):
    yield TurnStarted(f"t{number}", Prompt("p", (Text("please look " * 20),)))
    for step in range(10):
        call = ToolCall(f"c{number}-{step}", "read", {"path": "a.py"})
        yield MessageDone(Message(f"m{number}-{step}", (Text("Let me look. " * 10), Called(call))))
        yield ToolStarted(call.id, "read", False)
        yield ToolFinished(ToolResult(call.id, "ok", 'def f(x): return "y"\n' * 2000))
    yield TurnEnded(f"t{number}", "done")


@pytest.mark.slow
@pytest.mark.req("SE-1")
@pytest.mark.timeout(300)
def test_a_gigabyte_opens_in_two_seconds_and_200_megabytes(tmp_path):
    place = Store(tmp_path).place("p", "s1")
    place.folder.mkdir(parents=True)
    seq, size, turns = 1, 0, 0
    with open(place.journal, "wb") as file:
        file.write(record.encode(Envelope(1, 1e9, SessionOpened("s1", "/w", "engine", "1"))))
        while size < GIGABYTE:
            turns += 1
            for event in a_turn(turns):
                seq += 1
                size += file.write(record.encode(Envelope(seq, 1e9 + seq, event)))
    command = [sys.executable, "-c", OPEN, str(place.folder)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(3)]
    seconds, megabytes = min(float(run[0]) for run in runs), max(float(run[1]) for run in runs)
    assert int(runs[0][2]) == turns
    assert megabytes <= 200
    assert seconds <= 2
