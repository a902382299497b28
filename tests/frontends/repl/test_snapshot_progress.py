"""In the chat, a long snapshot for undo shows its progress, and Ctrl-C cancels the turn."""

import pytest
from tests.frontends.repl.chat_helpers import at

from ostler.testing.model_server import calls, text

# Saving a file takes until the scan is stopped.
ENDLESS_SNAPSHOT = """
import time
from ostler.workspace.content_capture import ContentCapture
def capture_entry(self, *arguments):
    while not self._is_stopped():
        time.sleep(0.001)
ContentCapture._capture_entry = capture_entry
"""


@pytest.mark.req("EN-13", "CL-9")
def test_long_snapshot_shows_progress_and_ctrl_c_cancels_it(terminal, models, ostler, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(ENDLESS_SNAPSHOT)
    for name in ("a.txt", "b.txt"):
        (ostler.workspace / name).write_text("before\n")
    append = calls([("bash", {"command": "echo more >> a.txt"})])
    with models.playing(append, text("As you like.")) as server:
        term = terminal("chat", *at(server), "--write", "--allow", "bash", env={"PYTHONPATH": str(tmp_path)})
        term.ready()
        term.type("change it\r")
        term.wait_for("saving the workspace for undo, 0 of 2 files saved")
        term.type("\x03")
        term.wait_for("cancelled")
        term.ready()
        assert (ostler.workspace / "a.txt").read_text() == "before\n"
        term.type("and now?\r")
        term.wait_for("As you like.")
        term.ready()
        term.type("\x04")
        term.leave()
