"""The scanner: any chunking gives the same parts, as early as possible."""

from itertools import pairwise
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.xnl.scanner import MarkedBlock, UnclosedBlock, VisibleText, XnlScanner, scan

pytestmark = pytest.mark.req("MD-6")

FRAGMENTS = [
    "!unquote_start",
    "!unquote_end",
    "!quote_start",
    "!quote_end",
    "!unquote_",
    "!",
    "!!",
    "!un",
    "quote_start",
    "a\n",
]
texts = st.lists(st.sampled_from([*FRAGMENTS, "好", "😀 "]), max_size=12).map("".join)


def join_text(parts):
    """Join consecutive visible text; where it is split has no meaning."""
    joined = []
    for part in parts:
        if isinstance(part, VisibleText) and joined and isinstance(joined[-1], VisibleText):
            joined[-1] = VisibleText(joined[-1].text + part.text)
        else:
            joined.append(part)
    return joined


def feed_all(chunks):
    scanner = XnlScanner()
    return join_text([part for chunk in chunks for part in scanner.feed(chunk)] + scanner.finish())


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("plain ! text", [VisibleText("plain ! text")]),
        ("a!unquote_start X !unquote_endb", [VisibleText("a"), MarkedBlock("unquote", " X "), VisibleText("b")]),
        ("!unquote_start!unquote_end", [MarkedBlock("unquote", "")]),
        (
            "!quote_start!unquote_start x !unquote_end!quote_end",
            [MarkedBlock("quote", "!unquote_start x !unquote_end")],
        ),
        ("!unquote_start!quote_start x!unquote_end", [MarkedBlock("unquote", "!quote_start x")]),
        ("!unquote_start!unquote_start x!unquote_end", [MarkedBlock("unquote", "!unquote_start x")]),
        (
            "!unquote_starta!unquote_end!unquote_startb!unquote_end",
            [MarkedBlock("unquote", "a"), MarkedBlock("unquote", "b")],
        ),
        ("a!unquote_start b", [VisibleText("a"), UnclosedBlock("unquote", " b")]),
        ("a!unquote_start b !unquote_en", [VisibleText("a"), UnclosedBlock("unquote", " b !unquote_en")]),
        ("!quote_start b", [UnclosedBlock("quote", " b")]),
        ("a !unquote_end !quote_end b", [VisibleText("a !unquote_end !quote_end b")]),
        ("!!unquote_start x!!unquote_end", [VisibleText("!"), MarkedBlock("unquote", " x!")]),
        ("!unquote_sta", [VisibleText("!unquote_sta")]),
        ("!unquote start", [VisibleText("!unquote start")]),
        ("!unquote_startle", [UnclosedBlock("unquote", "le")]),
    ],
)
def test_scan(text, parts):
    assert join_text(scan(text)) == parts
    assert feed_all(text) == parts


@examples(150)
@given(text=texts, data=st.data())
@example(text="!unquote_start a !unquote_end!quote_start!quote_end", data=None)
def test_chunking_makes_no_difference(text, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=20))) if data else list(range(len(text)))
    bounds = [0, *cuts, len(text)]
    chunks = [text[start:end] for start, end in pairwise(bounds)]
    assert feed_all(chunks) == join_text(scan(text))


@examples(150)
@given(texts)
def test_nothing_is_lost(text):
    markers = {"unquote": ("!unquote_start", "!unquote_end"), "quote": ("!quote_start", "!quote_end")}
    parts = []
    for part in scan(text):
        opener, closer = ("", "") if isinstance(part, VisibleText) else markers[part.kind]
        parts += [opener, part.text, closer if isinstance(part, MarkedBlock) else ""]
    assert "".join(parts) == text


@examples(150)
@given(texts)
def test_only_a_partial_marker_is_held_back(text):
    """After every character, the text held back is an open block or may become a marker."""
    scanner, emitted, fed = XnlScanner(), 0, ""
    for character in text:
        fed += character
        emitted = sum(len(part.text) for part in scanner.feed(character) if isinstance(part, VisibleText)) + emitted
        visible = sum(len(part.text) for part in scan(fed) if isinstance(part, VisibleText))
        pending = visible - emitted
        assert 0 <= pending < len("!unquote_start")
        assert not pending or any(marker.startswith(fed[-pending:]) for marker in ("!unquote_start", "!quote_start"))


def test_text_is_emitted_immediately_and_a_block_when_complete():
    scanner = XnlScanner()
    assert scanner.feed("Hello") == [VisibleText("Hello")]
    assert scanner.feed(" wow! ") == [VisibleText(" wow! ")]
    assert scanner.feed("look!unq") == [VisibleText("look")]
    assert scanner.feed("uack") == [VisibleText("!unquack")]
    assert scanner.feed("!unquote_start<x>!unquote_en") == []
    assert scanner.feed("d") == [MarkedBlock("unquote", "<x>")]
    assert scanner.feed("") == []


def test_finish_resets_the_scanner():
    scanner = XnlScanner()
    scanner.feed("!unquote_start half !un")
    assert scanner.finish() == [UnclosedBlock("unquote", " half !un")]
    assert scanner.finish() == []
    assert scanner.feed("again") == [VisibleText("again")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["plain ", "!", "!unquote_star", "!unquote_start !unquote_end", "!quote_start !unquote_end"]
)
def test_time_is_linear(unit):
    def seconds(times):
        text = unit * times
        scanner = XnlScanner()
        started = process_time()
        for start in range(0, len(text), 4):
            scanner.feed(text[start : start + 4])
        scanner.finish()
        return process_time() - started

    small = min(seconds(1000) for _ in range(3))
    assert seconds(8000) < 8 * 5 * small + 0.05
