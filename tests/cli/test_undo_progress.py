"""A snapshot for undo that takes long shows its progress and can be cancelled, in a real process."""

import signal
import subprocess
import sys

import pytest
from tests.conftest import at

from ostler.testing.model_server import calls

pytestmark = pytest.mark.req("EN-13", "CL-9")

# Saving a file takes until the scan is stopped.
ENDLESS_OSTLER = """
import sys, time
from ostler.workspace.content_capture import ContentCapture
def capture_entry(self, *arguments):
    while not self._is_stopped():
        time.sleep(0.001)
ContentCapture._capture_entry = capture_entry
from ostler.__main__ import main
sys.exit(main())
"""
PROGRESS = "saving the workspace for undo, 0 of 2 files saved"


@pytest.fixture
def run(ostler, models):
    """Run a prompt whose command must wait for an endless snapshot. Return exit status, output and errors."""

    def run(*flags, number=None):
        for name in ("a.txt", "b.txt"):
            (ostler.workspace / name).write_text("before\n")
        with models.playing(calls([("bash", {"command": "echo more >> a.txt"})])) as server:
            flags = ["run", "--write", "--allow", "bash", *at(server), *flags, "change it"]
            with subprocess.Popen(
                [sys.executable, "-P", "-c", ENDLESS_OSTLER, *flags],
                cwd=ostler.workspace,
                env=ostler.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ) as process:
                errors = ""
                while PROGRESS not in errors:
                    line = process.stderr.readline()
                    assert line, errors
                    errors += line
                if number:
                    process.send_signal(number)
                output, more = process.communicate(timeout=60)
        assert (ostler.workspace / "a.txt").read_text() == "before\n"
        return process.returncode, output, errors + more

    return run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_long_snapshot_shows_progress_and_is_cancelled_by_a_signal(run, ostler, number):
    code, output, _ = run(number=number)
    assert code == 130 and "cancelled" in output
    assert "nothing can be undone" in ostler("undo", "--list").stdout


def test_long_snapshot_shows_progress_and_ends_at_the_timeout(run):
    code, output, _ = run("--timeout", "6")
    assert code == 124 and "timeout" in output
