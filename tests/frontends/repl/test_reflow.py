"""Unit tests of erasing a rewrapped prompt."""

from types import SimpleNamespace

import pytest

from ostler.frontends.repl.reflow import backspace_crosses_wrap, erase_sequence, extra_rows


def drawn(rows, x, columns=80):
    """Return a renderer that drew these rows, with the cursor in the last one."""
    cells = [{at: SimpleNamespace(char=char) for at, char in enumerate(row)} for row in rows]
    screen, cursor = SimpleNamespace(data_buffer=cells), SimpleNamespace(x=x, y=len(rows) - 1)
    return SimpleNamespace(_last_screen=screen, _last_size=SimpleNamespace(columns=columns), _cursor_pos=cursor)


@pytest.mark.req("CL-1")
@pytest.mark.parametrize(
    ("rows", "x", "columns", "more"),
    [
        (["status", "> "], 2, 40, 0),
        (["s" * 78, "> "], 2, 40, 1),
        (["s" * 78, "> "], 2, 39, 1),
        (["s" * 78, "> "], 2, 38, 2),
        (["> " + "x" * 38], 40, 40, 0),  # after the last letter of a full row
        (["> " + "x" * 38 + " "], 41, 40, 0),
        (["> " + "x" * 39], 41, 40, 1),
        (["> " + "x" * 78], 40, 40, 1),  # in the middle, at the first letter of the second row
        (["> " + "x" * 78], 39, 40, 0),
        (["s" * 78, "> "], 2, 100, 0),
        (["s" * 78, "> "], 2, 0, 0),
    ],
)
def test_extra_rows(rows, x, columns, more):
    assert extra_rows(drawn(rows, x), columns) == more


def test_extra_rows_without_a_screen():
    assert extra_rows(SimpleNamespace(_last_screen=None, _last_size=None, _cursor_pos=None), 40) == 0


@pytest.mark.req("CL-6")
def test_erase_sequence():
    assert erase_sequence(2, 0, backspace_wraps=False) == "\x1b[0m\r \x1b[J\r\x1b[K"
    assert erase_sequence(2, 3, backspace_wraps=False) == "\x1b[0m\r\x1b[3A \x1b[J\r\x1b[K"
    assert erase_sequence(2, 0, backspace_wraps=True) == "\x1b[0m\b\b\b\b \x1b[J\r\x1b[K"


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"TMUX": "/tmp/tmux-0/default,1,0"}, True),
        ({"TERM": "tmux-256color"}, True),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "screen"}, False),
        ({"TMUX": "/tmp/tmux-0/default,1,0", "STY": "1.pts-0.host"}, False),  # screen within tmux
    ],
)
def test_backspace_crosses_wrap_only_in_tmux(env, expected):
    assert backspace_crosses_wrap(env) is expected
