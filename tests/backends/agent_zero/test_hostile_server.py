"""Answers of a hostile or broken server over the message API."""

import pytest

from ostler.backends.agent_zero.backend import AgentZeroBackend, ZeroPlan
from ostler.backends.agent_zero.message_api import MessageApiSettings, MessageApiTransport
from ostler.backends.agent_zero.server import ZeroServer, parse_server_url
from ostler.core.events import MessageDone, Notice, RemoteCursor
from ostler.testing.session_fixture import open_test_session, run_turn
from ostler.testing.zero_server import ScriptedZeroServer, ZeroAnswer, zero_json, zero_lines, zero_reply, zero_sse
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("AZ-6")


async def turn(server, tmp_path, *prompts):
    origin, path = parse_server_url(server.api_url)

    async def probe(start, listener):
        return MessageApiTransport(ZeroServer(origin, path, "secret-key"), MessageApiSettings(), start, listener)

    session = await open_test_session(
        AgentZeroBackend(ZeroPlan(origin.address, "here"), [probe]), (), LocalWorkspace(str(tmp_path))
    )
    for prompt in prompts or ("hi",):
        events, ended = await run_turn(session, prompt)
    await session.aclose()
    return events, ended


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_redirect_is_an_error_and_no_other_host_gets_the_key(status, tmp_path):
    async with ScriptedZeroServer([]) as other:
        body = f'{{"location": "{other.api_url}"}}'.encode()
        location = f"text/plain\r\nlocation: {other.api_url}\r\nx-end: 1"
        async with ScriptedZeroServer([ZeroAnswer([body], location, status)]) as server:
            _, ended = await turn(server, tmp_path)
        assert other.requests == []
    assert ended.reason == "failed" and str(status) in ended.fault.message


async def test_endless_answer_is_cut_off(tmp_path):
    chunk = b"x" * 1_048_576
    async with ScriptedZeroServer([ZeroAnswer([chunk] * 20, "text/plain")]) as server:
        _, ended = await turn(server, tmp_path)
    assert ended.reason == "failed" and "too large" in ended.fault.message


@pytest.mark.parametrize("context_id", [7, {"a": 1}, ["x"], "", None, True])
async def test_context_id_that_is_not_a_text_is_not_sent_back(context_id, tmp_path):
    answers = [zero_json({"context_id": context_id, "response": "one"}), zero_reply("two")]
    async with ScriptedZeroServer(answers) as server:
        _, ended = await turn(server, tmp_path, "hi", "again")
    assert ended.reason == "done"
    assert server.messages[1].get("context_id") in (None, "7")


async def test_context_id_with_a_line_break_goes_only_into_the_body(tmp_path):
    answers = [zero_reply("one", "c\r\nx-evil: 1/../../api_key"), zero_reply("two")]
    async with ScriptedZeroServer(answers) as server:
        events, ended = await turn(server, tmp_path, "hi", "again")
    assert ended.reason == "done" and all("x-evil" not in request.headers for request in server.requests)
    assert [event.message.text for event in events if isinstance(event, MessageDone)] == ["two"]
    assert any(isinstance(event, RemoteCursor) for event in events)


ERROR = {"error": {"message": "quota exceeded", "code": 7}}


@pytest.mark.parametrize(
    "answer",
    [
        zero_json({"error": "quota exceeded"}),
        zero_json({"context_id": "c", "type": "error", "content": "quota exceeded"}),
        zero_sse({"choices": [{"delta": {"content": "Half of"}}]}, ERROR),
        zero_lines({"type": "status", "content": "working"}, ERROR),
    ],
)
async def test_answer_that_ends_with_an_error_fails_with_its_words(answer, tmp_path):
    async with ScriptedZeroServer([answer]) as server:
        events, ended = await turn(server, tmp_path)
    assert (ended.reason, ended.fault.code, ended.fault.message) == (
        *("failed", "agent_error"),
        "Agent Zero failed: quota exceeded",
    )
    last = [event.message.text for event in events if isinstance(event, MessageDone)][-1]
    assert last == "Agent Zero failed: quota exceeded"


async def test_error_before_the_answer_is_only_shown(tmp_path):
    async with ScriptedZeroServer([zero_sse(ERROR, {"type": "final_response", "content": "recovered"})]) as server:
        events, ended = await turn(server, tmp_path)
    assert ended.reason == "done"
    assert "Agent Zero: quota exceeded" in [event.text for event in events if isinstance(event, Notice)]
