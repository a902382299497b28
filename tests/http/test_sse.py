"""Splitting events: the same result for any split of the bytes, in linear time."""

import time
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.http.sse import EventTooLongError, SseSplitter


def split(*reads: bytes, limit: int = 1 << 20) -> list[bytes]:
    splitter = SseSplitter(limit)
    events = [event for read in reads for event in splitter.feed(read)]
    return events + splitter.flush()


@pytest.mark.req("MD-4")
@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"", []),
        (b"data: a\n\n", [b"a"]),
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data:a\n\ndata:  b\n\n", [b"a", b" b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data: a\n\r\ndata: b\r\n\n", [b"a", b"b"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data: a\n\n\n\ndata: b\n\n", [b"a", b"b"]),
        (b": hello\n\ndata: a\n\n", [b"a"]),
        (b"data: a\n\n: x\n\ndata: b\n\n", [b"a", b"b"]),
        (b"event: ping\nid: 7\nretry: 10\ndata: a\n\n", [b"a"]),
        (b"event: nothing\n\n", []),
        (b"data\n\n", [b""]),
        (b"dataset: x\n\n", []),
        (b"data: a", [b"a"]),
        (b"data: a\n", [b"a"]),
        (b"data: a\r", [b"a"]),
        (b"data: a\n\ndata: [DONE]", [b"a", b"[DONE]"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        ("data: a\u2028b\u0085c\u2029\n\n".encode(), ["a\u2028b\u0085c\u2029".encode()]),
        (b"data: a\x0bb\x0cc\x1cd\n\n", [b"a\x0bb\x0cc\x1cd"]),
    ],
)
def test_events(stream, events):
    assert split(stream) == events
    assert split(*(stream[index : index + 1] for index in range(len(stream)))) == events
    for index in range(len(stream)):
        assert split(stream[:index], stream[index:]) == events


@given(
    st.lists(
        st.sampled_from([b"data: a", b"data:b", b"data", b": c", b"event: e", b"", b"data: \xc3\xa4"]), max_size=12
    ),
    st.lists(st.sampled_from([b"\n", b"\r\n", b"\r"]), min_size=12, max_size=12),
    st.lists(st.integers(0, 200), max_size=6),
)
@example([b"data: a", b"", b"data: a"], [b"\n"] * 12, [9, 10])
@examples(150)
def test_any_split_gives_the_same_events(lines, ends, cuts):
    stream = b"".join(line + end for line, end in zip(lines, ends, strict=False))
    offsets = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    reads = [stream[start:end] for start, end in pairwise(offsets)]
    assert split(*reads) == split(stream) == _reference_split(stream)


def _reference_split(stream: bytes) -> list[bytes]:
    events: list[bytes] = []
    data: list[bytes] = []
    for line in [*stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), b""]:
        if not line and data:
            events.append(b"\n".join(data))
            data = []
        elif line == b"data" or line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
    return events


@pytest.mark.req("MD-5")
@pytest.mark.parametrize(
    "stream",
    [
        *(b": ping\n\n", b": ping\r\n", b":\n", b": an endless comment ", b": ping\n: pong\n", b"\n", b"\r\n\r\n"),
        *(b"event: ping\n\n", b"id: 1\n", b"retry: 5\r\n", b"event: data\n"),
    ],
)
@pytest.mark.parametrize("repeat", [1, 50_000])
def test_comments_and_other_fields_are_not_data(stream, repeat):
    splitter = SseSplitter()
    for _ in range(3):
        assert splitter.feed(stream * repeat) == []
        assert not splitter.has_partial_data
    assert splitter.feed(b"\n\ndata: x\n\ndata: y") == [b"x"]
    assert splitter.has_partial_data


@pytest.mark.req("MD-5")
@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("start", [b"data: {", b": ping\ndata: {", b"event: a\ndata: {", b"event: a\r\ndata: {"])
def test_a_part_of_an_event_is_data(start, size):
    splitter = SseSplitter()
    for index in range(0, len(start), size):
        splitter.feed(start[index : index + size])
    assert splitter.has_partial_data
    assert splitter.feed(b"}\n\n") == [b"{}"]
    assert not splitter.has_partial_data


@pytest.mark.parametrize("part", [b"x" * 100, b"data: y\n", b"\rdata: y", b"data\n"])
def test_endless_event_is_an_error(part):
    splitter = SseSplitter(limit=10_000)
    splitter.feed(b"data: ")
    with pytest.raises(EventTooLongError):
        for _ in range(10_000):
            splitter.feed(part)


@pytest.mark.slow
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_large_event_in_tiny_reads_takes_linear_time(newline):
    def cost(size: int) -> float:
        splitter = SseSplitter(limit=1 << 24)
        started = time.process_time()
        splitter.feed(b": x" + newline)
        splitter.feed(b"data: ")
        for _ in range(size):
            splitter.feed(b"abcdefgh")
        assert len(splitter.feed(newline * 2)[0]) == 8 * size
        return time.process_time() - started

    small, large = min(cost(5_000) for _ in range(3)), min(cost(40_000) for _ in range(3))
    assert large < 8 * small * 4


@pytest.mark.parametrize("step", [1, 3, 1000])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_id_and_pause_are_those_of_the_last_complete_event(step, newline):
    lines = [
        b"id: 1",
        b"data: a",
        b"",
        b"retry: 250",
        b"retry: soon",
        b"id:2",
        b"data: b",
        b"",
        b"data: c",
        b"",
        b"id: 3",
    ]
    stream = newline.join(lines) + newline
    splitter = SseSplitter()
    for start in range(0, len(stream), step):
        splitter.feed(stream[start : start + step])
    assert (splitter.last_id, splitter.retry_ms) == (b"2", 250)
