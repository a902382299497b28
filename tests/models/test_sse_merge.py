"""A burst of tiny deltas is read as if each had come alone."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_talk import ask

from ostler.models.anthropic_reply import AnthropicReader
from ostler.models.http_body import ChunkedBody
from ostler.models.model_types import CallChunk, TextChunk, ThoughtChunk
from ostler.models.openai_reply import OpenAIReader
from ostler.models.sse import SseSplitter
from ostler.models.sse_merge import SseMerger

READERS = {"openai": OpenAIReader, "anthropic": AnthropicReader}


def openai(delta, finish=None, **more):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "x", "choices": [choice], **more}).encode() + b"\n\n"


def anthropic(kind, **delta):
    told = {"type": "content_block_delta", "index": 0, "delta": {"type": kind, **delta}}
    return b"event: content_block_delta\ndata: " + json.dumps(told).encode() + b"\n\n"


def heard(api, pieces):
    """Text, thoughts and calls of a reply that came in these reads, and whether it failed."""
    splitter, reader = SseSplitter(), READERS[api]("h", ask())
    chunks = []
    for piece in pieces:
        reader.feed(splitter.feed(piece))
        chunks += reader.collector.take_chunks()
        if reader.collector.error or reader.ended:
            break
    failed = reader.collector.error is not None
    chunks += reader.finish()
    told = {"failed": failed, "finish": chunks[-1]}
    for kind in (TextChunk, ThoughtChunk):
        told[kind.__name__] = "".join(chunk.text for chunk in chunks if isinstance(chunk, kind))
    return told | {"calls": [chunk for chunk in chunks if isinstance(chunk, CallChunk)]}


PLAIN = [openai({"content": piece}) for piece in ("ab", "c d", "é", '"', "\\", "\n", "— ", "", "😀") * 20]
THOUGHTS = [openai({"reasoning_content": piece}) for piece in ("hm", "\n", "so ") * 40]
BEGUN = openai({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "bash", "arguments": ""}}]})
ARGUMENTS = [
    openai({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    for piece in ['{"comm', 'and": "', *["ls ", '\\"', "x"] * 30, '"}']
]
WHOLE = [
    openai({"tool_calls": [{"index": 0, "function": {"name": "bash", "arguments": f'{{"command": "{n}"}}'}}]})
    for n in range(60)
]
HALVES = [
    b'data: {"choices":[{"delta":{"content":"%b"}}]}\n\n' % piece for piece in (b"\\ud83d", b"\\ude00", b"a") * 60
]
BROKEN = [b'data: {"choices":[{"delta":{"content":"%b"}}]}\n\n' % piece for piece in (b"a", b"b", b'c","role":"d') * 60]
EATEN = [b'data: {"choices":[{"delta":{"content":"%b"}}]}\n\n' % piece for piece in [b"a"] * 90 + [b"b\\", b"nc"]]
BYTES = [b'data: {"choices":[{"delta":{"content":"%b"}}]}\n\n' % piece for piece in (b"a", b"\xff", b"\xc3\xa9") * 60]
SAID = [anthropic("text_delta", text=piece) for piece in ("ab", "c d", "é", '"', "\n") * 20]
THOUGHT = [anthropic("thinking_delta", thinking=piece) for piece in ("hm", "\n", "so ") * 40]
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
        ("openai", [BEGUN, *ARGUMENTS, openai({}, "tool_calls")]),
        ("openai", WHOLE),
        ("openai", HALVES),
        ("openai", BROKEN),
        ("openai", EATEN),
        ("openai", BYTES),
        ("openai", TWO_TEXTS),
        ("openai", [openai({"content": str(n)}, created=n) for n in range(90)]),
        ("openai", [openai({"content": "<think>" if n == 3 else "</think>" if n == 70 else "w "}) for n in range(99)]),
        ("anthropic", SAID),
        ("anthropic", [*THOUGHT, *SAID]),
        ("anthropic", [anthropic("input_json_delta", partial_json=piece) for piece in ('{"a": "', *"xyz" * 40, '"}')]),
    ],
)
def test_all_at_once_is_as_one_by_one(api, events):
    alone = heard(api, events)
    assert heard(api, [b"".join(events)]) == alone
    whole = b"".join(events)
    for size in (2_100, 5_000, 9_999):
        assert heard(api, [whole[at : at + size] for at in range(0, len(whole), size)]) == alone


@pytest.mark.req("MD-4")
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([*PLAIN[:9], *THOUGHTS[:2], *EATEN[-3:], *BROKEN[:3], *HALVES[:2], ERROR]), max_size=90)
)
def test_whatever_the_events(events):
    padded = [*PLAIN[:30], *events, *PLAIN[:30]]
    assert heard("openai", [b"".join(padded)]) == heard("openai", padded)


@pytest.mark.req("DX-6")
def test_a_run_becomes_one_event():
    events = SseSplitter().feed(b"".join([openai({"role": "assistant"}), *PLAIN, openai({}, "stop")]))
    assert len(events) == 3
    assert SseMerger().merge(b"".join(PLAIN[:3])) == b"".join(PLAIN[:3])


@pytest.mark.req("DX-6")
@pytest.mark.parametrize("size", [1, 7, 4_097, 5_000, 1 << 20])
def test_many_small_chunks_are_taken_apart_wherever_they_are_cut(size):
    contents = [bytes([65 + n % 26]) * (1 + n % 40) + (b"\r\n" if n % 97 == 0 else b"") for n in range(1_500)]
    wire = b"".join(b"%x\r\n%b\r\n" % (len(content), content) for content in contents) + b"0\r\n\r\nnext"
    for _ in range(2):
        body = ChunkedBody()
        got = b"".join(body.feed(wire[at : at + size]) for at in range(0, len(wire), size) if not body.done)
        assert got == b"".join(contents)
        assert body.done
