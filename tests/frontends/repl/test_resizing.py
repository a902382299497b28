"""A window that becomes narrower, before the editor was told of it or as it is told: what stands there afterwards."""

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
from tests.frontends.repl.reflowing import Reflowing

from ostler.frontends.repl.line_editor import LineEditorConsole

COLUMNS, ROWS = 120, 12
STANDING = "working, Ctrl-C cancels · build · scripted · context 12% of 128000 · sandbox bubblewrap · main"
PASSING = "the line that is being said, which is longer than what there is room for in a narrow window"
DRAFT = "words typed meanwhile, also more of them than there is room for in a narrow window"
SAID = [f"line {number} of the answer" for number in range(20)]


class Desk:
    """An editor that draws when it is told to, and the terminal that sees it."""

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
        self._current = ExitStack()  # without one, each question of the toolkit for the app makes another
        self._current.enter_context(set_app(self._app))
        self._console.set_menu(None)
        self._console.set_status(PASSING, STANDING)

    def type(self, text):
        self._console._session.default_buffer.insert_text(text)

    def say(self, *lines):
        self._console.show(lines)
        self._console._flush()

    def drawn(self):
        """What stands there, when what was written so far and the prompt have reached the terminal."""
        self._app._redraw()
        self._arrive()
        return "\n".join(self._screen.text())

    def tell(self, columns):
        fcntl.ioctl(self._out, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))

    def lend(self, shown):
        """To a program that shows this in place of the prompt."""
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
        os.write(self._out.fileno(), b"\0")  # whatever else was written is before it
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
    """Not a word of it is there twice; the terminal may have wrapped it anywhere."""
    squeezed = "".join(shown.split())
    return squeezed.count("".join(words.split())[:20]) == 1


@pytest.mark.req("CL-1", "CL-6")
@pytest.mark.parametrize("climbing", [False, True])
@pytest.mark.parametrize("typed", ["", DRAFT[:20]])
@pytest.mark.parametrize("columns", [30, 41, 60, 95])
async def test_a_window_that_narrows_before_we_know_leaves_nothing_of_the_status(desk, columns, typed, climbing):
    desk = desk(climbing=climbing)
    desk.type(typed)
    desk.say(*SAID)
    desk.drawn()
    desk.narrow(columns)
    desk.say("the next line")
    desk.drawn()
    desk.say("the last line")
    shown = desk.drawn()
    before, prompt, below = shown.partition("\n>")
    assert before.split("\n") == [*SAID, "the next line", "the last line"]
    assert prompt
    assert below.startswith(f" {typed}".rstrip())
    assert only_once(shown, STANDING)


@pytest.mark.req("CL-1", "CL-6")
@pytest.mark.parametrize("typed", [DRAFT, "one\ntwo " + DRAFT + "\nthree"])
@pytest.mark.parametrize("columns", [30, 41, 60, 82, 84])
async def test_in_tmux_nothing_stays_of_a_long_draft_either(desk, columns, typed):
    desk = desk(climbing=True)
    desk.type(typed)
    desk.say(*SAID)
    desk.drawn()
    desk.narrow(columns)
    desk.say("the last line")
    before, _, _ = desk.drawn().partition("\n>")
    assert before.split("\n") == [*SAID, "the last line"]


@pytest.mark.req("CL-1", "CL-6")
async def test_a_status_that_changes_meanwhile_is_drawn_where_it_is_taken_away_again(desk):
    desk = desk()
    desk.say(*SAID)
    desk.drawn()
    desk.narrow(40)
    desk._console.set_status("something else is being said", STANDING.upper())
    desk.drawn()
    desk.say("the last line")
    before, _, _ = desk.drawn().partition("\n>")
    assert before.split("\n") == [*SAID, "the last line"]


@pytest.mark.req("CL-1")
async def test_a_new_size_is_drawn_at_once_also_before_a_signal_says_so(desk):
    desk = desk()
    desk.say(*SAID)
    desk.drawn()
    desk.narrow(40)
    desk.tell(40)
    assert desk.drawn().split("\n")[len(SAID) :] == [
        ">",
        "working, Ctrl-C cancels · build · scri…",
        f"  {PASSING[-37:]}",
    ]


@pytest.mark.req("CL-1")
async def test_a_window_that_changes_under_another_program_is_left_to_it(desk):
    desk = desk()
    desk.drawn()
    desk.lend("what an editor shows")
    desk.tell(40)
    desk._app._on_resize()
    assert "what an editor shows" in desk.drawn()
