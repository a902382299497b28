"""What a model's server does wrong, over real HTTP, as each face tells it: silence, retries, and cut answers."""

import io
import itertools
import json

import pytest
from test_editor_face import at as at_editor
from test_faces import ReplDriver

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


async def nap(seconds):
    """Pauses between attempts are not what is looked at here."""


def model_at(server, kind):
    """For its client a second passes with each look at a silent server."""
    network = NetworkConfig(
        environ={},
        timeouts=StallTimeouts(first=12.0, silent=12.0, tick=0.05),
        retry_policy=RetryPolicy(sleep=nap, jitter=lambda: 1.0),
        clock=itertools.count().__next__,
    )
    return make_client(api_kind=kind, base_url=server.base_url, model="m", network=network)


@pytest.fixture
def session_at(tmp_path):
    async def made(server, kind="openai"):
        engine = Engine(make_model=lambda name: model_at(server, kind), tools=tuple, system=lambda: "Be brief.")
        return await open_test_session(engine, (), LocalWorkspace(str(tmp_path)))

    return made


async def printed(session, output):
    out = io.StringIO()
    face = HeadlessFrontend(
        OpenSessionRequest(session.cwd, interactive=False),
        make_prompt("go"),
        make_output(output, Styler(enabled=False), out),
    )
    return out, await face.run(SingleSessionManager(session))


def records(out):
    return [json.loads(line) for line in out.getvalue().splitlines()]


def kinds(told):
    return [record["event"]["type"] for record in told[:-1]]


@pytest.mark.req("MD-5")
async def test_a_silence_is_an_event_of_its_own_and_a_retry_another(session_at):
    async with ScriptedModelServer(stall(), text("hello")) as server:
        out, exit_status = await printed(await session_at(server), "jsonl")
    told = records(out)
    silent = [record["event"] for record in told[:-1] if record["event"]["type"] == "waiting"]
    assert silent[0]["reason"] == f"no data from 127.0.0.1:{server.port} for 5 s"
    assert kinds(told).count("retrying") == 1
    assert kinds(told).index("waiting") < kinds(told).index("retrying")
    assert exit_status == 0


@pytest.mark.req("MD-5")
@pytest.mark.parametrize("output", ["text", "simple", "json"])
async def test_a_printed_run_tells_a_silence_beside_its_answer(session_at, capsys, output):
    async with ScriptedModelServer(stall(), text("hello")) as server:
        out, _ = await printed(await session_at(server), output)
    aside = capsys.readouterr().err.splitlines()
    assert aside[0] == f"ostler: waiting: no data from 127.0.0.1:{server.port} for 5 s"
    assert sum("retrying" in line for line in aside) == 1
    assert "hello" in out.getvalue()
    assert "waiting" not in out.getvalue()


@pytest.mark.req("MD-5")
async def test_plain_lines_tell_a_silence_and_a_retry_apart(session_at):
    async with ScriptedModelServer(stall(), status(500), text("hello")) as server:
        shown, _ = await ReplDriver().show(await session_at(server))
    lines = shown.splitlines()
    assert lines[0] == f"waiting: no data from 127.0.0.1:{server.port} for 5 s"
    assert [line.partition("(attempt ")[2] for line in lines if "retrying" in line] == ["2)", "3)"]
    assert shown.endswith("ANSWER\n  hello\n")


@pytest.mark.req("MD-5")
async def test_an_editor_is_told_of_a_silence_as_an_aside(session_at, tmp_path):
    async with (
        ScriptedModelServer(stall(), text("hello")) as server,
        at_editor(await session_at(server), tmp_path) as editor,
    ):
        answer = await editor.prompt("session-1", "go")
        asides = [told["content"]["text"] for told in editor.told("agent_thought_chunk")]
        words = editor.text()
    assert asides[0] == f"waiting: no data from 127.0.0.1:{server.port} for 5 s"
    assert sum("retrying" in aside for aside in asides) == 1
    assert (words, answer["stopReason"]) == ("hello", "end_turn")


