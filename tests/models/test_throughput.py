"""Reading a long reply in tiny deltas is faster than decoding each delta with json."""

import json
import time

import pytest
from model_helpers import make_request

from ostler.http.body import ChunkedBody
from ostler.http.sse import SseSplitter
from ostler.models.model_types import TextChunk
from ostler.models.openai_reply import OpenAIReader
from ostler.models.sse_merge import SseMerger
from ostler.testing.model_server import sse_event

COUNT = 10_000
FRAME = {
    "id": "chatcmpl-abc123",
    "object": "chat.completion.chunk",
    "created": 1_700_000_000,
    "model": "a-model",
    "choices": [{"index": 0, "delta": {"content": "abc "}, "finish_reason": None}],
}


def min_seconds(work, times=5):
    durations = []
    for _ in range(times):
        started = time.process_time()
        work()
        durations.append(time.process_time() - started)
    return min(durations)


@pytest.mark.slow
@pytest.mark.req("DX-6")
def test_reading_is_faster_than_plain_json_decoding():
    event = sse_event(FRAME)
    data_stream = (b"%x\r\n%s\r\n" % (len(event), event)) * COUNT
    reads = [data_stream[start : start + 65_536] for start in range(0, len(data_stream), 65_536)]
    line = event.decode()[6:]

    def read_reply():
        body, splitter, reader = (
            ChunkedBody(),
            SseSplitter(merge_events=SseMerger().merge),
            OpenAIReader("h", make_request()),
        )
        chunks = []
        for data in reads:
            reader.feed(splitter.feed(body.feed(data)))
            chunks += reader.collector.take_chunks()
        assert sum(len(chunk.text) for chunk in chunks) == 4 * COUNT
        assert len(chunks) <= len(reads)
        assert all(isinstance(chunk, TextChunk) for chunk in chunks)

    def decode_each():
        for _ in range(COUNT):
            json.loads(line)

    assert min_seconds(read_reply) < min_seconds(decode_each)
