"""End-to-end tests in tmux, which rewraps lines and has its own scrollback."""

import os
import random
import re
import shutil
import time

import pytest
from tests.frontends.multiplexer import LOOK_SECONDS, TIMEOUT_SECONDS
from tests.frontends.repl.chat_helpers import at, last_message
from tests.tiers import slow

from ostler.interaction.answer_keys import TYPING_HINT, TYPING_PAUSE_SECONDS
from ostler.testing.model_server import calls, stall, text

TMUX_LATE_SECONDS = 0.25  # delay after which tmux reports the last of several quick resizes
pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


@pytest.mark.req("CL-6")
def test_opening_status_leaves_no_trace(tmux, models):
    with models.playing() as server:
        term = tmux("chat", *at(server))
        shown = term.wait_for("context empty")
    assert "opening the session" not in shown


@pytest.mark.req("CL-6")
def test_long_answer_is_in_the_scrollback_once_and_in_order(tmux, models):
    wanted = [f"line {number} of many" for number in range(10_000)]
    with models.playing(text("\n".join(wanted), chunks=500)) as server:
        term = tmux("chat", *at(server))
        term.wait_for("context empty")
        term.type("talk")
        term.press("Enter")
        term.wait_for("↑ ANSWER")
        term.wait_for("context 0%")
    shown = term.lines()
    assert [line[2:].rstrip() for line in shown if line.endswith("of many")] == wanted
    assert sum("sandbox" in line for line in shown) == 1, "only the status below the answer"


@pytest.mark.req("CL-1")
def test_many_resizes_keep_each_line_once_and_in_order(tmux, models):
    reply = "\n".join(f"row {number}." for number in range(300))
    storm = random.Random(7)
    with models.playing(text(reply), text(reply, chunks=60)) as server:
        term = tmux("chat", *at(server))
        term.wait_for("context empty")
        for number in (1, 2):
            term.type(f"talk {number}")
            term.press("Enter")
            term.wait_for(f"> talk {number}")
            if number == 1:
                term.wait_for("row 299.")
        for _ in range(60):
            term.resize(storm.randrange(30, 120), 24)
        term.resize(80, 24)
        term.type("still here")
        term.wait_for("> still here")
        term.wait_for("row 299.", times=2)
    shown = term.lines(joined=True)
    rows = [line.strip("● ") for line in shown if re.search(r"row \d+\.$", line)]
    assert rows == reply.split("\n") * 2


@pytest.mark.slow
@pytest.mark.req("CL-1", "CL-6")
def test_late_size_of_tmux_erases_no_line(tmux, models):
    """After two quick resizes tmux rewraps its lines at once, but reports the second size only later."""
    wanted = [f"row {number}." for number in range(60)]
    with models.playing(text("\n".join(wanted))) as server:
        term = tmux("chat", *at(server))
        term.wait_for("context empty")
        term.type("talk")
        term.press("Enter")
        term.wait_for("↑ ANSWER")
        for _ in range(6):
            time.sleep(2 * TMUX_LATE_SECONDS)
            term.resize(110, 24)
            term.resize(35, 24)
            term.wait_for("…")
            time.sleep(2 * TMUX_LATE_SECONDS)
            term.resize(120, 24)
            term.wait_for("scripted · context 0% · sandbox")
    shown = term.lines(joined=True)
    assert [line.strip("● ") for line in shown if re.search(r"row \d+\.$", line)] == wanted


@pytest.mark.req("CL-1")
def test_narrowing_and_widening_leaves_no_status_behind(tmux, models):
    with models.playing(text("\n".join(f"row {number}." for number in range(60)))) as server:
        term = tmux("chat", *at(server))
        term.wait_for("context empty")
        term.type("talk")
        term.press("Enter")
        term.wait_for("↑ ANSWER")
        for columns in (40, 79, 30, 66, 25, 90):
            term.resize(columns, 24)
            term.wait_for("scripted · context 0% · sandbox" if columns > 60 else "…")
    shown = term.lines(joined=True)
    assert sum("scripted · context" in line for line in shown) == 1


@pytest.mark.req("CL-1")
@pytest.mark.parametrize(("typed", "columns"), [("你好吗", 6), ("e\u0301a", 2), ("한국", 4), ("ok👍", 4)])
def test_cursor_position(tmux, models, typed, columns):
    with models.playing(text("ok")) as server:
        term = tmux("chat", *at(server))
        term.wait_for("context empty")
        term.type(typed)
        until = time.monotonic() + TIMEOUT_SECONDS
        while term.cursor() != 2 + columns:
            assert time.monotonic() < until, (term.cursor(), term.lines())
            time.sleep(LOOK_SECONDS)
        term.press("Enter")
        term.wait_for("ANSWER")
        assert last_message(server) == typed


@pytest.mark.req("CL-9")
def test_paste_and_cancel(tmux, models, tmp_path):
    pasted = "\n".join(f"row {number}" for number in range(200))
    (tmp_path / "pasted").write_text(pasted)
    with models.playing(text("Got it."), stall("body")) as server:
        term = tmux("chat", *at(server))
        term.wait_for("context empty")
        term("load-buffer", str(tmp_path / "pasted"))
        term("paste-buffer", "-p")
        term.wait_for("row 199")
        term.press("Enter")
        term.wait_for("Got it.")
        assert last_message(server) == pasted
        term.type("wait")
        term.press("Enter")
        models.wait(server.wait_for_requests(2))
        term.wait_for("working, Ctrl-C cancels")
        term.press("Escape")
        term.wait_for("✗ cancelled")


@pytest.mark.req("PM-5")
def test_dialog_is_answered_by_one_key(tmux, models, ostler):
    with models.playing(calls([("write", {"path": "t.txt", "content": "x\n"})]), text("Written.")) as server:
        term = tmux("chat", *at(server))
        term.wait_for("context empty")
        term.type("write it")
        term.press("Enter")
        term.wait_for("allow? [")
        time.sleep(TYPING_PAUSE_SECONDS + 0.1)  # the user reads the request
        term.press("y")
        term.wait_for("Written.")
    assert os.path.exists(ostler.workspace / "t.txt")


@pytest.mark.req("PM-11")
@pytest.mark.parametrize("seconds_per_key", [0.12, slow(0.28)])
def test_typing_does_not_answer_a_request_and_is_not_lost(tmux, models, ostler, seconds_per_key):
    before, after = "please al", "so add any days"
    slow = ("bash", {"command": "echo so far; cat fifo"})
    with models.playing(calls([slow]), calls([("write", {"path": "t.txt", "content": "x"})]), text("Done.")) as server:
        os.mkfifo(ostler.workspace / "fifo")
        term = tmux("chat", *at(server), "--allow", "bash:*")
        term.wait_for("context empty")
        term.type("go")
        term.press("Enter")
        term.wait_for("\n  so far")
        term.type(before)
        term.wait_for(f"> {before}")
        os.close(os.open(ostler.workspace / "fifo", os.O_WRONLY))
        term.wait_for("allow? [")
        for key in after:
            term.type(key)
            time.sleep(seconds_per_key)
        term.press("Enter")
        asked = term.wait_for(TYPING_HINT)
        assert "→" not in asked.partition("? write t.txt")[2]
        assert not os.path.exists(ostler.workspace / "t.txt")
        time.sleep(TYPING_PAUSE_SECONDS + 0.1)
        term.press("y", "Enter")
        term.wait_for("Done.")
        term.wait_for(f"> {before}{after}")
    assert os.path.exists(ostler.workspace / "t.txt")
