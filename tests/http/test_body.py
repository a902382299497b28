"""Body framing, for any split of the bytes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.http.body import ChunkedBody, CloseDelimitedBody, FixedLengthBody, FramingError, make_body


def read(body, *reads: bytes) -> bytes:
    return b"".join(body.feed(data) for data in reads)


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    st.sampled_from([b"", b";ext=1", b'; a="b"']),
    st.sampled_from([b"", b"x-trailer: 1\r\n", b"a: b\r\nc: d\r\n"]),
    st.lists(st.integers(0, 400), max_size=6),
)
@examples(150)
def test_chunks_split_anywhere(chunks, extension, trailers, cuts):
    data = (
        b"".join(b"%x%s\r\n%s\r\n" % (len(chunk), extension, chunk) for chunk in chunks) + b"0\r\n" + trailers + b"\r\n"
    )
    body = ChunkedBody()
    offsets = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    content = read(body, *(data[start:end] for start, end in pairwise(offsets)))
    assert content == b"".join(chunks)
    assert body.done
    assert body.trailing_data == b""


def test_chunks_byte_by_byte_and_trailing_data():
    data = b"3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\nHTTP/1.1"
    body = ChunkedBody()
    content = b""
    for index in range(len(data)):
        if body.done:
            break
        content += body.feed(data[index : index + 1])
    assert content == b"abc0123456789"
    at_once = ChunkedBody()
    assert at_once.feed(data) == content
    assert at_once.trailing_data == b"HTTP/1.1"


@pytest.mark.parametrize(
    "data",
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
def test_invalid_chunks(data):
    with pytest.raises(FramingError):
        ChunkedBody().feed(data)
    body = ChunkedBody()
    with pytest.raises(FramingError):
        for index in range(len(data)):
            body.feed(data[index : index + 1])


def test_fixed_length():
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
def test_framing_by_headers(status, headers, kind):
    assert isinstance(make_body(status, headers), kind)
