"""Rendered Markdown: the lines of a text, complete or streamed in chunks."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.rendering.markdown import render_markdown
from ostler.rendering.message_stream import MessageRenderer
from ostler.rendering.style import Styler

COLOUR, PLAIN = Styler(enabled=True), Styler(enabled=False)
ESCAPES = re.compile(r"\x1b\[[\d;]*m")


def rendered(text):
    return [ESCAPES.sub("", line).rstrip() for line in render_markdown(text, COLOUR)]


@pytest.mark.req("CL-6")
@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("# Title #", ["Title"]),
        ("### `code` and **more**", ["code and more"]),
        ("#no heading", ["#no heading"]),
        ("See![a picture](a.png)!", ["Seea picture (a.png)!"]),
        ("- one\n* two\n  + three", ["• one", "• two", "  • three"]),
        ("- [x] done\n* [ ] open\n- [y] x", ["[x] done", "[ ] open", "• [y] x"]),
        ("***both*** ~~gone~~ _it_ `_x_`", ["both gone it _x_"]),
        ("snake_case_name __init__ _one_two ~/x ~ 5", ["snake_case_name __init__ _one_two ~/x ~ 5"]),
        ("1. one", ["1. one"]),
        ("a **b** *c* `d*e*` f", ["a b c d*e* f"]),
        ("2*3*4 and a_b_c", ["2*3*4 and a_b_c"]),
        ("[here](https://example.org)", ["here (https://example.org)"]),
        ("> said", ["│ said"]),
        ("---", ["─" * 40]),
        ("```py\n# no **heading**\n```\n# heading", ["```py", "# no **heading**", "```", "heading"]),
        ("~~~\n```\n~~~\n- x", ["~~~", "```", "~~~", "• x"]),
        ("````\n```\n- x", ["````", "```", "- x"]),
        ("unclosed ` and ** and [x](", ["unclosed ` and ** and [x]("]),
        (
            "| a | b |\n|---|---|\n| long cell | x |\nafter",
            ["a         │ b", "──────────┼──", "long cell │ x", "after"],
        ),
        ("| [a](b) | c |\n|-|-|\n| d | e |", ["a │ c", "──┼──", "d │ e"]),
        ("| a | c |\n|-|-|\n| [d](e) | f |", ["a     │ c", "──────┼──", "d (e) │ f"]),
        ("| 名前 | b |\n|-|-|\n| x | y |", ["名前 │ b", "─────┼──", "x    │ y"]),
        ("| a |\n| b |", ["| a |", "| b |"]),
        ("| a | b |\n|--|--|\n| only |\n| 1 | 2 | 3 |", ["a    │ b │", "─────┼───┼──", "only │   │", "1    │ 2 │ 3"]),
    ],
)
def test_rendered_lines(source, lines):
    assert rendered(source) == lines


@pytest.mark.req("CL-5")
def test_source_text_is_shown_without_colour():
    source = "# T\n**b** | `c`\n|a|b|\n|-|-|\n|1|2|"
    assert render_markdown(source, PLAIN) == source.split("\n")


def test_code_is_highlighted_by_language():
    line = render_markdown('```python\nreturn "a" # why 1', COLOUR)[1]
    assert line == '\x1b[35mreturn\x1b[0m \x1b[32m"a"\x1b[0m \x1b[2m# why 1\x1b[0m'
    assert render_markdown("```text\nreturn 1", COLOUR)[1] == "return 1"
    assert render_markdown("```js\nx // 1", COLOUR)[1].endswith("\x1b[2m// 1\x1b[0m")
    assert render_markdown("```diff\n+new", COLOUR)[1] == "\x1b[32m+new\x1b[0m"


@pytest.mark.req("CL-6")
@examples(60)
@given(
    st.lists(st.sampled_from(["# h", "- i `c`", "|a|b|", "|-|-|", "```", "x **b", "> q", "", "plain"]), min_size=1),
    st.lists(st.integers(1, 7), max_size=30),
)
def test_streamed_text_renders_like_the_complete_text(lines, sizes):
    text = "\n".join(lines)
    stream, out, start = MessageRenderer(COLOUR), [], 0
    for size in sizes:
        out += stream.feed(text[start : start + size])
        start += size
    out += stream.finish(text, "plan", truncated=False)
    body = [ESCAPES.sub("", line)[2:] for line in out if ESCAPES.sub("", line) != "PLAN"]
    assert [line for line in body if line] == [line.rstrip() for line in rendered(text.strip("\n")) if line.strip()]


@pytest.mark.parametrize(
    "hostile", ["*" * 9000, "`" * 9000, "[" * 9000, "# " + " " * 9000 + "x", "|" * 9000, "-" * 9000]
)
def test_hostile_line_does_not_affect_the_next_line(hostile):
    assert len(rendered(f"{hostile}\nnext")) == 2
    assert rendered(f"{hostile}\nnext")[-1] == "next"


def test_styles_are_always_closed():
    for line in render_markdown("**a** `b` [c](d)\n```py\n'unclosed\n```", COLOUR):
        assert len(re.findall(r"\x1b\[[1-9]", line)) == line.count("\x1b[0m")
