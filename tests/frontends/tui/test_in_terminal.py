"""The full-screen client on a real pseudo-terminal: copying, cursor, mouse, suspending, signals, crashes, exit."""

import asyncio
import base64
import json
import os
import re
import shutil
import signal
import subprocess
import threading

import pytest
from tests.frontends.repl.chat_helpers import at
from tests.tiers import amount

from ostler.frontends.tui import copying
from ostler.frontends.tui.copying import TranscriptCopier
from ostler.frontends.tui.status import SPINNER
from ostler.testing.model_server import calls, stall, text

ALT_C, ALT_K, CTRL_Q, CTRL_Z = "\x1bc", "\x1bk", "\x11", "\x1a"
F1, F2, F3, F5, F6, F10 = "\x1bOP", "\x1bOQ", "\x1bOR", "\x1b[15~", "\x1b[17~", "\x1b[21~"
FOCUS_OUT, FOCUS_IN = "\x1b[O", "\x1b[I"
COLOUR = re.compile(rb"\x1b\[(?:[\d;]*;)?(?:3[0-8]|4[0-8]|9\d|10\d)(?:;[\d;]*)?m")
ANSWER = "Some *words*.\n\n```py\nprint(1)\n```\n\nMore.\n\n```sh\nls -l\n```\n"
LEFT = b"\x1b[?1049l"


def copied(raw):
    """Return the texts that were copied with OSC 52."""
    return [base64.b64decode(found).decode() for found in re.findall(rb"\x1b\]52;c;([^\x07]*)\x07", raw)]


def wait_for_raw(term, wanted):
    term.wait_for(lambda _: wanted in term.raw)


def set_ui(ostler, **ui):
    folder = ostler.home / ".ostler"
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"ui": ui}))


@pytest.fixture
def tui(terminal):
    """`tui(server, …)` starts the client and waits until its session is open."""

    def start(server, *args, **options):
        term = terminal("tui", *at(server), *args, **{"rows": 24, "columns": 80, **options})
        term.wait_for("ready")
        return term

    return start


def ask(term, prompt, wanted):
    term.type(f"{prompt}\r")
    term.wait_for(wanted)


@pytest.mark.req("TU-4", "TU-1")
def test_neither_bytes_nor_pasted_escapes_break_the_client(tui, models):
    with models.playing() as server:
        term = tui(server)
        term.type(b"ok \xff caf\xc3\xa9 \x1b[200~a\x1b[2J\x1b]0;x\x07b\x1b[201~!")
        term.wait_for("caf\u00e9 a[2J]0;xb!")
    assert b"\x1b]0;x" not in term.raw


@pytest.mark.req("TU-1")
def test_quit_key_in_a_dialog_does_not_end_a_running_turn(tui, models):
    with models.playing(text("one two three").hold_after(2, asyncio.Event().wait)) as server:
        term = tui(server)
        ask(term, "talk", "Esc cancels")
        term.type(F1)
        term.wait_for("closes")
        term.type(CTRL_Q)
        term.wait_for("Esc cancels")


@pytest.mark.req("TU-1")
def test_answer_and_code_blocks_are_copied_with_the_clipboard_sequence(tui, models):
    with models.playing(text(ANSWER)) as server:
        term = tui(server)
        ask(term, "talk", "done in")
        term.type(ALT_C)
        term.wait_for("copied the answer")
        term.type(ALT_K)
        term.wait_for("copied the code block")
        term.type(ALT_K)
        wait_for_raw(term, b"52;c;" + base64.b64encode(b"print(1)\n"))
    assert copied(term.raw) == [ANSWER, "ls -l\n", "print(1)\n"]


@pytest.mark.req("TU-1")
def test_text_that_is_too_long_for_the_clipboard_is_written_to_a_file(tui, models, tmp_path):
    long = "\n".join(f"line {number} of a long answer" for number in range(3000))
    with models.playing(text(long)) as server:
        term = tui(server, env={"TMPDIR": str(tmp_path)}, columns=160)
        ask(term, "talk", "done in")
        term.type(ALT_C)
        shown = term.wait_for("written to")
    (file,) = tmp_path.glob("ostler-copy-*.md")
    assert str(file) in shown
    assert file.read_text() == long
    assert file.stat().st_mode & 0o077 == 0
    assert not copied(term.raw)


