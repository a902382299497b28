"""Splitting the bytes of an answer into values."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.wire.agent_zero.answer_reader import AnswerReader

SSE, JSONL, JSON, NONE = "text/event-stream; charset=utf-8", "application/x-ndjson", "application/json", ""


def read(data: bytes, content_type: str = NONE, mode: str = "auto", size: int = 0):
    reader = AnswerReader(content_type, mode)
    pieces = [data[i : i + size] for i in range(0, len(data), size)] if size else [data]
    return [value for piece in pieces for value in reader.feed(piece)] + reader.finish()


VALUES = st.recursive(
    st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=20
)
CASES = [
    (b'data: {"a": 1}\n\ndata: {"a": 2}\n\n', SSE, [{"a": 1}, {"a": 2}]),
    (b'data: {"a":\ndata: 1}\n\n', SSE, [{"a": 1}]),
    (b': comment\nid: 1\nretry: 5\ndata: {"a": 1}', SSE, [{"a": 1}]),
    (b"event: thinking\ndata: hm\n\n", SSE, [{"type": "thinking", "content": "hm"}]),
    (b'event: thinking\ndata: {"content": "hm"}\n\n', SSE, [{"type": "thinking", "content": "hm"}]),
    (
        b"event: thinking\ndata: hm\n\ndata: go\n\n",
        SSE,
        [{"type": "thinking", "content": "hm"}, {"delta": {"content": "go"}}],
    ),
    (b'event: message\ndata: "x"\n\n', SSE, ["x"]),
    (b"data: [DONE]\n\n", SSE, []),
    (b'data: {"a": 1}\r\n\r\ndata: {"a": 2}\r\rdata: [FINISH]\r\n', SSE, [{"a": 1}, {"a": 2}]),
    (b'{"a": 1}\n{"a": 2}\n', JSONL, [{"a": 1}, {"a": 2}]),
    (b'{"a": 1}\r\n\r\n"text"\r\n{"a": 2}', JSONL, [{"a": 1}, "text", {"a": 2}]),
    (b'bare words\n{"a": 1}\nmore\nwords', JSONL, ["bare words", {"a": 1}, "more\nwords"]),
    (b'{\n "a": [\n1\n]\n}\n', JSONL, [{"a": [1]}]),
    (b'{"a": 1}', JSON, [{"a": 1}]),
    (b'{\n  "a": 1\n}\n', JSON, [{"a": 1}]),
    (b'"text"', JSON, ["text"]),
    (b"bare text", "text/plain", ["bare text"]),
    (b"bare text\nin two lines", NONE, ["bare text\nin two lines"]),
    (b"<html>x</html>", "text/plain", ["<html>x</html>"]),
    (b"<html>x</html>", "text/html", []),
    (b'{"a": 1}', "text/html", [{"a": 1}]),
    (b'data: {"a": 1}\n\n', "text/html", [{"a": 1}]),
    (b'data: {"a": 1}\n\ndata: [DONE]\n\n', JSON, [{"a": 1}]),
    (b'data: {"a": 1}\n\n', NONE, [{"a": 1}]),
    (b'{"a": 1}\n{"a": 2}\n', NONE, [{"a": 1}, {"a": 2}]),
    (b'{"a": 1}\n{"a": 2}\n', JSON, [{"a": 1}, {"a": 2}]),
    (b'{\n"a": 1\n}', NONE, [{"a": 1}]),
    (b"", NONE, []),
    (b"  \n", JSON, []),
    ("ä€😀".encode(), "text/plain", ["ä€😀"]),
]


@pytest.mark.req("AZ-1")
@pytest.mark.parametrize(("data", "content_type", "expected"), CASES)
@pytest.mark.parametrize("size", [0, 1, 3])
def test_every_format_however_it_is_cut(data, content_type, expected, size):
    assert read(data, content_type, size=size) == expected


@pytest.mark.req("AZ-1")
def test_configured_format_is_used_without_a_content_type():
    assert read(b"one\ntwo\n", mode="jsonl") == ["one\ntwo"]
    assert read(b"event: status\ndata: x\n\n", mode="sse") == [{"type": "status", "content": "x"}]


@pytest.mark.req("AZ-1")
def test_value_is_returned_as_soon_as_it_is_complete():
    reader = AnswerReader(SSE)
    assert reader.feed(b'data: {"a": 1}\n\nda') == [{"a": 1}]
    assert reader.feed(b'ta: {"a": 2}\n') == []
    assert reader.feed(b"\n") == [{"a": 2}]
    lines = AnswerReader(JSONL)
    assert lines.feed(b'{"a": 1}\n{"a"') == [{"a": 1}]
    unknown = AnswerReader()
    assert unknown.feed(b'data: {"a": 1}\n\n') == [{"a": 1}]


@pytest.mark.req("AZ-1")
@examples(300)
@given(st.binary(max_size=200), st.sampled_from((SSE, JSONL, JSON, NONE, "text/plain")), st.integers(0, 5))
def test_arbitrary_bytes_never_raise(data, content_type, size):
    read(data, content_type, size=size)


@pytest.mark.req("AZ-1")
@given(
    st.lists(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
)
def test_json_values_are_the_same_in_both_stream_formats(values):
    lines = [json.dumps(value) for value in values]
    assert read("\n".join(lines).encode(), JSONL) == values
    assert read("".join(f"data: {line}\n\n" for line in lines).encode(), SSE) == values


@pytest.mark.req("AZ-1")
def test_web_page_is_not_an_answer():
    reader = AnswerReader("text/html; charset=utf-8")
    assert reader.feed(b"<!doctype html><title>Log in</title>") + reader.finish() == []
    assert reader.page == "<!doctype html><title>Log in</title>"
    reader = AnswerReader("text/html")
    assert (reader.feed(b'"text"') + reader.finish(), reader.page) == (["text"], "")


def test_halves_of_surrogate_pairs_are_replaced():
    (value,) = read(b'{"a": "\\ud83d\\ude00 \\ud800"}', JSON)
    assert value["a"].startswith("😀 ")
    value["a"].encode()
