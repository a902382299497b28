"""How each frontend reports problems of a model server over real HTTP: stalls, retries, incomplete answers."""

import io
import itertools
import json

import pytest
from test_acp_agent_frontend import open_editor
from test_frontends import ReplDriver

from ostler.backends.engine.backend import Engine
from ostler.core.sessions import OpenSessionRequest
from ostler.frontends.headless.frontend import HeadlessFrontend
from ostler.frontends.headless.outputs import make_output
from ostler.models.client_factory import NetworkConfig, make_client
from ostler.models.retry import RetryPolicy
from ostler.models.stall_detector import StallTimeouts
from ostler.rendering.style import Styler
from ostler.testing.model_server import ScriptedModelServer, sse_reply, stall, status, text
from ostler.testing.session_fixture import SingleSessionManager, make_prompt, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace


async def skip_pause(seconds):
    """Replaces the pauses between retries."""


def model_at(server, kind):
    """Return a client whose clock advances one second each time it checks for a stall."""
    network = NetworkConfig(
        environ={},
        timeouts=StallTimeouts(first=12.0, silent=12.0, tick=0.05),
        retry_policy=RetryPolicy(sleep=skip_pause, jitter=lambda: 1.0),
        clock=itertools.count().__next__,
    )
    return make_client(api_kind=kind, base_url=server.base_url, model="m", network=network)


@pytest.fixture
def session_at(tmp_path):
    async def open_session(server, kind="openai"):
        engine = Engine(make_model=lambda name: model_at(server, kind), tools=tuple, system=lambda: "Be brief.")
        return await open_test_session(engine, (), LocalWorkspace(str(tmp_path)))

    return open_session


async def run_headless(session, output):
    out = io.StringIO()
    frontend = HeadlessFrontend(
        OpenSessionRequest(session.cwd, interactive=False),
        make_prompt("go"),
        make_output(output, Styler(enabled=False), out),
    )
    return out, await frontend.run(SingleSessionManager(session))


def records(out):
    return [json.loads(line) for line in out.getvalue().splitlines()]


def kinds(items):
    return [record["event"]["type"] for record in items[:-1]]


@pytest.mark.req("MD-5")
async def test_stall_and_retry_are_different_events(session_at):
    async with ScriptedModelServer(stall(), text("hello")) as server:
        out, exit_status = await run_headless(await session_at(server), "jsonl")
    items = records(out)
    stalls = [record["event"] for record in items[:-1] if record["event"]["type"] == "waiting"]
    assert stalls[0]["reason"] == f"no data from 127.0.0.1:{server.port} for 5 s"
    assert kinds(items).count("retrying") == 1
    assert kinds(items).index("waiting") < kinds(items).index("retrying")
    assert exit_status == 0


@pytest.mark.req("MD-5")
@pytest.mark.parametrize("output", ["text", "simple", "json"])
async def test_headless_run_reports_a_stall_on_stderr(session_at, capsys, output):
    async with ScriptedModelServer(stall(), text("hello")) as server:
        out, _ = await run_headless(await session_at(server), output)
    notices = capsys.readouterr().err.splitlines()
    assert notices[0] == f"ostler: waiting: no data from 127.0.0.1:{server.port} for 5 s"
    assert sum("retrying" in line for line in notices) == 1
    assert "hello" in out.getvalue()
    assert "waiting" not in out.getvalue()


@pytest.mark.req("MD-5")
async def test_plain_chat_reports_stall_and_retry(session_at):
    async with ScriptedModelServer(stall(), status(500), text("hello")) as server:
        shown, _ = await ReplDriver().show(await session_at(server))
    lines = shown.splitlines()
    assert lines[0] == f"waiting: no data from 127.0.0.1:{server.port} for 5 s"
    assert [line.partition("(attempt ")[2] for line in lines if "retrying" in line] == ["2)", "3)"]
    assert shown.endswith("ANSWER\n  hello\n")


