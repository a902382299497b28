"""A session with a server, from the Python API to the tools of this machine, with a real socket and database."""

import json
from contextlib import asynccontextmanager

import pytest
from tests.loop_server import LoopServer

import ostler as package
from ostler.app.chat import LazySessionManager
from ostler.core.events import ChildEnded, ChildStarted, Notice, ToolCalled, ToolFinished
from ostler.core.sessions import OpenSessionRequest
from ostler.settings.run_options import RunOptions
from ostler.testing.scripted_model import ScriptedCall, ScriptedLine, ScriptedModel

CHECK = "python3 -c 'import ast; ast.parse(open(\"a.py\").read())'"


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """`async with serve(model, **config) as open_session` gives what opens a session of a server with this model."""

    @asynccontextmanager
    async def started(model, **config):
        home, work = tmp_path / "home", tmp_path / "work"
        (home / ".ostler").mkdir(parents=True)
        work.mkdir()
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.delenv("OSTLER_HOME", raising=False)
        (home / ".ostler" / "config.json").write_text(json.dumps(config))
        server = LoopServer(tmp_path / "server", lambda name: model)
        await server.start()
        monkeypatch.setenv("OSTLER_SERVER_TOKEN", server.token)
        try:
            yield lambda **options: package.open_session(
                str(work), backend=f"remote:http://127.0.0.1:{server.port}", **options
            )
        finally:
            await server.stop()

    return started


LIST = ScriptedLine(calls=(ScriptedCall("glob", {"pattern": "*"}),))


def write(text):
    return ScriptedLine(calls=(ScriptedCall("write", {"path": "a.py", "content": text}),))


async def allow(ask):
    return True


def checks(turn):
    called = {event.call.id for event in turn.events if isinstance(event, ToolCalled) and "check-" in event.call.id}
    finished = [event.result for event in turn.events if isinstance(event, ToolFinished)]
    return [result for result in finished if result.call_id in called]


@pytest.mark.req("EN-6", "SV-6")
async def test_check_runs_on_the_client_and_its_failure_goes_to_the_model(serve):
    command = ScriptedCall("bash", {"command": "printf 'x = 1\\n' > a.py"})
    model = ScriptedModel([write("x = (\n"), ScriptedLine("done"), ScriptedLine(calls=(command,)), ScriptedLine("ok")])
    config = {"validation": {"checks": {"python": CHECK}}}
    async with serve(model, **config) as open_session, open_session(ask=allow) as conversation:
        turn = await conversation.run("write a.py")
    assert [result.status for result in checks(turn)] == ["failed", "ok"]
    assert "SyntaxError" in str(model.requests[2])


@pytest.mark.req("EN-6", "SV-6")
@pytest.mark.parametrize(
    ("config", "lines"),
    [
        ({"validation": {"enabled": False, "checks": {"python": CHECK}}}, [write("x = (\n")]),
        ({"validation": {"checks": {"go": CHECK}}}, [write("x = (\n")]),
        (
            {"validation": {"checks": {"python": CHECK}}},
            [LIST],
        ),
    ],
)
async def test_no_check_without_edits_or_if_none_is_configured(serve, config, lines):
    model = ScriptedModel([*lines, ScriptedLine("done")])
    async with serve(model, **config) as open_session, open_session(ask=allow) as conversation:
        turn = await conversation.run("go")
    assert checks(turn) == []
    assert not [event for event in turn.events if isinstance(event, Notice) and event.level == "warning"]


@pytest.mark.req("PM-2", "SV-6")
async def test_check_asks_like_a_local_one(serve):
    asked = []

    async def approve(ask):
        asked.append(ask.permission)
        return CHECK not in ask.permission.title

    model = ScriptedModel([write("x = (\n"), ScriptedLine("done")])
    config = {"validation": {"checks": {"python": CHECK}}, "security": {"sandbox": "off"}}
    async with serve(model, **config) as open_session, open_session(ask=approve) as conversation:
        turn = await conversation.run("write a.py")
    assert [result.status for result in checks(turn)] == ["denied"]
    assert "asked by" in str(asked[-1].preview)


TASK = ScriptedCall("task", {"prompt": "write a.py", "agent": "general", "title": "write"})


@pytest.mark.req("EN-4", "SV-6")
async def test_subagent_runs_on_the_server_and_its_tools_on_the_client(serve, tmp_path):
    model = ScriptedModel(
        [ScriptedLine(calls=(TASK,)), write("x = 1\n"), ScriptedLine("written"), ScriptedLine("all done")]
    )
    async with serve(model) as open_session, open_session(ask=allow) as conversation:
        turn = await conversation.run("have it written")
    model.finish()
    assert (tmp_path / "work" / "a.py").read_text() == "x = 1\n"
    assert turn.answer == "all done"
    kinds = [type(event) for event in turn.events if isinstance(event, ChildStarted | ChildEnded)]
    assert kinds == [ChildStarted, ChildEnded]
    assert "task" not in [spec.name for spec in model.requests[1].tools]


@pytest.mark.req("EN-4", "PM-5", "SV-6")
@pytest.mark.invariant("P3")
async def test_agents_of_the_client_are_used_with_their_rules(serve, tmp_path):
    definition = {
        "mode": "subagent",
        "description": "Reviews.",
        "prompt": "You review.",
        "permission": {"edit": "deny"},
    }
    task = ScriptedCall("task", {"prompt": "look", "agent": "reviewer", "title": "look"})
    model = ScriptedModel(
        [ScriptedLine(calls=(task,)), write("x = 1\n"), ScriptedLine("looked"), ScriptedLine("all done")]
    )
    async with serve(model, agent={"reviewer": definition}) as open_session, open_session(ask=allow) as conversation:
        turn = await conversation.run("review")
    model.finish()
    assert turn.answer == "all done"
    assert "You review." in str(model.requests[1])
    assert "reviewer: Reviews." in str(model.requests[0].tools)
    assert not (tmp_path / "work" / "a.py").exists()


@pytest.mark.req("SV-6")
async def test_prompts_of_a_continued_session_are_not_stored_here(serve, tmp_path):
    async with serve(ScriptedModel([ScriptedLine("hi")])) as open_session:
        async with open_session() as conversation:
            await conversation.run("hello")
        work = str(tmp_path / "work")
        manager = LazySessionManager(RunOptions(cwd=work), lambda line: None, keeps_prompts=False)
        session = await manager.open(OpenSessionRequest(work, resume="last", interactive=True))
        try:
            assert not manager.keeps_prompts
        finally:
            await session.aclose()
        session = await manager.open(OpenSessionRequest(work, "none", interactive=True))
        await session.aclose()
        assert manager.keeps_prompts
