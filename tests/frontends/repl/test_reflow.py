"""What a narrower window makes of the rows of a prompt, by itself."""

from types import SimpleNamespace

import pytest

from ostler.frontends.repl.reflow import backspace_crosses_wrap, erase_sequence, extra_rows


def drawn(rows, x, columns=80):
    """A renderer that drew those rows, with the cursor in the last of them."""
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
        (["> " + "x" * 38], 40, 40, 0),  # behind the last letter of a full row
        (["> " + "x" * 38 + " "], 41, 40, 0),
        (["> " + "x" * 39], 41, 40, 1),
        (["> " + "x" * 78], 40, 40, 1),  # in the middle, at the first letter of the second row
        (["> " + "x" * 78], 39, 40, 0),
        (["s" * 78, "> "], 2, 100, 0),
        (["s" * 78, "> "], 2, 0, 0),
    ],
)
def test_rows_that_a_narrower_window_makes(rows, x, columns, more):
    assert extra_rows(drawn(rows, x), columns) == more


def test_nothing_drawn_makes_no_rows():
    assert extra_rows(SimpleNamespace(_last_screen=None, _last_size=None, _cursor_pos=None), 40) == 0


@pytest.mark.req("CL-6")
def test_all_is_cleared_from_where_it_begins_but_never_from_the_corner_of_the_screen():
    assert erase_sequence(2, 0, backspace_wraps=False) == "\x1b[0m\r \x1b[J\r\x1b[K"
    assert erase_sequence(2, 3, backspace_wraps=False) == "\x1b[0m\r\x1b[3A \x1b[J\r\x1b[K"
    assert erase_sequence(2, 0, backspace_wraps=True) == "\x1b[0m\b\b\b\b \x1b[J\r\x1b[K"


@pytest.mark.parametrize(
    ("env", "so"),
    [
        ({"TMUX": "/tmp/tmux-0/default,1,0"}, True),
        ({"TERM": "tmux-256color"}, True),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "screen"}, False),
        ({"TMUX": "/tmp/tmux-0/default,1,0", "STY": "1.pts-0.host"}, False),  # screen within tmux
    ],
)
def test_only_tmux_climbs(env, so):
    assert backspace_crosses_wrap(env) is so
