"""The Python API: its example as it stands in the docs, any client, any backend, asks, cancelling, going on."""

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


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OSTLER_HOME", raising=False)
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_the_example_of_the_docs_runs(ostler, models, tmp_path):
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


async def test_a_client_of_ones_own_gives_answer_results_and_events(work):
    model = ScriptedModel([ScriptedLine(calls=(WRITE,)), ScriptedLine("done")])
    async with package.open_session(str(work), model=model, write=True) as conversation:
        played = await conversation.run("write x")
    assert (played.answer, played.reason) == ("done", "done")
    assert [(used.call.tool, used.result.status) for used in played.tools] == [("write", "ok")]
    assert isinstance(played.events[0], TurnStarted) and played.events[-1] == played.ended
    assert (work / "x.txt").read_text() == "x"
    model.finish()


async def test_nothing_is_written_without_the_flag_and_consent_may_be_asked_for(work):
    async with package.open_session(
        str(work), model=ScriptedModel([ScriptedLine(calls=(WRITE,)), ScriptedLine("no")])
    ) as conversation:
        refused = await conversation.run("write x")
    assert refused.tools[0].result.status == "denied" and not (work / "x.txt").exists()

    seen = []

    async def consent(asked):
        seen.append(asked.permission.title)
        return True

    model = ScriptedModel([ScriptedLine(calls=(WRITE,)), ScriptedLine("yes")])
    async with package.open_session(str(work), model=model, ask=consent) as conversation:
        assert (await conversation.run("write x")).tools[0].result.status == "ok"
    assert len(seen) == 1 and (work / "x.txt").exists()


@pytest.mark.parametrize("said", [False, Decision("deny", by="person", feedback="not now"), RuntimeError("oops")])
async def test_a_refusal_or_a_broken_callback_refuses(work, said):
    async def consent(asked):
        if isinstance(said, Exception):
            raise said
        return said

    model = ScriptedModel([ScriptedLine(calls=(WRITE,)), ScriptedLine("no")])
    async with package.open_session(str(work), model=model, ask=consent) as conversation:
        played = await conversation.run("write x")
    assert played.tools[0].result.status == "denied" and not (work / "x.txt").exists()


async def test_a_backend_of_ones_own_thinks_in_place_of_the_engine(work):
    async def act(context, prompt):
        context.emit(MessageDone(Message("m", (TextContent("from afar"),))))

    backend = ScriptedBackend([act])
    async with package.open_session(str(work), backend=backend, ephemeral=True) as conversation:
        assert (await conversation.run("hi")).answer == "from afar"


async def test_a_cancelled_run_leaves_a_session_that_goes_on(work):
    pause = asyncio.Event()
    model = ScriptedModel([ScriptedLine("half an ans\n", pause=pause), ScriptedLine("whole")])
    async with package.open_session(str(work), model=model) as conversation:
        async with aclosing(conversation.stream("first")) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        second = await conversation.run("second")
        kept = [event for event in conversation.session.events() if isinstance(event, TurnEnded)]
    assert second.answer == "whole"
    assert [ended.reason for ended in kept] == ["cancelled", "done"]


async def test_a_session_goes_on_later(work):
    async with package.open_session(str(work), model=ScriptedModel([ScriptedLine("one")])) as conversation:
        await conversation.run("first")
    model = ScriptedModel([ScriptedLine("two")])
    async with package.open_session(str(work), model=model, resume=conversation.id) as again:
        await again.run("second")
    assert [type(said).__name__ for said in model.requests[0].history] == [
        "UserMessage",
        "AssistantMessage",
        "UserMessage",
    ]


async def test_a_model_that_fails_is_no_exception_and_another_model_is_a_clear_one(work):
    async with package.open_session(str(work), model=ScriptedModel([ScriptedLine(error="gone")])) as conversation:
        played = await conversation.run("hi")
        assert (played.reason, played.answer) == ("failed", "")
        assert "gone" in str(played.ended.fault)
        from ostler.core.sessions import SetOption

        with pytest.raises(UsageError, match="alone"):
            await conversation.session.apply(SetOption("model", "other"))


def test_one_prompt_without_asyncio(work):
    played = package.run("hi", str(work), model=ScriptedModel([ScriptedLine("hello")]), ephemeral=True)
    assert played.answer == "hello"


async def test_one_prompt_in_asynchronous_code_is_told_the_other_way(work):
    with pytest.raises(UsageError, match="open_session"):
        package.run("hi", str(work), model=ScriptedModel([]))


def test_what_is_not_there_is_said_as_python_does():
    with pytest.raises(AttributeError, match="nothing_such"):
        package.nothing_such  # noqa: B018  # the look is the test
    assert set(package.__all__) == set(dir(package))


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ({"profile": "sudo"}, "no profile 'sudo'"),
        ({"allow": "bash:*"}, "wrong"),
        ({"max_steps": "many"}, "wrong"),
        ({"max_steps": 0}, "max_steps=0 limits nothing"),
        ({"max_steps": -5}, "max_steps=-5 limits nothing"),
        ({"max_tokens": 0}, "max_tokens=0 limits nothing"),
        ({"max_cost": 0.0}, "max_cost=0.0 limits nothing"),
        ({"max_time": float("nan")}, "max_time=nan limits nothing"),
        ({"max_time": float("inf")}, "max_time=inf limits nothing"),
        ({"agent": "nobody"}, "no agent 'nobody'"),
        ({"resume": "gone"}, "session 'gone' not found"),
        ({"max_step": 3}, "no argument 'max_step'"),
        ({"model": 5}, "given as model has no name, context_limit, stream"),
        ({"backend": object()}, "given as backend has no open"),
    ],
)
async def test_a_wrong_argument_is_a_clear_error(work, flags, why):
    with pytest.raises(UsageError, match=why):
        async with package.open_session(str(work), **{"model": ScriptedModel([]), **flags}):
            pass


@pytest.mark.parametrize("nothing", ["", " \n", None])
async def test_nothing_is_no_prompt(work, nothing):
    async with package.open_session(str(work), model=ScriptedModel([])) as conversation:
        with pytest.raises(UsageError, match="no prompt"):
            await conversation.run(nothing)


async def test_a_loop_that_is_left_cancels_its_turn_and_the_next_may_follow_at_once(work):
    """Also where nobody closes the stream by hand."""
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


async def test_no_turn_leaves_a_reader_behind(work):
    async def act(context, said):
        context.emit(TextDelta("m", "hi"))

    async with package.open_session(str(work), backend=ScriptedBackend([act] * 3)) as conversation:
        await conversation.run("one")
        async with aclosing(conversation.stream("two")) as events:
            await anext(events)
        conversation._make_prompt = None  # whatever fails before the turn begins
        with pytest.raises(TypeError):
            await conversation.run("three")
        assert conversation.session._stream._subscriptions == []
