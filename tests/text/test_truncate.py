"""Bounded text says that it is bounded, and keeps whole characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.text.truncate import HeadTail, truncate_lines, truncate_middle


@pytest.mark.req("TL-10", "SH-1")
def test_the_middle_gives_way_to_a_marker():
    text = "head\n" + "x" * 1000 + "\ntail"
    cut = truncate_middle(text, 100)
    assert cut.truncated
    assert cut.text.startswith("head\n")
    assert cut.text.endswith("\ntail") or cut.text.endswith("tail")
    assert f"[... {cut.omitted} characters left out ...]" in cut.text
    assert len(cut.text) <= 100


def test_text_within_the_limit_is_whole():
    cut = truncate_middle("abc", 3)
    assert (cut.text, cut.truncated, cut.omitted) == ("abc", False, 0)


def test_a_cut_prefers_the_border_of_a_line():
    text = "".join(f"line {number}\n" for number in range(1000))
    cut = truncate_middle(text, 400)
    head, _, tail = cut.text.partition("[... ")
    assert head.endswith("\n")
    assert tail.split("\n", 1)[1].startswith("line ")


def test_the_marker_names_what_was_cut():
    assert "bytes left out" in truncate_middle("x" * 200, 100, unit="bytes").text


@pytest.mark.parametrize("cluster", ["e\u0301", "👩\u200d💻", "❤\ufe0f", "👍\U0001f3fd", "\ud83d\ude00", "\r\n"])
def test_a_cut_splits_no_character(cluster):
    text = cluster * 300
    for limit in range(60, 90):
        cut = truncate_middle(text, limit)
        head, _, rest = cut.text.partition("[... ")
        tail = rest.split("\n", 1)[1]
        assert head.removesuffix("\n") in (text[: len(head)], text[: len(head) - 1])
        assert len(head.removesuffix("\n").removesuffix("\r")) % len(cluster) in (0, len(cluster) - 2)
        assert tail == cluster * (len(tail) // len(cluster))


@given(st.text(max_size=300), st.integers(-1, 200))
def test_a_cut_is_within_its_limit_and_honest(text, limit):
    cut = truncate_middle(text, limit)
    assert cut.truncated == (len(text) > limit)
    if cut.truncated:
        assert len(cut.text) <= max(limit, 0)
    else:
        assert cut.text == text
    if "left out ...]\n" in cut.text:
        head, tail = cut.text.rsplit(f"[... {cut.omitted} characters left out ...]\n", 1)
        assert text.endswith(tail)
        assert text.startswith(head.removesuffix("\n"))
        kept = len(tail) + len(head)
        assert cut.omitted in (len(text) - kept, len(text) - kept + 1)


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        ("a\nb\nc", 3, "a\nb\nc"),
        ("a\nb\nc\n", 3, "a\nb\nc\n"),
        ("a\nb\nc\nd\n", 3, "a\nb\n[... 1 lines left out ...]\nd\n"),
        ("a\nb\nc\nd", 2, "a\n[... 2 lines left out ...]\nd"),
        ("a\nb\nc", 0, "[... 3 lines left out ...]"),
        ("", 0, ""),
    ],
)
def test_lines_are_cut_in_the_middle(text, lines, expected):
    cut = truncate_lines(text, lines)
    assert cut.text == expected
    assert cut.truncated == (expected != text)


@pytest.mark.req("SH-1")
def test_a_stream_keeps_its_head_and_tail():
    kept = HeadTail(4, 4)
    for byte in b"0123456789abcdef":
        kept.feed(bytes([byte]))
    assert kept.total == 16
    assert kept.truncated
    assert kept.text() == "0123\n[... 8 bytes left out ...]\ncdef"


def test_a_short_stream_is_whole():
    kept = HeadTail(4, 4)
    kept.feed("né".encode())
    kept.feed("ä€".encode())
    assert not kept.truncated
    assert kept.text() == "néä€"


def test_a_stream_leaves_out_split_characters():
    kept = HeadTail(4, 4)
    kept.feed("€€€€€€".encode())
    assert kept.text() == "€\n[... 12 bytes left out ...]\n€"


def test_bytes_that_are_no_text_do_not_break_it():
    kept = HeadTail(4, 4)
    kept.feed(b"\xff\xfe" * 20)
    assert kept.text().count("\ufffd") == 8
    assert "left out" in kept.text()


def test_memory_is_bounded():
    kept = HeadTail(10, 10)
    for _ in range(1000):
        kept.feed(b"x" * 1000)
    assert len(kept._head) + len(kept._tail) <= 40
    assert kept.total == 1_000_000


@given(st.lists(st.binary(max_size=20), max_size=20), st.integers(0, 12), st.integers(0, 12))
def test_chunks_of_a_stream_do_not_matter(chunks, head, tail):
    parts, whole = HeadTail(head, tail), HeadTail(head, tail)
    for chunk in chunks:
        parts.feed(chunk)
    whole.feed(b"".join(chunks))
    assert (parts.text(), parts.total, parts.truncated) == (whole.text(), whole.total, whole.truncated)
