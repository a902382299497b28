"""Lines wrapped between words: what each row holds, and that nothing is lost, whatever the window."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ostler.rendering.markdown import render_markdown
from ostler.rendering.measure import count_columns
from ostler.rendering.message_stream import MessageRenderer
from ostler.rendering.style import Styler
from ostler.rendering.wrapping import wrap, wrap_notice

ESCAPES = re.compile(r"\x1b\[[\d;]*m")
SAID = "The quick brown fox jumps over the lazy dog"


def in_window(columns, on=True):
    return Styler(on, columns=lambda: columns)


def shown(text, columns, on=True):
    return [ESCAPES.sub("", line) for line in render_markdown(text, in_window(columns + 2, on))]


@pytest.mark.req("CL-5")
@pytest.mark.parametrize(
    ("source", "rows"),
    [
        (SAID, ["The quick brown fox", "jumps over the lazy", "dog"]),
        (f"- {SAID}", ["• The quick brown", "  fox jumps over the", "  lazy dog"]),
        (f"  - {SAID}", ["  • The quick brown", "    fox jumps over", "    the lazy dog"]),
        (f"10. {SAID}", ["10. The quick brown", "    fox jumps over", "    the lazy dog"]),
        (f"> {SAID}", ["│ The quick brown", "│ fox jumps over the", "│ lazy dog"]),
        (f"# {SAID}", ["The quick brown fox", "jumps over the lazy", "dog"]),
        (f"```\n{SAID}\n```", ["```", SAID, "```"]),
        (f"| a |\n|---|\n| {SAID} |", ["a".ljust(1), "─" * len(SAID), SAID]),
        ("see https://example.org/a/long/way ok", ["see https://example.org/a/long/way ok"]),
        ("- https://example.org/a/long/way", ["• https://example.org/a/long/way"]),
        ("中文段落这是一个很长的段落，应该换行", ["中文段落这是一个很长", "的段落，应该换行"]),
        ("一二三四五六七八九十，好", ["一二三四五六七八九", "十，好"]),
        (
            "a 👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦",
            ["a " + "👩‍👩‍👧‍👦" * 9, "👩‍👩‍👧‍👦"],
        ),
        ("exactly twenty chars", ["exactly twenty chars"]),
        ("", [""]),
    ],
)
def test_rows_end_between_words(source, rows):
    assert [row.rstrip() for row in shown(source, 20)] == rows


@pytest.mark.req("CL-5")
def test_without_colour_words_are_kept_whole_too():
    assert shown(f"- {SAID}\n> {SAID}", 20, on=False) == [
        *("- The quick brown", "  fox jumps over the", "  lazy dog"),
        *("> The quick brown", "> fox jumps over the", "> lazy dog"),
    ]


@pytest.mark.req("CL-5")
def test_what_is_piped_stays_as_it_was_said():
    assert render_markdown(f"{SAID} {SAID}", Styler(enabled=False)) == [f"{SAID} {SAID}"]


def test_a_colour_goes_on_over_the_end_of_a_row():
    rows = render_markdown(f"so **{SAID}** it", in_window(22))
    assert len(rows) == 3
    for row in rows:
        assert row.count("\x1b[1m") == row.count("\x1b[0m") == 1, row


def test_what_is_printed_after_a_resize_has_the_new_width():
    width = [22]
    message = MessageRenderer(Styler(enabled=True, columns=lambda: width[0]))
    narrow = message.feed(f"{SAID}\n")
    width[0] = 60
    wide = message.feed(f"{SAID}\n")
    assert (len(narrow), len(wide)) == (3, 1)


@pytest.mark.parametrize("columns", [0, 1, 2, 5])
def test_a_window_without_room_changes_nothing(columns):
    assert wrap(SAID, columns) == [SAID]


WORDS = st.lists(
    st.sampled_from(["a", "word", "\x1b[1m", "\x1b[0m", "中文", "é", "👍🏽", "longer-one", "  "]), max_size=60
)


@example(words=["  ", "longer-one"], columns=12, hanging="")
@given(words=WORDS, columns=st.integers(12, 40), hanging=st.sampled_from(["", "  ", "\x1b[2m│ \x1b[0m"]))
def test_nothing_is_lost_and_no_row_is_too_long(words, columns, hanging):
    line = " ".join(words)
    rows = wrap(line, columns, hanging)
    bare = [ESCAPES.sub("", row) for row in rows]
    mark = ESCAPES.sub("", hanging)
    said = bare[0] + "".join(row.removeprefix(mark) for row in bare[1:])
    assert said.replace(" ", "") == ESCAPES.sub("", line).replace(" ", "")
    assert all(count_columns(row.rstrip()) <= columns for row in bare)


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        (f"  {SAID}", ["  The quick brown fox", "  jumps over the lazy", "  dog"]),
        ("  /fork [n]  go on in a copy", ["  /fork [n]  go on in", "             a copy"]),
        ("! a warning of many words here", ["! a warning of many", "  words here"]),
        ("one\ntwo", ["one", "two"]),
        ("", [""]),
    ],
)
def test_lines_of_ours_go_on_below_their_words(line, rows):
    assert wrap_notice(line, 22 if "fork" in line else 21) == rows
    assert wrap_notice(line, 0) == line.split("\n")
