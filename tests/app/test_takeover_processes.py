"""A turn that one process leaves unfinished goes on in another process, over stored files or a database."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.req("SV-7", "SV-8")
TARGET = Path(__file__).with_name("takeover_target.py")


class TakeoverProcesses:
    """Starts the processes that share a home and a workspace."""

    def __init__(self, folder: Path, storage: str) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        (folder / "home").mkdir()
        os.mkfifo(self.work / "fifo")
        self._env = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "LANG": "C.UTF-8"}
        if storage == "sqlite":
            self._env["DATABASE"] = str(folder / "ostler.db")

    def run(self, *arguments: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-P", str(TARGET), arguments[0], str(self.work), *arguments[1:]]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=self._env, cwd=self.work)

    def interrupt_one(self, how: str) -> str:
        """Start a turn, interrupt it during its second call, and return the session's id."""
        with self.run("start") as process:
            session_id = json.loads(process.stdout.readline())["session"]
            assert json.loads(process.stdout.readline()) == {"started": "call-second"}
            with (self.work / "fifo").open("w"):  # waits until the command reads from it
                if how == "kill":
                    process.send_signal(signal.SIGKILL)
                    process.communicate()
                    return session_id
                output, _ = process.communicate(timeout=60)
        assert json.loads(output) == {"ended": "cancelled"}
        return session_id

    def go_on(self, session_id: str) -> dict:
        with self.run("continue", session_id) as process:
            output, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        return json.loads(output)


@pytest.fixture(params=["files", "sqlite"])
def processes(request, tmp_path):
    return TakeoverProcesses(tmp_path, request.param)


@pytest.mark.parametrize("how", ["release", "kill"])
@pytest.mark.sampled
def test_turn_goes_on_in_another_process_and_no_call_runs_twice(processes, how):
    session_id = processes.interrupt_one(how)
    report = processes.go_on(session_id)
    assert report["ended"] == "done"
    assert report["results"] == {"call-first": "ok", "call-second": "unknown", "call-third": "ok"}
    assert report["tells_the_model"]
    assert (processes.work / "runs").read_text().split() == ["first", "second", "third"]


def test_session_without_an_unfinished_turn_is_only_opened(processes):
    session_id = processes.interrupt_one("kill")
    processes.go_on(session_id)
    assert processes.go_on(session_id)["ended"] is None
