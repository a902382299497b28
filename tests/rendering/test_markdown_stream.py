"""Words are printed as they arrive, and the result looks like the rendering of the whole text."""

import random
import re

import pytest

from ostler.rendering.blocks import indent
from ostler.rendering.markdown import render_markdown
from ostler.rendering.markdown_stream import MarkdownStream
from ostler.rendering.reply_text import NewText, ReplyText
from ostler.rendering.style import Styler

CODES = re.compile(r"\x1b\[[\d;]*m")
PIECES = (
    *(
        "word",
        "the quick brown fox",
        "**bold text**",
        "`code`",
        "*it*",
        "[label](http://x)",
        "![image](a.png)",
        "!",
        "***both***",
        "5 * 3",
        "a*b",
        "日本語",
    ),
    *(
        "~~gone~~",
        "_it_",
        "snake_case",
        "__init__",
        "~/x",
        "~",
        "_",
        "***",
        "\n- [x] done and more",
        "\n- [",
        "\n* [x](y)",
    ),
    *("\n", "\n\n", "\n- ", "\n* item", "\n1. ", "\n> quote", "\n- [ ] todo", "\n   indented", "\n# Head\n", "\n---\n"),
    *("\n```py\nx = 1\n\n  y = 2\n```\n", "\n| a | b |\n|---|---|\n| 1 | 22 |\n", "-5", "\n#tag", "  "),
)


def stream(text, paint, sizes):
    out, position, markdown = [], 0, MarkdownStream(paint, "  ")
    while position < len(text):
        size = next(sizes)
        out.append(markdown.feed(text[position : position + size]))
        position += size
    return "".join((*out, markdown.finish()))


def rows(text):
    return [CODES.sub("", row).rstrip() for row in text.strip("\n").split("\n")]


@pytest.mark.req("CL-6")
@pytest.mark.parametrize("columns", [0, 60, 80])
@pytest.mark.parametrize("enabled", [True, False])
def test_streamed_text_looks_like_the_whole_text(columns, enabled):
    paint = Styler(enabled, columns=lambda: columns)
    for seed in range(150):
        source = random.Random(seed)
        text = " ".join(source.choice(PIECES) for _ in range(source.randint(1, 25))).strip("\n ")
        shown = stream(text, paint, iter(lambda source=source: source.randint(1, 9), 0))
        assert rows(shown) == rows("\n".join(indent(render_markdown(text, paint)))), text


@pytest.mark.req("CL-6")
@pytest.mark.parametrize(
    ("first", "shown"),
    [
        ("Hello", "Hello"),
        ("- item", "• item"),
        ("12. item", "12. item"),
        ("> quoted", "│ quoted"),
        ("a **bold** word", "a bold word"),
        ("one `unclosed", "one"),
        ("`" + "x " * 80, "`" + "x " * 79 + "x"),
        ("#tag", "#tag"),
    ],
)
def test_paragraph_is_printed_before_its_line_is_complete(first, shown):
    markdown = MarkdownStream(Styler(True, columns=lambda: 400), "  ")
    assert CODES.sub("", markdown.feed(first)).strip() == shown


@pytest.mark.req("CL-6")
@pytest.mark.parametrize("first", ["| a | b", "```py", "## Title", "---"])
def test_table_code_heading_and_rule_wait_for_their_line(first):
    assert MarkdownStream(Styler(True, columns=lambda: 80), "  ").feed(first) == ""


def test_long_unstyled_phrase_does_not_style_the_text_behind_it():
    markdown = MarkdownStream(Styler(True, columns=lambda: 0), "")
    text = f"`{'x' * 200}` plain `code` end"
    shown = "".join(map(markdown.feed, text)) + markdown.finish()
    assert shown == f"`{'x' * 200}` plain \x1b[36mcode\x1b[0m end\n"


def test_other_lines_are_printed_between_two_rows_of_a_message():
    markdown = MarkdownStream(Styler(False, columns=lambda: 80), "● ")
    shown = (
        markdown.feed("one two") + markdown.break_row() + "other line\n" + markdown.feed(" three") + markdown.finish()
    )
    assert shown == "● one two\nother line\n  three\n"


@pytest.mark.parametrize(
    ("again", "new"),
    [
        (["one ", "two three"], [NewText(""), NewText(" three")]),
        (["one two"], [NewText("")]),
        (["one ", "2"], [NewText(""), NewText("one 2", replaces=True)]),
    ],
)
def test_reply_that_starts_again_is_repeated_only_if_it_differs(again, new):
    reply = ReplyText()
    assert reply.add("one two") == NewText("one two")
    assert reply.set("") == NewText("")
    assert [reply.add(text) for text in again] == new
    assert reply.finish("".join(again)) == NewText("")


def test_final_text_that_is_shorter_replaces_the_shown_text():
    reply = ReplyText()
    reply.add("one two")
    assert reply.finish("one") == NewText("one", replaces=True)
    assert ReplyText().finish("") == NewText("")
