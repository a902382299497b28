"""The Python API: the example of the docs, custom clients and backends, approvals, cancellation, resuming."""

import asyncio
import re
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

import ostler as package
from ostler.backends.scripted import ScriptedBackend
from ostler.core.errors import UsageError
from ostler.core.events import MessageDone, TextDelta, TurnEnded, TurnStarted
from ostler.core.message import Message
from ostler.core.permission import Decision
from ostler.core.prompt import TextContent
from ostler.testing.model_server import calls, text
from ostler.testing.scripted_model import ScriptedCall, ScriptedLine, ScriptedModel

pytestmark = pytest.mark.req("DX-7")
DOCS = Path(__file__).parents[2] / "docs" / "python.md"
WRITE = ScriptedCall("write", {"path": "x.txt", "content": "x"})


def test_example_of_the_docs(ostler, models, tmp_path):
    example = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)[0]
    (tmp_path / "example.py").write_text(example)
    with models.playing(calls([("write", {"path": "hello.txt", "content": "hi"})]), text("written")) as server:
        env = ostler.environment({"OSTLER_BASE_URL": server.base_url, "OSTLER_MODEL": "scripted"})
        command = [sys.executable, "-P", str(tmp_path / "example.py")]
        done = subprocess.run(
            command, cwd=ostler.workspace, env=env, capture_output=True, text=True, timeout=50, check=False
        )
    assert (done.stdout, done.stderr, done.returncode) == ("written\nwrite ok\n", "", 0)
    assert (ostler.workspace / "hello.txt").read_text() == "hi"


async def test_custom_model_client(work):
    model = ScriptedModel([ScriptedLine(calls=(WRITE,)), ScriptedLine("done")])
    async with package.open_session(str(work), model=model, write=True) as conversation:
        turn = await conversation.run("write x")
    assert (turn.answer, turn.reason) == ("done", "done")
    assert [(item.call.tool, item.result.status) for item in turn.tools] == [("write", "ok")]
    assert isinstance(turn.events[0], TurnStarted) and turn.events[-1] == turn.ended
    assert (work / "x.txt").read_text() == "x"
    model.finish()


async def test_writes_need_the_flag_or_approval(work):
    async with package.open_session(
        str(work), model=ScriptedModel([ScriptedLine(calls=(WRITE,)), ScriptedLine("no")])
    ) as conversation:
        denied = await conversation.run("write x")
    assert denied.tools[0].result.status == "denied" and not (work / "x.txt").exists()

    titles = []

    async def approve(request):
        titles.append(request.permission.title)
        return True

    model = ScriptedModel([ScriptedLine(calls=(WRITE,)), ScriptedLine("yes")])
    async with package.open_session(str(work), model=model, ask=approve) as conversation:
        assert (await conversation.run("write x")).tools[0].result.status == "ok"
    assert len(titles) == 1 and (work / "x.txt").exists()


@pytest.mark.parametrize("answer", [False, Decision("deny", by="person", feedback="not now"), RuntimeError("oops")])
async def test_denial_or_failing_callback_denies(work, answer):
    async def approve(request):
        if isinstance(answer, Exception):
            raise answer
        return answer

    model = ScriptedModel([ScriptedLine(calls=(WRITE,)), ScriptedLine("no")])
    async with package.open_session(str(work), model=model, ask=approve) as conversation:
        turn = await conversation.run("write x")
    assert turn.tools[0].result.status == "denied" and not (work / "x.txt").exists()


async def test_custom_backend_replaces_the_engine(work):
    async def act(context, prompt):
        context.emit(MessageDone(Message("m", (TextContent("from afar"),))))

    backend = ScriptedBackend([act])
    async with package.open_session(str(work), backend=backend, ephemeral=True) as conversation:
        assert (await conversation.run("hi")).answer == "from afar"


async def test_session_continues_after_a_cancelled_turn(work):
    pause = asyncio.Event()
    model = ScriptedModel([ScriptedLine("half an ans\n", pause=pause), ScriptedLine("whole")])
    async with package.open_session(str(work), model=model) as conversation:
        async with aclosing(conversation.stream("first")) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        second = await conversation.run("second")
        ends = [event for event in conversation.session.events() if isinstance(event, TurnEnded)]
    assert second.answer == "whole"
    assert [ended.reason for ended in ends] == ["cancelled", "done"]


async def test_session_is_resumed(work):
    async with package.open_session(str(work), model=ScriptedModel([ScriptedLine("one")])) as conversation:
        await conversation.run("first")
    model = ScriptedModel([ScriptedLine("two")])
    async with package.open_session(str(work), model=model, resume=conversation.id) as again:
        await again.run("second")
    assert [type(message).__name__ for message in model.requests[0].history] == [
        "UserMessage",
        "AssistantMessage",
        "UserMessage",
    ]