@pytest.mark.req("MD-5")
async def test_editor_gets_a_stall_as_a_thought(session_at, tmp_path):
    async with (
        ScriptedModelServer(stall(), text("hello")) as server,
        open_editor(await session_at(server), tmp_path) as editor,
    ):
        answer = await editor.prompt("session-1", "go")
        notices = [update["content"]["text"] for update in editor.updates_of("agent_thought_chunk")]
        words = editor.text()
    assert notices[0] == f"waiting: no data from 127.0.0.1:{server.port} for 5 s"
    assert sum("retrying" in notice for notice in notices) == 1
    assert (words, answer["stopReason"]) == ("hello", "end_turn")


INCOMPLETE = {
    ("openai", "content_filter"): "the provider's content filter stopped the reply; it is incomplete",
    ("openai", "SAFETY"): "the provider's content filter stopped the reply; it is incomplete",
    ("openai", "refusal"): "the model declined to answer",
    ("anthropic", "refusal"): "the model declined to answer",
}


@pytest.mark.req("MD-4")
@pytest.mark.parametrize(("kind", "reason"), INCOMPLETE)
async def test_blocked_answer_fails_the_turn(session_at, capsys, kind, reason):
    message = INCOMPLETE[kind, reason]
    replies = [text("Half an").with_finish_reason(reason)] * 4
    async with ScriptedModelServer(*replies) as server:
        out, exit_status = await run_headless(await session_at(server, kind), "text")
        assert exit_status == 1
        assert out.getvalue().startswith(f"● Half an\n  ↑ ANSWER\n✗ {message}; ")
        out, exit_status = await run_headless(await session_at(server, kind), "jsonl")
        summary = records(out)[-1]
        assert (exit_status, summary["reason"], summary["error"]["code"]) == (1, "failed", "refusal")
        assert (summary["answer"], kinds(records(out))[-1]) == ("Half an", "turn_ended")
        out, _ = await run_headless(await session_at(server, kind), "simple")
        assert out.getvalue() == "Half an\n"
        assert capsys.readouterr().err.startswith(f"ostler: {message}; ")
        shown, _ = await ReplDriver().show(await session_at(server, kind))
        assert f"  Half an\n✗ {message}; " in shown


@pytest.mark.req("MD-4")
async def test_blocked_answer_is_a_refusal_in_the_editor(session_at, tmp_path):
    async with (
        ScriptedModelServer(text("Half an").with_finish_reason("content_filter")) as server,
        open_editor(await session_at(server), tmp_path) as editor,
    ):
        assert (await editor.prompt("session-1", "go"))["stopReason"] == "refusal"


@pytest.mark.req("MD-4")
async def test_refusal_field_of_a_message_fails_the_turn(session_at):
    refused = sse_reply({"choices": [{"delta": {"refusal": "I cannot."}, "finish_reason": "stop"}]})
    async with ScriptedModelServer(refused) as server:
        out, exit_status = await run_headless(await session_at(server), "json")
    assert (exit_status, records(out)[-1]["error"]["code"], records(out)[-1]["answer"]) == (1, "refusal", "I cannot.")


@pytest.mark.req("MD-4")
async def test_answer_of_maximum_length_ends_with_a_limit(session_at, capsys):
    async with ScriptedModelServer(*[text("Half an").with_finish_reason("length")] * 2) as server:
        out, exit_status = await run_headless(await session_at(server), "simple")
        assert (out.getvalue(), exit_status) == ("Half an\n", 3)
        assert capsys.readouterr().err == "ostler: the run reached a limit: the model's longest reply\n"
        out, _ = await run_headless(await session_at(server), "json")
        assert (records(out)[-1]["reason"], records(out)[-1]["limit"]) == ("limit", "the model's longest reply")


@pytest.mark.req("MD-4")
async def test_unknown_finish_reason_is_a_warning(session_at):
    async with ScriptedModelServer(text("Half an").with_finish_reason("insufficient_system_resource")) as server:
        out, exit_status = await run_headless(await session_at(server), "text")
    assert exit_status == 0
    assert "the server ended the reply with 'insufficient_system_resource'; it may be incomplete" in out.getvalue()


@pytest.mark.req("MD-4")
async def test_empty_reply_is_a_warning(session_at):
    async with ScriptedModelServer(text("").with_finish_reason("tool_calls")) as server:
        out, exit_status = await run_headless(await session_at(server), "text")
    assert (out.getvalue(), exit_status) == ("! the model returned an empty reply\n", 0)
