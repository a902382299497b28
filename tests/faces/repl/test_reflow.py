"""What a narrower window makes of the rows of a prompt, by itself."""

from types import SimpleNamespace

import pytest

from ostler.faces.repl.reflow import rows_cleared, rows_more


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
    assert rows_more(drawn(rows, x), columns) == more


def test_nothing_drawn_makes_no_rows():
    assert rows_more(SimpleNamespace(_last_screen=None, _last_size=None, _cursor_pos=None), 40) == 0


@pytest.mark.req("CL-6")
def test_rows_are_cleared_one_by_one_from_below():
    assert rows_cleared(0) == "\x1b[0m\x1b[J\r\x1b[2K"
    assert rows_cleared(2) == "\x1b[0m\x1b[J\r\x1b[2K\x1b[A\x1b[2K\x1b[A\x1b[2K\x1b[2B"
