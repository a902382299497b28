"""Tools that are added, changed or removed during a turn: appended or described, without changing earlier bytes."""

import msgspec
import pytest
from engine_harness import Model, Reply, script

from ostler.backends.engine.backend import Engine
from ostler.core.events import PrefixBuilt, Reminded, ToolFinished
from ostler.journal.memory_journal import MemoryJournal
from ostler.models.model_types import SystemMessage
from ostler.session.session import LocalSession
from ostler.testing.fake_tool import FakeTool
from ostler.testing.fake_tool_source import FakeToolSource
from ostler.testing.session_fixture import ALLOW_ALL, run_turn
from ostler.tools.host import LocalToolHost
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("MD-9")


async def open_session(tmp_path, model, dynamic_tools, *tools, journal=None):
    workspace = LocalWorkspace(str(tmp_path))
    host = LocalToolHost(tools, workspace, sources=[FakeToolSource(dynamic_tools)])
    session = LocalSession(
        backend=Engine(make_model=lambda name: model, tools=host.specs, system=lambda: "Be good."),
        tools=host,
        journal=journal or MemoryJournal("session-1"),
        policy=ALLOW_ALL,
        cwd=workspace.root,
    )
    await session.open(version="test", backend="test", options={})
    return session


def names(request):
    return [tool.name for tool in request.tools]


def reminders(session):
    return [event.text for event in session.events() if isinstance(event, Reminded)]


@pytest.mark.invariant("M3")
async def test_tool_added_during_a_turn_is_appended_and_callable(tmp_path):
    dynamic_tools, late = {}, FakeTool("late")

    async def fetch(arguments, context):
        dynamic_tools["late"] = late
        return "there is more now"

    model = Model(script(Reply("", ("fetch", {})), Reply("", ("late", {})), Reply("done")), limit=64_000)
    session = await open_session(tmp_path, model, dynamic_tools, FakeTool("fetch", fetch))
    _, ended = await run_turn(session, "go")
    assert ended.reason == "done"
    assert [names(request) for request in model.requests] == [["fetch"], ["fetch", "late"], ["fetch", "late"]]
    assert len(late.runs) == 1
    assert [tool.name for tool in session.tools()] == ["fetch", "late"]
    assert len([event for event in session.events() if isinstance(event, PrefixBuilt)]) == 2
    assert reminders(session) == []
    await session.aclose()


@pytest.mark.invariant("M3")
async def test_removed_tool_stays_declared_and_is_refused(tmp_path):
    dynamic_tools = {"late": FakeTool("late")}

    async def drop(arguments, context):
        dynamic_tools.clear()
        return "gone"

    model = Model(script(Reply("", ("drop", {})), Reply("", ("late", {})), Reply("done")), limit=64_000)
    session = await open_session(tmp_path, model, dynamic_tools, FakeTool("drop", drop))
    await run_turn(session, "go")
    assert [names(request) for request in model.requests] == [["drop", "late"]] * 3
    *_, refused = (event.result for event in session.events() if isinstance(event, ToolFinished))
    assert (refused.status, refused.fault.code) == ("failed", "unknown_tool")
    await session.aclose()


async def test_changed_tool_is_described_once_per_change(tmp_path):
    late = FakeTool("late")
    dynamic_tools, first = {"late": late}, late.spec
    other = msgspec.structs.replace(first, schema={"type": "object", "properties": {"x": {"type": "string"}}})
    specs = [first, other, other, first]

    async def change(arguments, context):
        late.spec = specs.pop(0)
        return "changed"

    model = Model(script(*[Reply("", ("change", {"n": n})) for n in range(4)], Reply("done")), limit=64_000)
    session = await open_session(tmp_path, model, dynamic_tools, FakeTool("change", change))
    await run_turn(session, "go")
    assert len({msgspec.json.encode(request.tools) for request in model.requests}) == 1
    texts = reminders(session)
    assert ["the tool late has changed" in text for text in texts] == [True, True]
    assert ['"x"' in text for text in texts] == [True, False]
    system_texts = [entry.text for entry in model.requests[-1].history if isinstance(entry, SystemMessage)]
    assert [text for text in system_texts if "late" in text] == texts
    await session.aclose()


async def test_tool_change_is_reported_once_across_resumes(tmp_path):
    late, journal = FakeTool("late"), MemoryJournal("session-1")
    model = Model(script(Reply("done")), limit=64_000)
    session = await open_session(tmp_path, model, {"late": late}, journal=journal)
    await run_turn(session, "go")
    late.spec = msgspec.structs.replace(late.spec, description="other words")
    for _ in range(2):
        again = await open_session(tmp_path, model, {"late": late}, journal=journal)
        await run_turn(again, "go on")
    assert len(reminders(again)) == 1
    await again.aclose()


async def test_dynamic_tool_cannot_replace_a_static_one(tmp_path):
    own, impostor = FakeTool("read"), FakeTool("read")
    model = Model(script(Reply("", ("read", {})), Reply("done")), limit=64_000)
    session = await open_session(tmp_path, model, {"read": impostor}, own)
    await run_turn(session, "go")
    assert (len(own.runs), len(impostor.runs)) == (1, 0)
    await session.aclose()


async def test_tool_host_is_opened_before_the_backend(tmp_path):
    order = []

    class RecordingHost(LocalToolHost):
        async def open(self, harness):
            order.append(("tools", bool(harness.records())))

    class RecordingEngine(Engine):
        async def open(self, start, harness):
            order.append(("backend", True))
            return await super().open(start, harness)

    workspace = LocalWorkspace(str(tmp_path))
    backend = RecordingEngine(make_model=lambda name: Model(script(Reply("ok"))), tools=lambda: (), system=lambda: "")
    tools = RecordingHost((), workspace)
    session = LocalSession(
        backend=backend, tools=tools, journal=MemoryJournal("s"), policy=ALLOW_ALL, cwd=workspace.root
    )
    await session.open(version="test", backend="test", options={})
    assert order == [("tools", True), ("backend", True)]
    await session.aclose()
