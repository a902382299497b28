"""Tools that come, change and go while a turn runs, as those of a server do: told at the end, and no byte edited."""

import msgspec
import pytest
from engine_play import Model, Said, script

from ostler.backends.engine.backend import Engine
from ostler.core.events import PrefixBuilt, Reminded, ToolFinished
from ostler.journal.memory_journal import MemoryJournal
from ostler.models.model_types import SystemMessage
from ostler.session.session import LocalSession
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ALLOW_ALL, run_turn
from ostler.tools.host import LocalToolHost
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("MD-9")


async def opened(tmp_path, model, came, *tools, journal=None):
    workspace = LocalWorkspace(str(tmp_path))
    host = LocalToolHost(tools, workspace, dynamic_tools=lambda: came)
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


async def test_a_tool_that_comes_in_the_middle_of_a_turn_is_told_last_and_can_be_called(tmp_path):
    came, late = {}, FakeTool("late")

    async def fetch(arguments, context):
        came["late"] = late
        return "there is more now"

    model = Model(script(Said("", ("fetch", {})), Said("", ("late", {})), Said("done")), limit=64_000)
    session = await opened(tmp_path, model, came, FakeTool("fetch", fetch))
    _, ended = await run_turn(session, "go")
    assert ended.reason == "done"
    assert [names(request) for request in model.requests] == [["fetch"], ["fetch", "late"], ["fetch", "late"]]
    assert len(late.runs) == 1
    assert [tool.name for tool in session.tools()] == ["fetch", "late"]
    assert len([event for event in session.events() if isinstance(event, PrefixBuilt)]) == 2
    assert reminders(session) == []
    await session.aclose()


async def test_a_tool_that_went_stays_told_and_is_refused(tmp_path):
    came = {"late": FakeTool("late")}

    async def drop(arguments, context):
        came.clear()
        return "gone"

    model = Model(script(Said("", ("drop", {})), Said("", ("late", {})), Said("done")), limit=64_000)
    session = await opened(tmp_path, model, came, FakeTool("drop", drop))
    await run_turn(session, "go")
    assert [names(request) for request in model.requests] == [["drop", "late"]] * 3
    *_, refused = (event.result for event in session.events() if isinstance(event, ToolFinished))
    assert (refused.status, refused.fault.code) == ("failed", "unknown_tool")
    await session.aclose()


async def test_a_tool_that_changed_is_told_of_once_in_words_and_again_when_it_changes_back(tmp_path):
    late = FakeTool("late")
    came, first = {"late": late}, late.spec
    other = msgspec.structs.replace(first, schema={"type": "object", "properties": {"x": {"type": "string"}}})
    specs = [first, other, other, first]

    async def change(arguments, context):
        late.spec = specs.pop(0)
        return "changed"

    model = Model(script(*[Said("", ("change", {"n": n})) for n in range(4)], Said("done")), limit=64_000)
    session = await opened(tmp_path, model, came, FakeTool("change", change))
    await run_turn(session, "go")
    assert len({msgspec.json.encode(request.tools) for request in model.requests}) == 1
    told = reminders(session)
    assert ["the tool late has changed" in text for text in told] == [True, True]
    assert ['"x"' in text for text in told] == [True, False]
    said = [entry.text for entry in model.requests[-1].history if isinstance(entry, SystemMessage)]
    assert [text for text in said if "late" in text] == told
    await session.aclose()


async def test_what_a_change_was_told_in_holds_after_a_resume(tmp_path):
    late, journal = FakeTool("late"), MemoryJournal("session-1")
    model = Model(script(Said("done")), limit=64_000)
    session = await opened(tmp_path, model, {"late": late}, journal=journal)
    await run_turn(session, "go")
    late.spec = msgspec.structs.replace(late.spec, description="other words")
    for _ in range(2):
        again = await opened(tmp_path, model, {"late": late}, journal=journal)
        await run_turn(again, "go on")
    assert len(reminders(again)) == 1
    await again.aclose()


async def test_no_tool_that_comes_takes_the_place_of_one_that_stays(tmp_path):
    own, impostor = FakeTool("read"), FakeTool("read")
    model = Model(script(Said("", ("read", {})), Said("done")), limit=64_000)
    session = await opened(tmp_path, model, {"read": impostor}, own)
    await run_turn(session, "go")
    assert (len(own.runs), len(impostor.runs)) == (1, 0)
    await session.aclose()


async def test_the_door_is_open_before_the_backend_is(tmp_path):
    order = []

    class Door(LocalToolHost):
        async def open(self, harness):
            order.append(("tools", bool(harness.records())))

    class Thinking(Engine):
        async def open(self, start, harness):
            order.append(("backend", True))
            return await super().open(start, harness)

    workspace = LocalWorkspace(str(tmp_path))
    backend = Thinking(make_model=lambda name: Model(script(Said("ok"))), tools=lambda: (), system=lambda: "")
    tools = Door((), workspace)
    session = LocalSession(
        backend=backend, tools=tools, journal=MemoryJournal("s"), policy=ALLOW_ALL, cwd=workspace.root
    )
    await session.open(version="test", backend="test", options={})
    assert order == [("tools", True), ("backend", True)]
    await session.aclose()
