"""`ostler doctor model`: the findings about a server, from one request."""

import pytest

from ostler.testing.model_server import ScriptedToolCall, calls, raw, sse_event, status, text

pytestmark = pytest.mark.req("MD-8", "MD-10")

CALL = ("weather", {"place": "Paris"})
IN_TEXT = 'one two\n<tool_call>{"name": "weather", "arguments": {"place": "Paris"}}</tool_call>'


def run_doctor(ostler, server, *flags):
    done = ostler("doctor", "model", "--base-url", server.base_url, "--model", "scripted", *flags)
    marks = {line[2:].split()[0]: line for line in done.stdout.splitlines() if line[:1] in "✓–✗"}
    return done.code, marks


def test_complete_server(ostler, models):
    counted = [sse_event({"choices": [{"delta": {"content": f"word{n} "}}]}) for n in range(30)]
    thought = sse_event({"choices": [{"delta": {"reasoning_content": "hm"}}]})
    call = {"index": 0, "id": "c", "function": {"name": "weather", "arguments": '{"place": "Paris"}'}}
    end = [
        sse_event({"choices": [{"delta": {"tool_calls": [call]}}]}),
        sse_event({"choices": [{"finish_reason": "tool_calls"}]}),
    ]
    reply = raw(thought, *counted, *end, b"data: [DONE]\n\n").with_write_size(40)
    with models.playing(reply, models=[{"id": "scripted", "max_model_len": 40_960, "owned_by": "vllm"}]) as server:
        code, findings = run_doctor(ostler, server)
    assert code == 0
    assert "40,960 tokens" in findings["window"]
    assert "chunks over" in findings["streaming"] and findings["streaming"].startswith("✓")
    assert "the model calls tools" in findings["tools"] and "native API tool calls" in findings["dialect"]
    assert "sent separately by the server" in findings["reasoning"]
    assert findings["usage"].startswith("–")


def test_server_without_native_tool_calls(ostler, models):
    with models.playing(text(f"<think>I call.</think>{IN_TEXT}")) as server:
        code, findings = run_doctor(ostler, server)
    assert code == 0
    assert "tool calls in the text" in findings["dialect"]
    assert "<think> tags" in findings["reasoning"]
    assert findings["usage"].startswith("✓")


def test_unexpected_calls_are_a_warning(ostler, models):
    with models.playing(calls([CALL, CALL])) as server:
        code, findings = run_doctor(ostler, server)
    assert (code, findings["tools"][:1]) == (0, "–")


def test_retry_is_reported(ostler, models):
    with models.playing(status(503), calls([CALL])) as server:
        code, findings = run_doctor(ostler, server)
    assert code == 0
    assert "503" in findings["trouble"]


def test_empty_or_truncated_reply(ostler, models):
    with models.playing(
        text("").with_finish_reason("stop"),
        calls([ScriptedToolCall("weather", '{"place": "Pa')]).with_finish_reason("length"),
    ) as server:
        code, findings = run_doctor(ostler, server)
        assert (code, "the reply is empty" in findings["answers"]) == (1, True)
        code, findings = run_doctor(ostler, server)
    assert "not a JSON object" in findings["tools"]
    assert "truncated at 1,000 tokens" in findings["trouble"]