CUT = {
    ("openai", "content_filter"): "the provider's content filter cut the reply off, so it is not whole",
    ("openai", "SAFETY"): "the provider's content filter cut the reply off, so it is not whole",
    ("openai", "refusal"): "the model declined to answer",
    ("anthropic", "refusal"): "the model declined to answer",
}


@pytest.mark.req("MD-4")
@pytest.mark.parametrize(("kind", "reason"), CUT)
async def test_an_answer_that_was_held_back_is_no_whole_one(session_at, capsys, kind, reason):
    told = CUT[kind, reason]
    replies = [text("Half an").with_finish_reason(reason)] * 4
    async with ScriptedModelServer(*replies) as server:
        out, exit_status = await printed(await session_at(server, kind), "text")
        assert exit_status == 1
        assert out.getvalue().startswith(f"ANSWER\n  Half an\n✗ {told}; ")
        out, exit_status = await printed(await session_at(server, kind), "jsonl")
        summary = records(out)[-1]
        assert (exit_status, summary["reason"], summary["error"]["code"]) == (1, "failed", "refusal")
        assert (summary["answer"], kinds(records(out))[-1]) == ("Half an", "turn_ended")
        out, _ = await printed(await session_at(server, kind), "simple")
        assert out.getvalue() == "Half an\n"
        assert capsys.readouterr().err.startswith(f"ostler: {told}; ")
        shown, _ = await ReplDriver().show(await session_at(server, kind))
        assert f"  Half an\n✗ {told}; " in shown


@pytest.mark.req("MD-4")
async def test_an_editor_hears_that_an_answer_was_held_back(session_at, tmp_path):
    async with (
        ScriptedModelServer(text("Half an").with_finish_reason("content_filter")) as server,
        at_editor(await session_at(server), tmp_path) as editor,
    ):
        assert (await editor.prompt("session-1", "go"))["stopReason"] == "refusal"


@pytest.mark.req("MD-4")
async def test_the_refusal_field_of_a_message_ends_the_turn_as_one(session_at):
    refused = sse_reply({"choices": [{"delta": {"refusal": "I cannot."}, "finish_reason": "stop"}]})
    async with ScriptedModelServer(refused) as server:
        out, exit_status = await printed(await session_at(server), "json")
    assert (exit_status, records(out)[-1]["error"]["code"], records(out)[-1]["answer"]) == (1, "refusal", "I cannot.")


@pytest.mark.req("MD-4")
async def test_an_answer_that_its_length_cut_is_no_whole_one(session_at, capsys):
    async with ScriptedModelServer(*[text("Half an").with_finish_reason("length")] * 2) as server:
        out, exit_status = await printed(await session_at(server), "simple")
        assert (out.getvalue(), exit_status) == ("Half an\n", 3)
        assert capsys.readouterr().err == "ostler: the run reached a limit: the model's longest reply\n"
        out, _ = await printed(await session_at(server), "json")
        assert (records(out)[-1]["reason"], records(out)[-1]["limit"]) == ("limit", "the model's longest reply")


@pytest.mark.req("MD-4")
async def test_a_word_for_the_end_that_nobody_knows_is_told(session_at):
    async with ScriptedModelServer(text("Half an").with_finish_reason("insufficient_system_resource")) as server:
        out, exit_status = await printed(await session_at(server), "text")
    assert exit_status == 0
    assert "the server ended the reply with 'insufficient_system_resource', so it may not be whole" in out.getvalue()


@pytest.mark.req("MD-4")
async def test_a_reply_without_a_word_is_told(session_at):
    async with ScriptedModelServer(text("").with_finish_reason("tool_calls")) as server:
        out, exit_status = await printed(await session_at(server), "text")
    assert (out.getvalue(), exit_status) == ("! the model ended its reply without a word\n", 0)
