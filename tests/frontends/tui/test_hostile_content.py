"""Text of models, files and commands is shown as text: no markup, no escape sequence, no control character."""

import re
import time

import pytest
from rich.style import Style
from tests.frontends.repl.chat_helpers import at
from tests.tiers import amount

from ostler.core.events import Envelope, MessageDone, TextDelta
from ostler.core.message import Message
from ostler.core.prompt import TextContent
from ostler.frontends.tui.strips import StripMaker
from ostler.frontends.tui.transcript.model import TranscriptModel
from ostler.frontends.tui.transcript.viewport import Viewport
from ostler.testing.model_server import calls, text
from ostler.text.width import width

pytestmark = pytest.mark.req("TU-1", "TU-7")

F10 = "\x1b[21~"
MARKUP = ["[bold]loud[/bold]", "[@click=app.exit]press[/]", "[link=http://evil]here[/link]", "[/]", "[red on", "\\[x]"]
HOSTILE = [
    "\x1b]52;c;cGxhbnRlZA==\x07 clipboard",
    "\x1b]0;planted title\x07 title",
    "\x1b]8;;http://planted\x1b\\link\x1b]8;;\x1b\\",
    "\x1b[2J\x1b[31mplanted\x1b[8m colours",
    "\x1b[6n\x1b[c\x1bP+q544e\x1b\\ reports",
    "\x9b2J\x9d0;planted\x9c c1",
    "a\rb\x08c\x0bd\x0ce\x07f\x00g",
    "\u202eplanted\u202c \u2066bidi\u2069",
    "zero\u200bwidth\u2060joiner\ufeff",
    "tag\U000e0041\U000e007f end",
    "\x1b_planted\x1b\\ \x1b^planted\x1b\\ \x1bXplanted\x1b\\",
    "\x1b",
]
# What Textual and the painter write: modes, queries at the start, the pointer, positions, colours, erasing, scrolling.
OWN = re.compile(
    rb"\x1b\[\?(?:1049|1000|1003|1015|1006|25|1004|2004|2048|7)[hl]|\x1b\[\?20(?:26|48)\$p|\x1b\[>\d+u|\x1b\[<u"
    rb"|\x1b\]22;default\x07|\x1b\[\d+;\d+H|\x1b\[[\d;]*m|\x1b\[K|\x1b\[(?:\d+;\d+)?r|\x1bM|\r\n"
)
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")


def check_output(raw):
    """Check that the terminal got nothing but our own sequences and printable text."""
    rest = OWN.sub(b"", raw).decode()
    assert not CONTROLS.search(rest), ascii(CONTROLS.findall(rest))


@pytest.mark.parametrize("chunks", [1, 40])
def test_text_of_a_model_is_not_interpreted(terminal, models, chunks):
    reply = "\n\n".join((*MARKUP, *HOSTILE, "```", *MARKUP, *HOSTILE, "```", "The end."))
    with models.playing(text(reply, chunks=chunks)) as server:
        term = terminal("tui", *at(server), rows=90, columns=100)
        term.wait_for("ready")
        term.type("talk\r")
        shown = term.wait_for(lambda seen: "The end." in seen and "done in" in seen)
    assert all(line in shown for line in MARKUP)
    check_output(term.raw)


def test_output_of_commands_and_names_of_files_are_not_interpreted(terminal, models, ostler):
    (ostler.workspace / "hostile.txt").write_text("\n".join((*MARKUP, *HOSTILE)))
    (ostler.workspace / "[bold]name\x1b[31m.txt").write_text("x")
    replies = [
        calls([("bash", {"command": "cat hostile.txt; ls"})], text="[bold]Look\x1b[5m"),
        calls([("read", {"path": "hostile.txt"}), ("read", {"path": "\x1b]0;planted\x07[@click=app.exit]"})]),
        text("The end."),
    ]
    with models.playing(*replies) as server:
        term = terminal("tui", *at(server), "--allow", "bash:*", rows=90, columns=100)
        term.wait_for("ready")
        term.type("look\r")
        term.wait_for(lambda seen: "The end." in seen and "done in" in seen)
        term.type("\x1b[1;5A\x1bf\x1b[1;5A\x1bf\x1b[1;5A\x1bf")  # unfold
        term.wait_for("[bold]loud[/bold]")
    check_output(term.raw)


def test_approval_request_is_not_interpreted(terminal, models):
    command = f"echo '{MARKUP[0]}' '{MARKUP[1]}' '\x1b[31m' \u202e"
    with models.playing(calls([("bash", {"command": command})])) as server:
        term = terminal("tui", *at(server), rows=50, columns=120)
        term.wait_for("ready")
        term.type("look\r")
        shown = term.wait_for("once")
    assert MARKUP[0] in shown and MARKUP[1] in shown
    check_output(term.raw)


def make_model(columns=120):
    model = TranscriptModel(StripMaker(Style(), {}))
    model.columns = columns
    return model, Viewport(model)


LENGTH = amount(200_000, slow=1_000_000)
PARTS = {
    "ascii": "x",
    "words": "word ",
    "wide": "日本語",
    "combining": "e\u0301\u200b",
    "right to left": "שלום ",
    "joined": "👩‍👩‍👧‍👦",
    "markup": "**a** `b` ",
    "stars": "*",
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
@pytest.mark.sampled(every=2)
def test_very_long_line_does_not_stop_the_screen(part):
    line = part * (LENGTH // len(part))
    model, viewport = make_model()
    slowest = 0.0
    for start in range(0, len(line), 10_000):
        model.apply(Envelope(1, 0.0, TextDelta("m", line[start : start + 10_000])))
        started = time.process_time()
        model.advance()
        rows = viewport.rows(50)
        slowest = max(slowest, time.process_time() - started)
    model.apply(Envelope(2, 0.0, MessageDone(Message("m", (TextContent(line),)))))
    viewport.rows(50)
    started = time.process_time()
    viewport.set_columns(77)
    rows = viewport.rows(50)
    slowest = max(slowest, time.process_time() - started)
    assert len(rows) == 50
    assert all(width(row.strip.text) <= 77 for row in rows)
    assert slowest < 1.0, "a frame while it streams, or after a resize"


def test_output_of_a_hundred_thousand_lines_is_shown_shortened_and_keys_still_work(terminal, models):
    with models.playing(calls([("bash", {"command": "seq 100000"})]), text("The end.")) as server:
        term = terminal("tui", *at(server), "--allow", "bash:*", rows=40, columns=100)
        term.wait_for("ready")
        term.type("count\r")
        term.wait_for(lambda seen: "The end." in seen and "done in" in seen)
        term.type("\x1bf")
        term.type("\x1b[5~")
        term.type("still here")
        term.wait_for("still here")
        term.type("\x1b[1;5F")
        term.wait_for("The end.")


def test_user_command_with_a_hundred_thousand_lines_keeps_the_client_responsive(terminal, models):
    with models.playing() as server:
        term = terminal("tui", *at(server), rows=40, columns=100)
        term.wait_for("ready")
        term.type("!seq 100000\r")
        term.wait_for("100000")
        term.type("still here")
        term.wait_for("still here")


@pytest.mark.parametrize("planted", [line for line in HOSTILE if line.startswith(("\x1b", "\x9b"))])
def test_check_of_the_output_can_fail(planted):
    with pytest.raises(AssertionError):
        check_output(b"\x1b[1;1H\x1b[31mtext" + planted.replace("\x1b[2J\x1b[31m", "\x1b[2J").encode())
