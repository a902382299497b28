"""Where a tool runs: session tools where the loop runs, workspace tools where the files are."""

import pytest

from ostler.app.tool_host import builtin_tools, other_tools
from ostler.core.events import Notice
from ostler.core.tools import ChildTask
from ostler.settings.load import load
from ostler.testing.fake_tool import FakeTool
from ostler.tools.host import LocalToolHost
from ostler.tools.protocol.read_text_file import ReadTextFileTool
from ostler.tools.protocol.write_text_file import WriteTextFileTool

pytestmark = pytest.mark.req("TL-3")
SESSION_TOOLS = {"todoread", "todowrite", "task"}


def all_tools(folder):
    settings = load(folder, {"HOME": str(folder)})
    return [*builtin_tools(settings), *other_tools(), ReadTextFileTool(), WriteTextFileTool()]


def test_only_todos_and_subagents_run_in_the_session(tmp_path):
    places = {tool.spec.name: tool.spec.runs_in for tool in all_tools(tmp_path)}
    assert {name for name, place in places.items() if place == "session"} == SESSION_TOOLS
    assert places["skill"] == "workspace"


@pytest.mark.parametrize("place", ["session", "workspace"])
async def test_host_of_one_place_has_no_tool_of_the_other(make_harness, place):
    harness = make_harness()
    tools = {tool.spec.name: tool for tool in all_tools(harness.root)}
    hidden = [tools.pop("task"), tools.pop("skill")]
    host = LocalToolHost(tools.values(), harness.workspace, lambda: hidden, place=place)
    harness.session._tools = harness.session._call_runner._tools = host
    assert {spec.runs_in for spec in host.specs()} == {place}
    missing = ("todowrite", "task") if place == "workspace" else ("read", "skill", "bash")
    for name in missing:
        result = await harness.call(name, {})
        assert (result.status, result.fault.code) == ("failed", "unknown_tool")


@pytest.mark.parametrize("use", ["persist", "events", "spawn"])
async def test_workspace_tool_cannot_act_on_the_session(make_harness, use):
    async def act(arguments, context):
        match use:
            case "persist":
                context.persist(Notice("info", "from a tool"))
            case "events":
                context.events()
            case "spawn":
                await context.spawn(ChildTask("c", "general", "t", "p"))
        return "done"

    harness = make_harness([FakeTool("probe", act), FakeTool("other", act, runs_in="session")])
    result = await harness.call("probe")
    assert (result.status, 'declare runs_in = "session"' in result.for_model) == ("failed", True)
    assert (await harness.call("other")).status == "ok"


async def test_session_tool_cannot_use_the_workspace(make_harness):
    async def look(arguments, context):
        return context.workspace.root

    harness = make_harness([FakeTool("probe", look), FakeTool("other", look, runs_in="session")])
    assert (await harness.call("probe")).status == "ok"
    result = await harness.call("other")
    assert (result.status, 'declare runs_in = "workspace"' in result.for_model) == ("failed", True)
