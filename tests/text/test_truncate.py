"""Truncated text has a marker and only whole characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.text.truncate import HeadTail, omitted_lines, truncate_lines, truncate_middle


@pytest.mark.req("TL-10", "SH-1")
def test_middle_is_replaced_by_a_marker():
    text = "head\n" + "x" * 1000 + "\ntail"
    result = truncate_middle(text, 100)
    assert result.truncated
    assert result.text.startswith("head\n")
    assert result.text.endswith("\ntail") or result.text.endswith("tail")
    assert f"[... {result.omitted} characters omitted ...]" in result.text
    assert len(result.text) <= 100


def test_text_within_the_limit_is_unchanged():
    result = truncate_middle("abc", 3)
    assert (result.text, result.truncated, result.omitted) == ("abc", False, 0)


def test_cut_is_at_a_line_break_if_possible():
    text = "".join(f"line {number}\n" for number in range(1000))
    result = truncate_middle(text, 400)
    head, _, tail = result.text.partition("[... ")
    assert head.endswith("\n")
    assert tail.split("\n", 1)[1].startswith("line ")


def test_marker_names_the_unit():
    assert "bytes omitted" in truncate_middle("x" * 200, 100, unit="bytes").text


@pytest.mark.parametrize("cluster", ["e\u0301", "👩\u200d💻", "❤\ufe0f", "👍\U0001f3fd", "\ud83d\ude00", "\r\n"])
def test_characters_are_not_split(cluster):
    text = cluster * 300
    for limit in range(60, 90):
        result = truncate_middle(text, limit)
        head, _, rest = result.text.partition("[... ")
        tail = rest.split("\n", 1)[1]
        assert head.removesuffix("\n") in (text[: len(head)], text[: len(head) - 1])
        assert len(head.removesuffix("\n").removesuffix("\r")) % len(cluster) in (0, len(cluster) - 2)
        assert tail == cluster * (len(tail) // len(cluster))


@given(st.text(max_size=300), st.integers(-1, 200))
def test_length_and_count_are_correct(text, limit):
    result = truncate_middle(text, limit)
    assert result.truncated == (len(text) > limit)
    if result.truncated:
        assert len(result.text) <= max(limit, 0)
    else:
        assert result.text == text
    if "omitted ...]\n" in result.text:
        head, tail = result.text.rsplit(f"[... {result.omitted} characters omitted ...]\n", 1)
        assert text.endswith(tail)
        assert text.startswith(head.removesuffix("\n"))
        shown_length = len(tail) + len(head)
        assert result.omitted in (len(text) - shown_length, len(text) - shown_length + 1)


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        ("a\nb\nc", 3, "a\nb\nc"),
        ("a\nb\nc\n", 3, "a\nb\nc\n"),
        ("a\nb\nc\nd\n", 3, "a\nb\n[... 1 lines omitted ...]\nd\n"),
        ("a\nb\nc\nd", 2, "a\n[... 2 lines omitted ...]\nd"),
        ("a\nb\nc", 0, "[... 3 lines omitted ...]"),
        ("", 0, ""),
    ],
)
def test_lines_are_truncated_in_the_middle(text, lines, expected):
    result = truncate_lines(text, lines)
    assert result.text == expected
    assert result.truncated == (expected != text)


@pytest.mark.req("SH-1")
def test_stream_keeps_its_head_and_tail():
    buffer = HeadTail(4, 4)
    for byte in b"0123456789abcdef":
        buffer.feed(bytes([byte]))
    assert buffer.total == 16
    assert buffer.truncated
    assert buffer.text() == "0123\n[... 8 bytes omitted ...]\ncdef"


@pytest.mark.req("SH-1", "CL-5")
@pytest.mark.parametrize("head", [100, 101, 102, 103])
def test_stream_counts_its_omitted_lines(head):
    buffer = HeadTail(head, 100)
    for number in range(1000):
        buffer.feed(f"{number}\n".encode())
    shown = buffer.text()
    assert len(shown.splitlines()) + omitted_lines(shown) == 1000


def test_short_stream_is_complete():
    buffer = HeadTail(4, 4)
    buffer.feed("né".encode())
    buffer.feed("ä€".encode())
    assert not buffer.truncated
    assert buffer.text() == "néä€"


def test_split_characters_of_a_stream_are_omitted():
    buffer = HeadTail(4, 4)
    buffer.feed("€€€€€€".encode())
    assert buffer.text() == "€\n[... 12 bytes omitted ...]\n€"


def test_invalid_utf8_is_replaced():
    buffer = HeadTail(4, 4)
    buffer.feed(b"\xff\xfe" * 20)
    assert buffer.text().count("\ufffd") == 8
    assert "omitted" in buffer.text()


def test_memory_is_bounded():
    buffer = HeadTail(10, 10)
    for _ in range(1000):
        buffer.feed(b"x" * 1000)
    assert len(buffer._head) + len(buffer._tail) <= 40
    assert buffer.total == 1_000_000


@given(st.lists(st.binary(max_size=20), max_size=20), st.integers(0, 12), st.integers(0, 12))
def test_chunking_of_a_stream_does_not_matter(chunks, head, tail):
    parts, whole = HeadTail(head, tail), HeadTail(head, tail)
    for chunk in chunks:
        parts.feed(chunk)
    whole.feed(b"".join(chunks))
    assert (parts.text(), parts.total, parts.truncated) == (whole.text(), whole.total, whole.truncated)