async def test_model_failure_is_a_result_and_unknown_model_raises(work):
    async with package.open_session(str(work), model=ScriptedModel([ScriptedLine(error="gone")])) as conversation:
        turn = await conversation.run("hi")
        assert (turn.reason, turn.answer) == ("failed", "")
        assert "gone" in str(turn.ended.fault)
        from ostler.core.sessions import SetOption

        with pytest.raises(UsageError, match="unknown model 'other'"):
            await conversation.session.apply(SetOption("model", "other"))


def test_run_without_asyncio(work):
    turn = package.run("hi", str(work), model=ScriptedModel([ScriptedLine("hello")]), ephemeral=True)
    assert turn.answer == "hello"


async def test_run_in_asynchronous_code_raises(work):
    with pytest.raises(UsageError, match="open_session"):
        package.run("hi", str(work), model=ScriptedModel([]))


def test_unknown_attribute_raises_attribute_error():
    with pytest.raises(AttributeError, match="nothing_such"):
        package.nothing_such  # noqa: B018  # the access is the test
    assert set(package.__all__) == set(dir(package))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"profile": "sudo"}, "unknown profile 'sudo'"),
        ({"allow": "bash:*"}, "invalid argument"),
        ({"mode": "brave"}, "invalid argument"),
        ({"max_steps": "many"}, "invalid argument"),
        ({"max_steps": 0}, "invalid limit max_steps=0"),
        ({"max_steps": -5}, "invalid limit max_steps=-5"),
        ({"max_tokens": 0}, "invalid limit max_tokens=0"),
        ({"max_cost": 0.0}, "invalid limit max_cost=0.0"),
        ({"max_time": float("nan")}, "invalid limit max_time=nan"),
        ({"max_time": float("inf")}, "invalid limit max_time=inf"),
        ({"agent": "nobody"}, "unknown agent 'nobody'"),
        ({"resume": "gone"}, "session 'gone' not found"),
        ({"max_step": 3}, "no argument 'max_step'"),
        ({"model": 5}, "argument model has no name, context_limit, stream"),
        ({"backend": object()}, "argument backend has no open"),
    ],
)
async def test_invalid_argument_raises(work, flags, message):
    with pytest.raises(UsageError, match=message):
        async with package.open_session(str(work), **{"model": ScriptedModel([]), **flags}):
            pass


@pytest.mark.parametrize("nothing", ["", " \n", None])
async def test_empty_prompt_raises(work, nothing):
    async with package.open_session(str(work), model=ScriptedModel([])) as conversation:
        with pytest.raises(UsageError, match="no prompt"):
            await conversation.run(nothing)


async def test_leaving_the_stream_cancels_the_turn(work):
    """Also if the stream is not closed explicitly."""
    model = ScriptedModel(
        [ScriptedLine("one\ntwo\n", pause=asyncio.Event()), ScriptedLine("again"), ScriptedLine("and again")]
    )
    async with package.open_session(str(work), model=model) as conversation:
        async for event in conversation.stream("go"):
            if isinstance(event, TextDelta):
                break
        assert (await conversation.run("once more")).answer == "again"
        first, second = await asyncio.gather(
            conversation.run("at the same time"), conversation.run("as this"), return_exceptions=True
        )
        assert first.answer == "and again" and isinstance(second, UsageError)


async def test_subscriptions_are_closed(work):
    async def act(context, prompt):
        context.emit(TextDelta("m", "hi"))

    async with package.open_session(str(work), backend=ScriptedBackend([act] * 3)) as conversation:
        await conversation.run("one")
        async with aclosing(conversation.stream("two")) as events:
            await anext(events)
        conversation._make_prompt = None  # makes it fail before the turn starts
        with pytest.raises(TypeError):
            await conversation.run("three")
        assert conversation.session._stream._subscriptions == []


@pytest.mark.req("PM-10")
@pytest.mark.parametrize(
    ("flags", "written"),
    [({}, False), ({"mode": "accept-edits"}, True), ({"mode": "plan", "write": True}, False), ({"mode": "ask"}, False)],
    ids=str,
)
async def test_mode_decides_about_edits(work, flags, written):
    model = ScriptedModel([ScriptedLine("", (WRITE,)), ScriptedLine("over")])
    async with package.open_session(str(work), model=model, **flags) as conversation:
        assert (await conversation.run("write")).answer == "over"
    assert (work / "x.txt").exists() is written
