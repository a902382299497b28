"""Wrapped lines: the rows of a line, with no text lost at any width."""

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
TEXT = "The quick brown fox jumps over the lazy dog"


def styler(columns, enabled=True):
    return Styler(enabled, columns=lambda: columns)


def rendered(text, columns, enabled=True):
    return [ESCAPES.sub("", line) for line in render_markdown(text, styler(columns + 2, enabled))]


@pytest.mark.req("CL-5")
@pytest.mark.parametrize(
    ("source", "rows"),
    [
        (TEXT, ["The quick brown fox", "jumps over the lazy", "dog"]),
        (f"- {TEXT}", ["• The quick brown", "  fox jumps over the", "  lazy dog"]),
        (f"  - {TEXT}", ["  • The quick brown", "    fox jumps over", "    the lazy dog"]),
        (f"10. {TEXT}", ["10. The quick brown", "    fox jumps over", "    the lazy dog"]),
        (f"> {TEXT}", ["│ The quick brown", "│ fox jumps over the", "│ lazy dog"]),
        (f"# {TEXT}", ["The quick brown fox", "jumps over the lazy", "dog"]),
        (f"```\n{TEXT}\n```", ["```", TEXT, "```"]),
        (f"- [x] {TEXT}", ["[x] The quick brown", "    fox jumps over", "    the lazy dog"]),
        (f"| a |\n|---|\n| {TEXT} |", ["a", "─" * 20, "The quick brown fox", "jumps over the lazy", "dog"]),
        (
            "| no | what |\n|-|-|\n| 1 | **quick brown** fox |\n| 22 | dog |",
            ["no │ what", "───┼────────────────", "1  │ quick brown fox", "22 │ dog"],
        ),
        (
            "| n | one | two |\n|-|-|-|\n| 1 | quick brown | the lazy dog |\n| 2 | fox | |",
            ["n: 1", "one: quick brown", "two: the lazy dog", "─" * 20, "n: 2", "one: fox"],
        ),
        (
            "| n | two |\n|-|-|\n| 1 | jumps over the lazy dog |",
            ["n │ two", "──┼─────────────────", "1 │ jumps over the", "  │ lazy dog"],
        ),
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
    assert [row.rstrip() for row in rendered(source, 20)] == rows


@pytest.mark.req("CL-5")
def test_rows_end_between_words_without_colour():
    assert rendered(f"- {TEXT}\n> {TEXT}", 20, enabled=False) == [
        *("- The quick brown", "  fox jumps over the", "  lazy dog"),
        *("> The quick brown", "> fox jumps over the", "> lazy dog"),
    ]


@pytest.mark.req("CL-5")
def test_piped_text_is_not_wrapped():
    assert render_markdown(f"{TEXT} {TEXT}", Styler(enabled=False)) == [f"{TEXT} {TEXT}"]


def test_style_continues_on_the_next_row():
    rows = render_markdown(f"so **{TEXT}** it", styler(22))
    assert len(rows) == 3
    for row in rows:
        assert row.count("\x1b[1m") == row.count("\x1b[0m") == 1, row


def test_text_after_a_resize_uses_the_new_width():
    width = [22]
    message = MessageRenderer(Styler(enabled=True, columns=lambda: width[0]))
    narrow = message.feed(f"{TEXT}\n")
    width[0] = 60
    wide = message.feed(f"{TEXT}\n")
    assert (len(narrow), len(wide)) == (3, 1)


@pytest.mark.parametrize("columns", [0, 1, 2, 5])
def test_text_is_not_wrapped_in_a_tiny_window(columns):
    assert wrap(TEXT, columns) == [TEXT]


WORDS = st.lists(
    st.sampled_from(["a", "word", "\x1b[1m", "\x1b[0m", "中文", "é", "👍🏽", "longer-one", "  "]), max_size=60
)


@example(words=["  ", "longer-one"], columns=12, hanging="")
@given(words=WORDS, columns=st.integers(12, 40), hanging=st.sampled_from(["", "  ", "\x1b[2m│ \x1b[0m"]))
def test_no_text_is_lost_and_no_row_is_too_long(words, columns, hanging):
    line = " ".join(words)
    rows = wrap(line, columns, hanging)
    plain = [ESCAPES.sub("", row) for row in rows]
    indent = ESCAPES.sub("", hanging)
    text = plain[0] + "".join(row.removeprefix(indent) for row in plain[1:])
    assert text.replace(" ", "") == ESCAPES.sub("", line).replace(" ", "")
    assert all(count_columns(row.rstrip()) <= columns for row in plain)


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        (f"  {TEXT}", ["  The quick brown fox", "  jumps over the lazy", "  dog"]),
        ("  /fork [n]  carry on elsewhere", ["  /fork [n]  carry on", "             elsewhere"]),
        ("! a warning of many words here", ["! a warning of many", "  words here"]),
        ("one\ntwo", ["one", "two"]),
        ("", [""]),
    ],
)
def test_continuation_rows_of_a_notice_are_indented(line, rows):
    assert wrap_notice(line, 22 if "fork" in line else 21) == rows
    assert wrap_notice(line, 0) == line.split("\n")
