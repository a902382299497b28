"""Output after the window becomes narrower, before and after the editor knows the new size."""

import fcntl
import os
import pty
import struct
import termios
from contextlib import ExitStack
from contextvars import copy_context

import pyte
import pytest
from prompt_toolkit.application.current import set_app
from tests.frontends.repl.reflowing_screen import Reflowing

from ostler.frontends.repl.line_editor import LineEditorConsole

COLUMNS, ROWS = 120, 12
SUMMARY = "working, Ctrl-C cancels · build · scripted · context 12% of 128000 · sandbox bubblewrap · main"
ACTIVITY = "the line that is being said, which is longer than what there is room for in a narrow window"
DRAFT = "words typed meanwhile, also more of them than there is room for in a narrow window"
ANSWER_LINES = [f"line {number} of the answer" for number in range(20)]


class Desk:
    """An editor that draws on request, and the emulated terminal that shows it."""

    def __init__(self, *, climbing):
        self._master, slave = pty.openpty()
        self._out = os.fdopen(slave, "w", encoding="utf-8")
        self._screen = Reflowing(COLUMNS, ROWS, climbing=climbing)
        self._stream = pyte.ByteStream(self._screen)
        self.tell(COLUMNS)
        self._console = LineEditorConsole(self._out, None)
        self._app = self._console._session.app
        self._app._is_running = True
        self._app.context = copy_context()
        self._current = ExitStack()  # otherwise the toolkit creates a new app for each access
        self._current.enter_context(set_app(self._app))
        self._console.set_menu(None)
        self._console.set_status(ACTIVITY, SUMMARY)

    def type(self, text):
        self._console._session.default_buffer.insert_text(text)

    def say(self, *lines):
        self._console.show(lines)
        self._console._flush()

    def drawn(self):
        """Draw the prompt and return the text of the terminal."""
        self._app._redraw()
        self._arrive()
        return "\n".join(self._screen.text())

    def tell(self, columns):
        fcntl.ioctl(self._out, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))

    def lend(self, shown):
        """Give the terminal to a program that shows this text instead of the prompt."""
        self._app.renderer.erase()
        self._app._running_in_terminal = True
        self._out.write(shown)
        self._out.flush()

    def narrow(self, columns):
        self._screen.narrow(columns)

    def close(self):
        self._current.close()
        self._out.close()
        os.close(self._master)

    def _arrive(self):
        os.write(self._out.fileno(), b"\0")  # marks the end of the output
        data = b""
        while not data.endswith(b"\0"):
            data += os.read(self._master, 65536)
        self._stream.feed(data.rstrip(b"\0"))


@pytest.fixture
def desk(monkeypatch):
    made = []

    def make(*, climbing=False):
        for name in ("TMUX", "STY", "TERM"):
            monkeypatch.delenv(name, raising=False)
        if climbing:
            monkeypatch.setenv("TMUX", "here")
        made.append(Desk(climbing=climbing))
        return made[-1]

    yield make
    for one in made:
        one.close()


def only_once(shown, words):
    """Return whether a text is shown once; the terminal may have wrapped it anywhere."""
    squeezed = "".join(shown.split())
    return squeezed.count("".join(words.split())[:20]) == 1


@pytest.mark.req("CL-1", "CL-6")
@pytest.mark.parametrize("climbing", [False, True])
@pytest.mark.parametrize("typed", ["", DRAFT[:20]])
@pytest.mark.parametrize("columns", [30, 41, 60, 95])
@pytest.mark.sampled(every=3)
async def test_narrowing_before_the_editor_knows_leaves_no_status_behind(desk, columns, typed, climbing):
    desk = desk(climbing=climbing)
    desk.type(typed)
    desk.say(*ANSWER_LINES)
    desk.drawn()
    desk.narrow(columns)
    desk.say("the next line")
    desk.drawn()
    desk.say("the last line")
    shown = desk.drawn()
    before, prompt, below = shown.partition("\n>")
    assert before.split("\n") == [*ANSWER_LINES, "the next line", "the last line"]
    assert prompt
    assert below.startswith(f" {typed}".rstrip())
    assert only_once(shown, SUMMARY)


@pytest.mark.req("CL-1", "CL-6")
@pytest.mark.parametrize("typed", [DRAFT, "one\ntwo " + DRAFT + "\nthree"])
@pytest.mark.parametrize("columns", [30, 41, 60, 82, 84])
@pytest.mark.sampled(every=3)
async def test_narrowing_in_tmux_leaves_no_draft_behind(desk, columns, typed):
    desk = desk(climbing=True)
    desk.type(typed)
    desk.say(*ANSWER_LINES)
    desk.drawn()
    desk.narrow(columns)
    desk.say("the last line")
    before, _, _ = desk.drawn().partition("\n>")
    assert before.split("\n") == [*ANSWER_LINES, "the last line"]


@pytest.mark.req("CL-1", "CL-6")
async def test_changed_status_is_erased_after_narrowing(desk):
    desk = desk()
    desk.say(*ANSWER_LINES)
    desk.drawn()
    desk.narrow(40)
    desk._console.set_status("something else is being said", SUMMARY.upper())
    desk.drawn()
    desk.say("the last line")
    before, _, _ = desk.drawn().partition("\n>")
    assert before.split("\n") == [*ANSWER_LINES, "the last line"]


@pytest.mark.req("CL-1")
async def test_new_size_is_drawn_before_the_signal(desk):
    desk = desk()
    desk.say(*ANSWER_LINES)
    desk.drawn()
    desk.narrow(40)
    desk.tell(40)
    assert desk.drawn().split("\n")[len(ANSWER_LINES) :] == [
        ">",
        "working, Ctrl-C cancels · build · scri…",
        f"  {ACTIVITY[-37:]}",
    ]


@pytest.mark.req("CL-1")
async def test_resize_during_another_program_is_ignored(desk):
    desk = desk()
    desk.drawn()
    desk.lend("what an editor shows")
    desk.tell(40)
    desk._app._on_resize()
    assert "what an editor shows" in desk.drawn()
