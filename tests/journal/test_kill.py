"""`kill -9` at random moments of a running session: no acknowledged record is lost, and the session can be resumed."""

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
TARGET = Path(__file__).with_name("kill_target.py")


class KillTargets:
    """A process that forks sessions to kill, so that they start quickly."""

    def __init__(self) -> None:
        self._pipe, write_end = os.pipe()
        command = [sys.executable, str(TARGET), str(write_end)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, pass_fds=[write_end])
        os.close(write_end)

    def kill_one(self, root: Path, rng: random.Random) -> set[int]:
        """Start a session, kill it at a random moment, and return the acknowledged record numbers."""
        print(root, rng.random(), file=self._process.stdin, flush=True)
        child = int(self._process.stdout.readline())
        acknowledged = b""
        while acknowledged.count(b"\n") < rng.choice([1, 5, 20, 60]):
            acknowledged += os.read(self._pipe, rng.choice([1, 7, 100]))
        os.kill(child, signal.SIGKILL)
        assert self._process.stdout.readline() == "dead\n"
        return {int(line) for line in (acknowledged + self._rest()).split()}

    def _rest(self) -> bytes:
        """Return what is left in the pipe."""
        os.set_blocking(self._pipe, False)
        rest = b""
        try:
            while chunk := os.read(self._pipe, 65536):
                rest += chunk
        except BlockingIOError:
            return rest
        finally:
            os.set_blocking(self._pipe, True)
        return rest

    def close(self) -> None:
        os.close(self._pipe)
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def targets():
    kill_targets = KillTargets()
    yield kill_targets
    kill_targets.close()


async def check(root: Path, acknowledged: set[int]) -> None:
    store = JournalStore(root)
    stored = store.session("p", "s1")
    stored_records = read_journal(stored.journal_path)
    seqs = [envelope.seq for envelope in stored_records]
    assert acknowledged <= set(seqs)
    assert seqs == sorted(set(seqs))
    assert stored_records.damage.skipped == 0
    journal = store.open(stored)
    session = await open_test_session(ScriptedBackend([quiet]), [], LocalWorkspace(str(root)), journal=journal)
    assert session.state.turn is None
    assert session.state.calls_without_result() == []
    _, ended = await run_turn(session, "go on")
    assert ended.reason == "done"
    check_history(fold_history(session.events()))
    await session.aclose()
    conversation = list(read_conversation(read_journal(stored.journal_path)))
    read = read_records((stored.folder / HISTORY_NAME).read_text())
    assert (len(read.records), read.errors) == (len(conversation), [])
    assert [item.fields["content"] for item in read.records] == [item.text for item in conversation]


async def quiet(context, prompt):
    assert not any(isinstance(event, ToolFinished) and event.result.status == "" for event in context.events())


def check_history(messages) -> None:
    """Check that results directly follow their calls and that no result lacks its call."""
    for before, after in zip([None, *messages], [*messages, None], strict=True):
        calls = [call.id for call in before.message.calls] if isinstance(before, AssistantMessage) else []
        results = [result.call_id for result in after.results] if isinstance(after, ToolResultsMessage) else []
        assert calls == results


async def kill_often(targets: KillTargets, folder: Path, times: int) -> None:
    rng = random.Random(times)
    root, acknowledged = folder / "0", set()
    for number in range(times):
        if number % 5 == 0:  # the same session is killed and resumed five times
            root, acknowledged = folder / str(number), set()
            root.mkdir()
        acknowledged |= targets.kill_one(root, rng)
        await check(root, acknowledged)


async def test_killed_10_times(targets, tmp_path):
    await kill_often(targets, tmp_path, 10)


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_killed_1000_times(targets, tmp_path):
    await kill_often(targets, tmp_path, 1000)
