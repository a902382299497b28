"""Merging tiny deltas gives the same result as reading them one by one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_helpers import make_request
from tests.tiers import examples

from ostler.http.body import ChunkedBody
from ostler.http.sse import SseSplitter
from ostler.models.anthropic_reply import AnthropicReader
from ostler.models.model_types import CallChunk, TextChunk, ThoughtChunk
from ostler.models.openai_reply import OpenAIReader
from ostler.models.sse_merge import SseMerger

READERS = {"openai": OpenAIReader, "anthropic": AnthropicReader}


def openai(delta, finish=None, **more):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "x", "choices": [choice], **more}).encode() + b"\n\n"


def anthropic(kind, **delta):
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": kind, **delta}}
    return b"event: content_block_delta\ndata: " + json.dumps(event).encode() + b"\n\n"


def parse_reply(api, reads):
    """Return text, thoughts and calls of a reply in these reads, and whether it failed."""
    splitter, reader = SseSplitter(merge_events=SseMerger().merge), READERS[api]("h", make_request())
    chunks = []
    for data in reads:
        reader.feed(splitter.feed(data))
        chunks += reader.collector.take_chunks()
        if reader.collector.error or reader.ended:
            break
    failed = reader.collector.error is not None
    chunks += reader.finish()
    result = {"failed": failed, "finish": chunks[-1]}
    for kind in (TextChunk, ThoughtChunk):
        result[kind.__name__] = "".join(chunk.text for chunk in chunks if isinstance(chunk, kind))
    return result | {"calls": [chunk for chunk in chunks if isinstance(chunk, CallChunk)]}


PLAIN = [openai({"content": part}) for part in ("ab", "c d", "é", '"', "\\", "\n", "— ", "", "😀") * 20]
THOUGHTS = [openai({"reasoning_content": part}) for part in ("hm", "\n", "so ") * 40]
CALL_START = openai({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "bash", "arguments": ""}}]})
ARGUMENTS = [
    openai({"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
    for part in ['{"comm', 'and": "', *["ls ", '\\"', "x"] * 30, '"}']
]
COMPLETE_CALLS = [
    openai({"tool_calls": [{"index": 0, "function": {"name": "bash", "arguments": f'{{"command": "{n}"}}'}}]})
    for n in range(60)
]
SURROGATES = [
    b'data: {"choices":[{"delta":{"content":"%b"}}]}\n\n' % part for part in (b"\\ud83d", b"\\ude00", b"a") * 60
]
EXTRA_KEYS = [
    b'data: {"choices":[{"delta":{"content":"%b"}}]}\n\n' % part for part in (b"a", b"b", b'c","role":"d') * 60
]
PARTIAL_ESCAPES = [
    b'data: {"choices":[{"delta":{"content":"%b"}}]}\n\n' % part for part in [b"a"] * 90 + [b"b\\", b"nc"]
]
INVALID_UTF8 = [
    b'data: {"choices":[{"delta":{"content":"%b"}}]}\n\n' % part for part in (b"a", b"\xff", b"\xc3\xa9") * 60
]
ANTHROPIC_TEXT = [anthropic("text_delta", text=part) for part in ("ab", "c d", "é", '"', "\n") * 20]
ANTHROPIC_THOUGHTS = [anthropic("thinking_delta", thinking=part) for part in ("hm", "\n", "so ") * 40]
TWO_TEXTS = [openai({"content": "a"}, logprobs={"content": str(n)}) for n in range(60)]
ERROR = b'data: {"error": {"message": "it broke", "text": "x"}}\n\n'


@pytest.mark.req("MD-4")
@pytest.mark.parametrize(
    ("api", "events"),
    [
        ("openai", PLAIN),
        ("openai", [openai({"role": "assistant", "content": ""}), *PLAIN, openai({}, "stop"), b"data: [DONE]\n\n"]),
        ("openai", [*PLAIN[:50], *THOUGHTS, *PLAIN[50:]]),
        ("openai", [*PLAIN[:50], b": still here\n\n", *PLAIN[50:]]),
        ("openai", [*PLAIN[:80], ERROR, *PLAIN[80:]]),
        ("openai", [CALL_START, *ARGUMENTS, openai({}, "tool_calls")]),
        ("openai", COMPLETE_CALLS),
        ("openai", SURROGATES),
        ("openai", EXTRA_KEYS),
        ("openai", PARTIAL_ESCAPES),
        ("openai", INVALID_UTF8),
        ("openai", TWO_TEXTS),
        ("openai", [openai({"content": str(n)}, created=n) for n in range(90)]),
        ("openai", [openai({"content": "<think>" if n == 3 else "</think>" if n == 70 else "w "}) for n in range(99)]),
        ("anthropic", ANTHROPIC_TEXT),
        ("anthropic", [*ANTHROPIC_THOUGHTS, *ANTHROPIC_TEXT]),
        ("anthropic", [anthropic("input_json_delta", partial_json=part) for part in ('{"a": "', *"xyz" * 40, '"}')]),
    ],
)
def test_merged_events_equal_single_events(api, events):
    expected = parse_reply(api, events)
    assert parse_reply(api, [b"".join(events)]) == expected
    stream = b"".join(events)
    for size in (2_100, 5_000, 9_999):
        assert parse_reply(api, [stream[start : start + size] for start in range(0, len(stream), size)]) == expected


@pytest.mark.req("MD-4")
@examples(60)
@given(
    st.lists(
        st.sampled_from([*PLAIN[:9], *THOUGHTS[:2], *PARTIAL_ESCAPES[-3:], *EXTRA_KEYS[:3], *SURROGATES[:2], ERROR]),
        max_size=90,
    )
)
def test_any_events_give_the_same_result(events):
    padded = [*PLAIN[:30], *events, *PLAIN[:30]]
    assert parse_reply("openai", [b"".join(padded)]) == parse_reply("openai", padded)


@pytest.mark.req("DX-6")
def test_run_becomes_one_event():
    events = SseSplitter(merge_events=SseMerger().merge).feed(
        b"".join([openai({"role": "assistant"}), *PLAIN, openai({}, "stop")])
    )
    assert len(events) == 3
    assert SseMerger().merge(b"".join(PLAIN[:3])) == b"".join(PLAIN[:3])


@pytest.mark.req("DX-6")
@pytest.mark.parametrize("size", [1, 7, 4_097, 5_000, 1 << 20])
def test_many_small_chunks_split_anywhere(size):
    contents = [bytes([65 + n % 26]) * (1 + n % 40) + (b"\r\n" if n % 97 == 0 else b"") for n in range(1_500)]
    data = b"".join(b"%x\r\n%b\r\n" % (len(content), content) for content in contents) + b"0\r\n\r\nnext"
    for _ in range(2):
        body = ChunkedBody()
        content = b"".join(
            body.feed(data[start : start + size]) for start in range(0, len(data), size) if not body.done
        )
        assert content == b"".join(contents)
        assert body.done
