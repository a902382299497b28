"""Bodies end where their framing says, however they are cut."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostler.models.http_body import ChunkedBody, CloseDelimitedBody, FixedLengthBody, FramingError, make_body


def read(body, *reads: bytes) -> bytes:
    return b"".join(body.feed(data) for data in reads)


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    st.sampled_from([b"", b";ext=1", b'; a="b"']),
    st.sampled_from([b"", b"x-trailer: 1\r\n", b"a: b\r\nc: d\r\n"]),
    st.lists(st.integers(0, 400), max_size=6),
)
@settings(max_examples=150, deadline=None)
def test_chunks_with_any_cuts(chunks, extension, trailers, cuts):
    wire = (
        b"".join(b"%x%s\r\n%s\r\n" % (len(chunk), extension, chunk) for chunk in chunks) + b"0\r\n" + trailers + b"\r\n"
    )
    body = ChunkedBody()
    places = sorted({min(cut, len(wire)) for cut in cuts} | {0, len(wire)})
    got = read(body, *(wire[start:end] for start, end in pairwise(places)))
    assert got == b"".join(chunks)
    assert body.done
    assert body.trailing_data == b""


def test_chunks_one_byte_at_a_time_and_what_follows():
    wire = b"3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\nHTTP/1.1"
    body = ChunkedBody()
    got = b""
    for at in range(len(wire)):
        if body.done:
            break
        got += body.feed(wire[at : at + 1])
    assert got == b"abc0123456789"
    whole = ChunkedBody()
    assert whole.feed(wire) == got
    assert whole.trailing_data == b"HTTP/1.1"


@pytest.mark.parametrize(
    "wire",
    [
        b"xyz\r\n",
        b"-1\r\n",
        b"+3\r\nabc\r\n",
        b"1_0\r\n",
        b" 3\r\nabc\r\n",
        b"\r\n",
        b"3\r\nabcd\r\n",
        b"3\r\nabc\n0\r\n\r\n",
        b"ffffffffffffffffff\r\n",
        b"3" * 300,
        b"3;" + b"x" * 300,
        b"0\r\n" + b"x: y\r\n" * 4000,
    ],
)
def test_broken_chunks(wire):
    with pytest.raises(FramingError):
        ChunkedBody().feed(wire)
    body = ChunkedBody()
    with pytest.raises(FramingError):
        for at in range(len(wire)):
            body.feed(wire[at : at + 1])


def test_counted():
    body = FixedLengthBody(5)
    assert read(body, b"ab", b"cdeXY") == b"abcde"
    assert body.done
    assert body.trailing_data == b"XY"


@pytest.mark.parametrize(
    ("status", "headers", "kind"),
    [
        (200, {"transfer-encoding": "chunked"}, ChunkedBody),
        (200, {"content-length": "5"}, FixedLengthBody),
        (200, {"transfer-encoding": "chunked", "content-length": "5"}, ChunkedBody),
        (200, {}, CloseDelimitedBody),
        (204, {}, FixedLengthBody),
        (304, {"content-length": "5"}, FixedLengthBody),
    ],
)
def test_which_framing(status, headers, kind):
    assert isinstance(make_body(status, headers), kind)
