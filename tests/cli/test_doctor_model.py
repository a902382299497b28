"""`ostler doctor model`: what it says of a server, by one request to it."""

import pytest

from ostler.testing.model_server import ScriptedToolCall, calls, raw, sse_event, status, text

pytestmark = pytest.mark.req("MD-8", "MD-10")

CALL = ("weather", {"place": "Paris"})
IN_TEXT = 'one two\n<tool_call>{"name": "weather", "arguments": {"place": "Paris"}}</tool_call>'


def examined(ostler, server, *flags):
    done = ostler("doctor", "model", "--base-url", server.base_url, "--model", "scripted", *flags)
    marks = {line[2:].split()[0]: line for line in done.stdout.splitlines() if line[:1] in "✓–✗"}
    return done.code, marks


def test_a_server_that_does_it_all(ostler, models):
    counted = [sse_event({"choices": [{"delta": {"content": f"word{n} "}}]}) for n in range(30)]
    thought = sse_event({"choices": [{"delta": {"reasoning_content": "hm"}}]})
    call = {"index": 0, "id": "c", "function": {"name": "weather", "arguments": '{"place": "Paris"}'}}
    end = [
        sse_event({"choices": [{"delta": {"tool_calls": [call]}}]}),
        sse_event({"choices": [{"finish_reason": "tool_calls"}]}),
    ]
    reply = raw(thought, *counted, *end, b"data: [DONE]\n\n").with_write_size(40)
    with models.playing(reply, models=[{"id": "scripted", "max_model_len": 40_960, "owned_by": "vllm"}]) as server:
        code, found = examined(ostler, server)
    assert code == 0
    assert "40,960 tokens" in found["window"]
    assert "pieces over" in found["streaming"] and found["streaming"].startswith("✓")
    assert "it calls them" in found["tools"] and "the API's own calls" in found["dialect"]
    assert "told apart by the server" in found["reasoning"]
    assert found["usage"].startswith("–")


def test_a_server_that_knows_nothing_of_tools(ostler, models):
    with models.playing(text(f"<think>I call.</think>{IN_TEXT}")) as server:
        code, found = examined(ostler, server)
    assert code == 0
    assert "calls in its text" in found["dialect"]
    assert "<think> tags" in found["reasoning"]
    assert found["usage"].startswith("✓")


def test_a_model_that_calls_something_else(ostler, models):
    with models.playing(calls([CALL, CALL])) as server:
        code, found = examined(ostler, server)
    assert (code, found["tools"][:1]) == (0, "–")


def test_trouble_on_the_way_is_told(ostler, models):
    with models.playing(status(503), calls([CALL])) as server:
        code, found = examined(ostler, server)
    assert code == 0
    assert "503" in found["trouble"]


def test_a_reply_that_is_none_or_not_whole(ostler, models):
    with models.playing(
        text("").with_finish_reason("stop"),
        calls([ScriptedToolCall("weather", '{"place": "Pa')]).with_finish_reason("length"),
    ) as server:
        code, found = examined(ostler, server)
        assert (code, "without a word" in found["answers"]) == (1, True)
        code, found = examined(ostler, server)
    assert "no JSON object" in found["tools"]
    assert "cut at 1,000 tokens" in found["trouble"]
