"""Unit tests of input parsing, message streaming and approval requests."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.core.display import Display, DisplayDiff, DisplayFields
from ostler.core.events import PermissionAsked, TextDelta, TurnEnded
from ostler.core.permission import Need, Permission
from ostler.interaction.input_parser import PromptInput, ShellInput, SlashInput, parse_input
from ostler.rendering.asks import render_ask
from ostler.rendering.message_stream import MessageRenderer
from ostler.rendering.style import Styler
from ostler.rendering.transcript_renderer import TranscriptRenderer

PLAIN = Styler(enabled=False)


@pytest.mark.req("CL-2", "CL-7")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", None),
        ("  \n ", None),
        ("hello", PromptInput("hello")),
        ("  two\nlines ", PromptInput("two\nlines")),
        ("!ls -la", ShellInput("ls -la")),
        ("! ls", ShellInput("ls")),
        ("@!ls", ShellInput("ls")),
        ("!", ShellInput("")),
        ("@!  ", ShellInput("")),
        ("/help", SlashInput("help", "")),
        ("/models  gpt x ", SlashInput("models", "gpt x")),
        ("/", SlashInput("help", "")),
        ("/steer one\ntwo", SlashInput("steer", "one\ntwo")),
        ("/etc/hosts is what?", PromptInput("/etc/hosts is what?")),
        ("/ what", PromptInput("/ what")),
        ("wow!", PromptInput("wow!")),
    ],
)
def test_parse_input(line, expected):
    assert parse_input(line) == expected


def printed(text, sizes, **ending):
    lines, out, at = MessageRenderer(PLAIN), [], 0
    for size in sizes:
        out += lines.feed(text[at : at + size])
        at += size
    return out + lines.finish(text, ending.get("segment", "answer"), truncated=ending.get("cut", False))


@pytest.mark.req("CL-6")
@examples(60)
@given(
    st.lists(st.text("ab ", min_size=1).filter(str.strip), min_size=1, max_size=6),
    st.lists(st.integers(1, 9), max_size=20),
)
def test_each_line_is_printed_once_for_any_chunks(lines, sizes):
    out = printed("\n".join(lines), sizes)
    body = [line[2:] for line in out if line not in ("ANSWER", "  ↑ ANSWER")]
    assert body == [line.rstrip() for line in lines] or body == [lines[0], *(line.rstrip() for line in lines[1:])]


@pytest.mark.req("CL-5")
def test_heading_is_above_complete_and_below_streamed_text():
    assert printed("Short.", [3]) == ["ANSWER", "  Short."]
    assert printed("Short.", [3], segment="plan") == ["PLAN", "  Short."]
    assert printed("One\nTwo", [5]) == ["● One", "  Two", "  ↑ ANSWER"]
    assert printed("One\nTwo", [5], segment="plan") == ["● One", "  Two"]
    assert printed("One\nTwo", [5], cut=True) == ["● One", "  Two", "  [truncated]"]


def test_message_that_differs_from_its_stream_is_printed_again():
    lines = MessageRenderer(PLAIN)
    assert lines.feed("One\nTw") == ["● One"]
    assert lines.finish("Other", "plan", truncated=False) == ["  Tw", "  [full message:]", "  Other"]


@pytest.mark.req("CL-5")
def test_escape_sequence_split_over_chunks_is_removed():
    out = "".join(printed("a\x1b[2Jb\x1b]52;c;eA==\x07c\nd\x9b", [2, 2, 3, 4, 2, 1, 1, 1]))
    assert not set(out) & {"\x1b", "\x9b", "\x07"}


@pytest.mark.slow
def test_endless_line_takes_linear_time():
    lines = MessageRenderer(PLAIN)
    began = time.process_time()
    for _ in range(20_000):
        lines.feed("x" * 50)
        assert lines.partial_line
    assert time.process_time() - began < 5
    assert len(lines.finish(lines.text, "answer", truncated=False)[1]) == 2 + 1_000_000


def test_text_of_a_cancelled_turn_is_shown():
    scroll = TranscriptRenderer(PLAIN)
    assert scroll.render(TextDelta("m", "I was abo")) == []
    assert scroll.partial_line == "I was abo"
    shown = scroll.render(TurnEnded("t", "cancelled"))
    assert shown == ["PLAN", "  I was abo", "  [truncated]", "✗ cancelled"]


def test_newest_message_is_shown_if_one_before_it_was_interrupted():
    scroll = TranscriptRenderer(PLAIN)
    scroll.render(TextDelta("before", "I was abo"))  # the server ended here
    scroll.render(TextDelta("now", "It is"))
    assert scroll.partial_line == "It is"


@pytest.mark.req("PM-5")
def test_approval_request_is_complete_and_escapes_invisible_characters():
    diff = "--- a/x\n+++ b/x\n@@ -1 +1,99 @@\n--- old\n" + "\n".join(f"+new {n}\u202e" for n in range(99))
    preview = Display(
        "", (DisplayFields((("command", "ls\x1b[2J"),)), DisplayDiff("x", diff, additions=99, deletions=1))
    )
    permission = Permission("run ls\x1b[2J", (Need("bash", "rm y", "confirm", "it deletes y"),), preview, reason="why")
    shown = "\n".join(render_ask(PermissionAsked("a", permission, once_only=True), PLAIN))
    for part in ("? run ls\\x1b[2J", "+new 98<U+202E>", "--- old", "runs rm y", "impact: it deletes y"):
        assert part in shown, part
    assert "the model's reason: why" in shown
    assert "only be allowed once" in shown
    assert "\x1b" not in shown


@pytest.mark.req("PM-5")
def test_approval_request_lists_every_part_of_a_command():
    needs = (Need("bash", "make x"), Need("bash", "wc -l"))
    parts = render_ask(PermissionAsked("a", Permission("run make x | wc -l", needs)), PLAIN)
    assert parts == ["? run make x | wc -l", "  runs make x", "  runs wc -l"]
    assert render_ask(PermissionAsked("a", Permission("run make x", needs[:1])), PLAIN) == ["? run make x"]