@pytest.mark.req("TU-1")
def test_text_that_can_neither_be_copied_nor_written_is_reported(monkeypatch):
    def fail(*arguments, **options):
        raise OSError(28, "No space left on device")

    notes = []
    monkeypatch.setattr(copying, "NamedTemporaryFile", fail)
    TranscriptCopier(None, lambda sequence: None, notes.append).copy_selection("x" * 80_000)
    assert notes == ["too long for the clipboard, and no file can be written: No space left on device"]


@pytest.mark.req("TU-1")
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_copied_text_is_in_the_buffer_of_tmux(tmux, models):
    with models.playing(text(ANSWER)) as server:
        term = tmux("tui", *at(server))
        term("set", "-g", "set-clipboard", "on")
        term.wait_for("ready")
        term.type("talk")
        term.press("Enter")
        term.wait_for("done in")
        term.press("M-c")
        term.wait_for("copied the answer")
        assert term("show-buffer") == ANSWER


@pytest.mark.req("TU-1")
def test_mouse_is_released_by_one_key_and_stays_so_after_a_suspension(tui, models):
    with models.playing() as server:
        term = tui(server, below_a_shell=True)
        term.type(F6)
        term.wait_for("mouse off")
        wait_for_raw(term, b"\x1b[?1000l")
        released = len(term.raw)
        term.type(CTRL_Z)
        pid = term.stopped()
        os.kill(pid, signal.SIGCONT)
        term.wait_for(lambda _: term.raw.count(b"\x1b[?1049h") == 2)
        term.type("still here")
        term.wait_for("still here")
        assert b"\x1b[?1000h" not in term.raw[released:]
        term.type(F6)
        term.wait_for("mouse on")
        wait_for_raw(term, b"\x1b[?1000h")


def drag(term, start, end):
    """Press the left button at a position (column and row, from 0), move, and release it."""
    (x, y), (to_x, to_y) = start, end
    term.type(f"\x1b[<0;{x + 1};{y + 1}M\x1b[<32;{to_x + 1};{to_y + 1}M\x1b[<0;{to_x + 1};{to_y + 1}m")


def place_of(term, words):
    return next((row.index(words), y) for y, row in enumerate(term.screen.display) if words in row)


@pytest.mark.req("TU-1")
def test_text_that_is_selected_with_the_mouse_is_copied(tui, models):
    with models.playing(text(ANSWER)) as server:
        term = tui(server)
        ask(term, "talk", "done in")
        term.wait_for("ls -l")
        x, y = place_of(term, "Some words")
        drag(term, (x + 5, y), (x + 9, y))
        term.wait_for("copied the selected text")
        drag(term, (x - 2, y), place_of(term, "More."))
        wait_for_raw(term, b"52;c;" + base64.b64encode(b"Some words.\n\n```py\nprint(1)\n```\n\nM"))
        to_x, to_y = place_of(term, "ls -l")
        drag(term, (to_x + 1, to_y), (x + 8, y))
        term.wait_for(lambda _: len(copied(term.raw)) == 3)
    assert copied(term.raw)[0] == "words"
    assert copied(term.raw)[2] == "ds.\n\n```py\nprint(1)\n```\n\nMore.\n\n```sh\nls"


@pytest.mark.req("TU-1")
def test_wheel_scrolls_and_a_click_unfolds(tui, models):
    long = "\n".join(f"- item {number}" for number in range(60))
    replies = [calls([("bash", {"command": "seq 50"})]), text(long)]
    with models.playing(*replies) as server:
        term = tui(server, "--allow", "bash:*")
        ask(term, "talk", "done in")
        term.wait_for("item 59")
        for _ in range(30):
            term.type("\x1b[<64;10;10M")
        term.wait_for("> talk")
        x, y = place_of(term, "bash")
        term.type(f"\x1b[<0;{x + 1};{y + 1}M\x1b[<0;{x + 1};{y + 1}m")
        term.wait_for(lambda _: any(row.strip() == "12" for row in term.screen.display))


@pytest.mark.req("TU-4")
def test_terminal_cursor_is_at_the_caret_while_text_streams(tui, models):
    lines = "\n\n".join(f"line {number} of the answer" for number in range(60))
    with models.playing(text(lines, chunks=60).with_pause(0.02)) as server:
        term = tui(server)
        term.type("talk\r")
        term.type("日本")
        column, row = 2 + 4, 22
        for number in range(10, 60, 10):
            term.wait_for(f"line {number} of")
            term.wait_for(lambda _: (term.screen.cursor.x, term.screen.cursor.y) == (column, row))
        term.wait_for("done in")
    frames = term.raw.split(b"line 59 of")[0].split(b"\x1b[23;7H")
    assert len(frames) > 5, "the cursor is placed after every frame"


