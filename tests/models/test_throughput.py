"""A long reply in tiny deltas costs less than decoding each of them alone would."""

import json
import time

import pytest
from model_talk import ask

from ostler.models.http_body import ChunkedBody
from ostler.models.model_types import TextChunk
from ostler.models.openai_reply import OpenAIReader
from ostler.models.sse import SseSplitter
from ostler.testing.model_server import sse_event

COUNT = 10_000
FRAME = {
    "id": "chatcmpl-abc123",
    "object": "chat.completion.chunk",
    "created": 1_700_000_000,
    "model": "a-model",
    "choices": [{"index": 0, "delta": {"content": "abc "}, "finish_reason": None}],
}


def best(measured, times=5):
    costs = []
    for _ in range(times):
        begun = time.process_time()
        measured()
        costs.append(time.process_time() - begun)
    return min(costs)


@pytest.mark.slow
@pytest.mark.req("DX-6")
def test_framing_events_and_json_together_cost_less_than_plain_decoding():
    written = sse_event(FRAME)
    wire = (b"%x\r\n%s\r\n" % (len(written), written)) * COUNT
    reads = [wire[at : at + 65_536] for at in range(0, len(wire), 65_536)]
    line = written.decode()[6:]

    def ours():
        body, splitter, reader = ChunkedBody(), SseSplitter(), OpenAIReader("h", ask())
        chunks = []
        for data in reads:
            reader.feed(splitter.feed(body.feed(data)))
            chunks += reader.collector.take_chunks()
        assert sum(len(chunk.text) for chunk in chunks) == 4 * COUNT
        assert len(chunks) <= len(reads)
        assert all(isinstance(chunk, TextChunk) for chunk in chunks)

    def plain():
        for _ in range(COUNT):
            json.loads(line)

    assert best(ours) < best(plain)
