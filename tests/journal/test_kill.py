"""`kill -9` at any moment of a running session: nothing that was acknowledged is lost, and the session goes on."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ostler.backends.engine.history import fold_history
from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import ToolFinished
from ostler.journal.conversation import read_conversation
from ostler.journal.file_journal import read_journal
from ostler.journal.history_xnl import HISTORY_NAME
from ostler.journal.journal_store import JournalStore
from ostler.models.model_types import AssistantMessage, ToolResultsMessage
from ostler.testing.session_fixture import open_test_session, run_turn
from ostler.workspace.local_workspace import LocalWorkspace
from ostler.xnl.chat_records import read_records

pytestmark = pytest.mark.req("SE-1")
VICTIM = Path(__file__).with_name("victim.py")


class Victims:
    """A process that brings forth sessions to kill, so that none has to start from nothing."""

    def __init__(self) -> None:
        self._told, telling = os.pipe()
        command = [sys.executable, str(VICTIM), str(telling)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, pass_fds=[telling])
        os.close(telling)

    def kill_one(self, root: Path, chance: random.Random) -> set[int]:
        """Start a session in a root, kill it at some moment, and return what it had acknowledged."""
        print(root, chance.random(), file=self._process.stdin, flush=True)
        child = int(self._process.stdout.readline())
        told = b""
        while told.count(b"\n") < chance.choice([1, 5, 20, 60]):
            told += os.read(self._told, chance.choice([1, 7, 100]))
        os.kill(child, signal.SIGKILL)
        assert self._process.stdout.readline() == "dead\n"
        return {int(line) for line in (told + self._rest()).split()}

    def _rest(self) -> bytes:
        """What the dead one still had on the pipe."""
        os.set_blocking(self._told, False)
        rest = b""
        try:
            while more := os.read(self._told, 65536):
                rest += more
        except BlockingIOError:
            return rest
        finally:
            os.set_blocking(self._told, True)
        return rest

    def close(self) -> None:
        os.close(self._told)
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def victims():
    made = Victims()
    yield made
    made.close()


async def check(root: Path, acknowledged: set[int]) -> None:
    store = JournalStore(root)
    place = store.session("p", "s1")
    past = read_journal(place.journal_path)
    seqs = [envelope.seq for envelope in past]
    assert acknowledged <= set(seqs)
    assert seqs == sorted(set(seqs))
    assert past.damage.skipped == 0
    journal = store.open(place)
    session = await open_test_session(ScriptedBackend([quiet]), [], LocalWorkspace(str(root)), journal=journal)
    assert session.state.turn is None
    assert session.state.calls_without_result() == []
    _, ended = await run_turn(session, "go on")
    assert ended.reason == "done"
    check_history(fold_history(session.events()))
    await session.aclose()
    said = list(read_conversation(read_journal(place.journal_path)))
    read = read_records((place.folder / HISTORY_NAME).read_text())
    assert (len(read.records), read.errors) == (len(said), [])
    assert [one.fields["content"] for one in read.records] == [one.text for one in said]


async def quiet(context, said):
    assert not any(isinstance(event, ToolFinished) and event.result.status == "" for event in context.events())


def check_history(said) -> None:
    """Every call has its result right after it, and no result is without its call."""
    for before, after in zip([None, *said], [*said, None], strict=True):
        calls = [call.id for call in before.message.calls] if isinstance(before, AssistantMessage) else []
        results = [result.call_id for result in after.results] if isinstance(after, ToolResultsMessage) else []
        assert calls == results


async def kill_often(victims: Victims, folder: Path, times: int) -> None:
    chance = random.Random(times)
    root, acknowledged = folder / "0", set()
    for number in range(times):
        if number % 5 == 0:  # then it is killed again and again, each time after it was resumed
            root, acknowledged = folder / str(number), set()
            root.mkdir()
        acknowledged |= victims.kill_one(root, chance)
        await check(root, acknowledged)


async def test_killed_25_times(victims, tmp_path):
    await kill_often(victims, tmp_path, 25)


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_killed_1000_times(victims, tmp_path):
    await kill_often(victims, tmp_path, 1000)