@pytest.mark.req("TU-1")
def test_no_color_writes_no_colours_anywhere(tui, models):
    with models.playing(text(ANSWER), ask_permission()) as server:
        term = tui(server, "--leave-transcript", env={"NO_COLOR": "1"})
        ask(term, "talk", "done in")
        ask(term, "write", "needs your approval")
        term.type("\x1b")
        term.wait_for("cancelled after")
        for key, wanted in ((F1, "GENERAL"), (F2, "Commands and actions"), (F3, "score"), (F5, "Sessions of all")):
            term.type(key)
            term.wait_for(wanted)
            term.type("\x1b")
            term.wait_for(lambda shown, title=wanted: title not in shown)
        term.type(F10)
        term.leave()
    assert re.search(rb"\x1b\[(?:\d;)*7m", term.raw), "the cursor is shown without colours"
    assert not COLOUR.search(term.raw)
    assert term.raw.split(LEFT)[1].decode().count("print(1)") == 1


@pytest.mark.req("TU-1")
def test_ctrl_z_suspends_and_everything_is_drawn_again_afterwards(tui, models):
    with models.playing(text(ANSWER)) as server:
        term = tui(server, below_a_shell=True)
        ask(term, "talk", "done in")
        term.wait_for(lambda shown: "ls -l" in shown and " ready " in shown)
        before = [row.rstrip() for row in term.screen.display]
        term.type(CTRL_Z)
        pid = term.stopped()
        assert term.line_by_line()
        term.wait_for(lambda _: LEFT in term.raw and term.raw.endswith((b"\x1b[?1004l", b"\x1b[?1006l")))
        term.screen.reset()
        os.kill(pid, signal.SIGCONT)
        term.wait_for("done in")
        term.wait_for(lambda _: [row.rstrip() for row in term.screen.display] == before)
        term.type("x\x7f")
        term.type(F10)
        term.leave()


@pytest.mark.req("TU-1")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signal_ends_the_client_and_restores_the_terminal(tui, models, number, status):
    with models.playing(stall()) as server:
        term = tui(server)
        term.type("talk\r")
        models.wait(server.wait_for_requests(1))
        os.kill(term.process.pid, number)
        assert term.process.wait(30) == status
        wait_for_raw(term, LEFT)
        assert term.restored()


@pytest.mark.req("TU-1")
def test_closed_terminal_ends_the_client(tui, models):
    with models.playing(stall()) as server:
        term = tui(server)
        term.type("talk\r")
        models.wait(server.wait_for_requests(1))
        term.hang_up()
        assert term.process.wait(30) == 129


IGNORING = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
from ostler.__main__ import main
sys.exit(main())
"""


@pytest.mark.req("TU-1")
@pytest.mark.parametrize("ignored", [False, True])
def test_closed_terminal_ends_the_client_while_text_streams(tui, models, ignored):
    """Also if the signal is ignored, as after `nohup`: then only reading and writing fail."""
    long = "".join(f"word {number} " for number in range(20_000))
    with models.playing(text(long, chunks=20_000).with_pause(0.001)) as server:
        term = tui(server, code=IGNORING if ignored else "")
        ask(term, "talk", "word 400 ")
        term.hang_up()
        assert term.process.wait(3) == 129


BLOCKED = """
import sys, threading
from ostler.frontends.tui.transcript.view import TranscriptView
def page(self, direction):
    self.app.write_terminal("blocked now")
    threading.Event().wait()
TranscriptView.page = page
from ostler.__main__ import main
sys.exit(main())
"""


@pytest.mark.req("TU-1")
def test_closed_terminal_ends_a_client_whose_loop_is_blocked(tui, models):
    with models.playing() as server:
        term = tui(server, code=BLOCKED)
        term.type("\x1b[5~")
        wait_for_raw(term, b"blocked now")
        term.hang_up()
        assert term.process.wait(3) == 129


CRASHING = """
import sys
from ostler.frontends.tui.transcript.view import TranscriptView
def render_line(self, y):
    if self._visible:
        raise RuntimeError("planted [bold]fault[/bold]")
    return draw(self, y)
