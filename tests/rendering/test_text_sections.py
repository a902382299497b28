"""Long texts are rendered in sections, with the same rows as in one piece."""

import random

import pytest

from ostler.rendering.live_message import LiveMessage
from ostler.rendering.markdown_stream import MarkdownStream
from ostler.rendering.style import Styler
from ostler.rendering.text_sections import SECTION_LENGTH, SECTION_LINES, split_text

PAINT = Styler(True, "dark", lambda: 40)
LINES = [
    "",
    "Some words that are longer than one row of the screen, with `code` and **bold**.",
    "# Heading",
    "- item with enough words for a second row of text",
    "> quote",
    "| a | b |",
    "|---|---|",
    "| 1 | 2 |",
    "```python",
    "```",
    "~~~",
    "    def f(): return '```'",
    "1. first",
]


def whole(text):
    stream = MarkdownStream(PAINT, "● ")
    return (stream.feed(text) + stream.finish()).removesuffix("\n").split("\n")


@pytest.mark.req("TU-10")
@pytest.mark.parametrize("seed", range(20))
def test_sections_have_the_rows_of_the_whole_text(seed):
    source = random.Random(seed)
    text = "\n".join(source.choice(LINES) for _ in range(SECTION_LINES * 5)).strip("\n")
    sections = split_text(text)
    assert len(sections) > 2
    assert [section.is_first for section in sections].count(True) == 1
    assert [section.is_last for section in sections] == [False] * (len(sections) - 1) + [True]
    assert [row for section in sections for row in section.render(PAINT, "● ")] == whole(text)


def show_all(live):
    while live.is_behind:
        live.advance()


@pytest.mark.req("TU-10")
@pytest.mark.parametrize("seed", range(10))
def test_message_that_is_received_has_the_same_sections(seed):
    source = random.Random(seed)
    text = "\n".join(["start", *(source.choice(LINES) for _ in range(SECTION_LINES * 4)), "~~~", "end", ""])
    live, position = LiveMessage(PAINT), 0
    while position < len(text):
        size = source.randrange(1, 200)
        live.add(text[position : position + size])
        if source.random() < 0.5:
            show_all(live)
        live.advance()
        position += size
    show_all(live)
    assert live.sections == split_text(text)[:-1]
    rows = [row for section in live.sections for row in section.render(PAINT, "● ")]
    assert len(live.rows) < SECTION_LINES * 4
    live.wrap_again()
    open_rows = [row for row in live.rows if row]
    assert [row for row in (*rows, *open_rows) if row.strip()] == [row for row in whole(text) if row.strip()]


def test_long_lines_make_short_sections():
    text = "\n".join("x" * 3000 for _ in range(20))
    assert max(len(section.text) for section in split_text(text)) <= SECTION_LENGTH + 3000


def test_short_text_is_one_section():
    assert len(split_text("")) == len(split_text("some words")) == 1


def test_replaced_text_replaces_its_sections():
    live = LiveMessage(PAINT)
    live.set("\n".join(f"first {number}" for number in range(200)))
    show_all(live)
    live.set("\n".join(f"second {number}" for number in range(200)))
    show_all(live)
    assert live.sections
    assert "first" not in "".join(section.text for section in live.sections)