draw, TranscriptView.render_line = TranscriptView.render_line, render_line
from ostler.__main__ import main
sys.exit(main())
"""


@pytest.mark.req("TU-1")
def test_exception_restores_the_terminal_and_is_shown(terminal, models):
    with models.playing(text(ANSWER)) as server:
        term = terminal("tui", *at(server), code=CRASHING)
        term.wait_for("ready")
        term.type("talk\r")
        assert term.process.wait(30) == 1
        wait_for_raw(term, b"planted")
        assert term.restored()
    assert LEFT in term.raw
    assert b"[bold]fault[/bold]" in re.sub(rb"\x1b\[[\d;]*m", b"", term.raw.split(LEFT)[1])


@pytest.mark.req("TU-1")
def test_killed_client_leaves_a_usable_terminal(tui, models):
    with models.playing(stall()) as server:
        term = tui(server)
        term.type("talk\r")
        models.wait(server.wait_for_requests(1))
        os.kill(term.process.pid, signal.SIGKILL)
        wait_for_raw(term, b"the client was killed")
        assert term.line_by_line()
    end = term.raw.rpartition(b"\x1b[?2004l")[2]
    for mode in (b"?1049l", b"?25h", b"?1000l", b"?1003l", b"?1006l", b"?1004l", b"?7h"):
        assert mode in end


@pytest.mark.req("TU-1")
def test_transcript_is_left_in_the_scrollback_if_wanted(tui, models):
    long = "\n".join(f"row {number}." for number in range(100))
    with models.playing(text(long)) as server:
        term = tui(server, "--leave-transcript")
        ask(term, "talk", "done in")
        term.type(F10)
        term.leave()
    left = re.sub(rb"\x1b\[[\d;?<]*[a-zA-Z]", b"", term.raw.split(LEFT)[1]).decode()
    assert [f"row {number}." for number in range(100)] == re.findall(r"row \d+\.", left)
    assert "> talk" in left


def ask_permission():
    return calls([("write", {"path": "new.txt", "content": "x"})])


@pytest.mark.req("TU-1")
@pytest.mark.parametrize(
    ("env", "sequence"),
    [
        ({}, rb"\x1b\]9;Ostler needs approval: [^\x1b]*\x1b\\\a"),
        ({"KITTY_WINDOW_ID": "1"}, rb"\x1b\]99;;Ostler needs approval: [^\x1b]*\x1b\\\a"),
        ({"VTE_VERSION": "7000"}, rb"\x1b\]777;notify;Ostler;Ostler needs approval: [^\x1b]*\x1b\\\a"),
        ({"TMUX": "/tmp/x,1,0"}, rb"\x1bPtmux;\x1b\x1b\]9;Ostler needs approval: [^\x1b]*\x1b\x1b\\\x1b\\\a"),
    ],
)
def test_user_of_another_window_is_notified_of_a_request(ostler, tui, models, env, sequence):
    set_ui(ostler, bell=True)
    with models.playing(ask_permission()) as server:
        term = tui(server, env=env)
        term.type(FOCUS_OUT)
        ask(term, "write", "new.txt")
        term.wait_for(lambda _: re.search(sequence, term.raw))


@pytest.mark.req("TU-1")
@pytest.mark.parametrize(("bell", "focus"), [(True, FOCUS_OUT + FOCUS_IN), (True, ""), (False, FOCUS_OUT)])
def test_nobody_is_notified_with_the_focus_or_without_the_setting(ostler, tui, models, bell, focus):
    set_ui(ostler, bell=bell)
    with models.playing(ask_permission()) as server:
        term = tui(server)
        term.type(focus)
        ask(term, "write", "new.txt")
        term.wait_for("once")
        term.type(F10)
    assert b"\x1b]9;" not in term.raw
    assert b"\a" not in term.raw.replace(b"\x1b]22;default\a", b""), "only the sequence for the form of the pointer"


@pytest.mark.req("TU-4")
def test_editor_has_the_terminal_to_itself_while_text_streams(ostler, tui, models, tmp_path):
    """More frames than the queue of Textual's writer has room for are due while the editor runs."""
    editor, done = tmp_path / "editor", tmp_path / "done"
    editor.write_text(f"#!/bin/sh\nwhile [ ! -e {done} ]; do sleep 0.05; done\nprintf 'edited text' > \"$1\"\n")
    editor.chmod(0o755)
    long = "\n\n".join(f"line {number} of the answer" for number in range(150))
    sent = threading.Event()

    async def note(index):
        if index >= 149:
            sent.set()

    with models.playing(text(long, chunks=150).with_pause(0.02).paced_by(note)) as server:
        term = tui(server, env={"EDITOR": str(editor)})
        ask(term, "talk", "line 1 of")
        term.type("\x18\x05")
        wait_for_raw(term, LEFT)
        before = len(term.raw)
        assert sent.wait(30)
        assert b"line" not in term.raw[before:]
        done.touch()
        term.wait_for("edited text")
        term.wait_for("line 149 of")


@pytest.mark.req("SE-1", "TU-10")
def test_client_that_was_killed_in_a_turn_shows_the_partial_reply_again(ostler, tui, models):
    long = "\n\n".join(f"line {number} of the answer" for number in range(50))
    with models.playing(text(long, chunks=50).stall_after(30)) as server:
        term = tui(server)
        ask(term, "talk", "line 25 of")
        (journal,) = ostler.home.glob(".ostler/projects/*/sessions/*/journal.jsonl")
        term.wait_for(lambda _: "line 25 of the answer" in journal.read_text())
        os.kill(term.process.pid, signal.SIGKILL)
        wait_for_raw(term, b"the client was killed")
    with models.playing(text("All done.")) as server:
        again = tui(server, "--continue")
        again.wait_for("[truncated]")
        ask(again, "go on", "All done.")
        request = json.loads(server.requests[0].body)
    assert "line 25 of the answer" in json.dumps(request["messages"])


def top_line(term):
    """Return the number of the first line of the answer that is visible, if it is at the top."""
    found = re.search(r"line (\d+) of", "".join(term.screen.display[2:4]))
    return int(found[1]) if found else None


@pytest.mark.req("TU-10")
def test_many_resizes_during_a_stream_keep_the_line_that_is_read(tui, models):
    words = "of the answer, with more words than a narrow window has room for"
    long = "\n\n".join(f"line {number} {words}" for number in range(300))
    with models.playing(text(long, chunks=300).with_pause(0.01)) as server:
        term = tui(server, rows=30, columns=100)
        ask(term, "talk", "line 60 of")
        term.type("\x1b[1;5H\x1b[6~")
        term.wait_for(lambda _: 5 < (top_line(term) or 0) < 20)
        read = top_line(term)
        for number in range(amount(30, slow=200)):
            term.resize(50 + number * 7 % 90, 12 + number * 5 % 30)
            term.settle()
        term.resize(100, 30)
        term.type("typed")
        term.wait_for("typed")
        term.wait_for(lambda _: top_line(term) == read, timeout=20)
        term.type("\x1b[1;5F")
        term.wait_for("line 299 of")


@pytest.mark.req("TU-1")
@pytest.mark.parametrize("way", ["flag", "setting"])
def test_nothing_moves_by_itself_without_animations(ostler, tui, models, way):
    set_ui(ostler, animations=way == "flag")
    with models.playing(stall()) as server:
        term = tui(server, *(["--slow"] if way == "flag" else []))
        ask(term, "talk", "2 s · Esc cancels")
    seen = {sign for sign in SPINNER if sign in term.raw.decode()}
    assert len(seen) == 1, "only the clock changes"


@pytest.mark.req("TU-7")
def test_slow_connection_gets_few_frames(tui, models):
    lines = "\n\n".join(f"line {number} of the answer" for number in range(100))
    frames = {}
    for name, flags in (("usual", []), ("slow", ["--slow"])):
        with models.playing(text(lines, chunks=100).with_pause(0.02)) as server:
            term = tui(server, *flags)
            ask(term, "talk", "line 2 of")
            before = len(term.raw)
            term.wait_for("line 97 of")
        frames[name] = term.raw[before:].count(b"\x1b[23;3H")  # the cursor is placed after each frame
    assert frames["slow"] < 0.6 * frames["usual"], frames


def make_repository(folder):
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *words], cwd=folder, check=True)


@pytest.mark.req("TU-9")
@pytest.mark.parametrize("flags", [["--agent", "nonsense"], ["--resume", "last"]])
def test_no_worktree_stays_if_no_session_can_be_opened(terminal, models, ostler, flags):
    make_repository(ostler.workspace)
    with models.playing() as server:
        term = terminal("tui", *at(server), "--worktree", "fix", *flags)
        assert term.process.wait(30) == 2
    assert ostler("worktree", "list").stdout == "no worktrees\n"
    branches = subprocess.run(["git", "branch", "--list", "ostler/*"], cwd=ostler.workspace, capture_output=True)
    assert branches.stdout == b""


@pytest.mark.req("TU-9", "PM-10")
def test_flags_hold_in_the_new_worktree(tui, models, ostler):
    make_repository(ostler.workspace)
    with models.playing() as server:
        term = tui(server, "--worktree", "fix", "--mode", "plan", "--profile", "paranoid", columns=140)
        cards = term.screen.display[1]
    assert re.search(r" plan .* paranoid +ostler/fix ", cards), cards
