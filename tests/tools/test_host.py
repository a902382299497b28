"""The one door: understood, decided, run, bounded; and what a model is told of."""

import asyncio
import json

import pytest

from ostler.app.tool_host import builtin_tools, other_tools, shell_replacement_tools
from ostler.core.errors import ToolError
from ostler.core.events import PermissionAsked, PermissionDecided, ToolCalled, ToolFinished, ToolStarted
from ostler.core.permission import Decision, Rule
from ostler.core.tools import ToolCall
from ostler.policy.verdict import Policy
from ostler.settings.load import load
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ASK_ALL
from ostler.text.secret_masker import MASK_MARKER
from ostler.tools.host import LocalToolHost
from ostler.tools.output_limit import LIMIT

MOST_TOKENS = 2500


def settings_in(folder, **security):
    folder.mkdir(exist_ok=True)
    (folder / ".ostler").mkdir(exist_ok=True)
    (folder / ".ostler" / "config.json").write_text(json.dumps({"security": security}))
    return load(folder, {"HOME": str(folder)})


@pytest.mark.req("TL-3")
def test_what_a_model_is_told_of_the_tools_is_short(tmp_path):
    offered = builtin_tools(load(tmp_path, {"HOME": str(tmp_path)}))
    told = [{"name": t.spec.name, "description": t.spec.description, "parameters": t.spec.schema} for t in offered]
    assert len(json.dumps(told, ensure_ascii=False).encode()) / 4 <= MOST_TOKENS


@pytest.mark.req("TL-1", "TL-2")
def test_which_tools_are_offered(tmp_path):
    usual = {tool.spec.name for tool in builtin_tools(load(tmp_path, {"HOME": str(tmp_path)}))}
    assert usual == {"read", "list", "grep", "glob", "write", "edit", "patch", "bash", "todoread", "todowrite"}
    without = {tool.spec.name for tool in builtin_tools(settings_in(tmp_path, allow_shell=False))}
    assert without == (usual - {"bash"}) | {tool.spec.name for tool in shell_replacement_tools()}


@pytest.mark.req("TL-3")
def test_every_tool_declares_itself_whole(tmp_path):
    import jsonschema

    for tool in (*builtin_tools(load(tmp_path, {"HOME": str(tmp_path)})), *other_tools()):
        spec = tool.spec
        jsonschema.Draft202012Validator.check_schema(spec.schema)
        assert spec.description.endswith(".")
        assert not set(spec.schema["properties"]) & set(tool.unlisted)
        assert set(tool.unlisted) <= set(tool.accepts["properties"])
        assert "title" not in spec.schema
        read_only = spec.kind in ("read", "search", "think")
        assert spec.effects is not read_only


async def test_a_tool_that_is_not_offered_can_be_called_all_the_same(room):
    host = LocalToolHost([FakeTool("shown")], room.workspace, lambda: [FakeTool("hidden")])
    assert [spec.name for spec in host.specs()] == ["shown"]
    assert (await host.permission(ToolCall("1", "hidden", {}))).title == "use hidden"


async def test_an_offered_tool_goes_before_one_that_is_not(rooms):
    shown, hidden = FakeTool("same"), FakeTool("same")
    made = rooms([shown])
    made.session._tools = LocalToolHost([shown], made.workspace, lambda: [hidden])
    await made.ok("same")
    assert (len(shown.runs), len(hidden.runs)) == (1, 0)


@pytest.mark.req("PM-2")
async def test_the_rules_see_the_tool_that_is_meant_and_the_events_come_in_order(rooms):
    room = rooms(policy=ASK_ALL)
    (room.root / "a.py").write_text("x\n")
    reading = room.session.subscribe()

    async def answer():
        async for envelope in reading:
            if isinstance(envelope.event, PermissionAsked):
                room.session.answer(envelope.event.ask_id, Decision("allow", by="person"))
                return

    answering = asyncio.create_task(answer())
    result = await room.call("cat", {"filename": "a.py"})
    await answering
    assert result.status == "ok"
    kinds = [type(event) for event in room.session.events()]
    assert kinds == [ToolCalled, ToolCalled, PermissionAsked, PermissionDecided, ToolStarted, ToolFinished]
    (asked,) = room.events(PermissionAsked)
    assert [(need.key, need.subject) for need in asked.permission.needs] == [("read", "a.py")]
    assert room.events(ToolStarted)[0].tool == "read"


@pytest.mark.req("PM-1")
async def test_another_name_is_no_way_around_a_rule(rooms):
    room = rooms(policy=Policy(rules=(Rule("*", "*", "allow"), Rule("edit", "*", "deny", "test"))))
    (room.root / "a.py").write_text("x\n")
    for name, given in {
        "write_file": {"filename": "b", "content": "x"},
        "SysBuiltIn.edit_text": {"path": "a.py", "action": "insert", "insertAfter": 0, "newText": "y"},
        "replace_text": {"path": "a.py", "old": "x", "new": "y"},
        "apply_patch": {"patchText": "*** Begin Patch\n*** Add File: b\n+x\n*** End Patch"},
        "str_replace_editor": {"command": "create", "path": "b", "file_text": "x"},
        "append_to_file": {"path": "a.py", "content": "y"},
    }.items():
        assert (await room.call(name, given)).status == "denied", name
    assert (room.root / "a.py").read_text() == "x\n"
    assert not (room.root / "b").exists()


async def test_rules_that_narrow_a_call_stay_with_it_when_it_is_mended(room):
    room.file("a.py", "x\n")
    narrow = (Rule("read", "*", "deny", "the agent"),)
    result = await room.session.call(ToolCall("1", "cat", {}, rules=narrow, raw="{filename: 'a.py'}"))
    assert result.status == "denied"


async def test_what_a_tool_fails_with_is_told_and_so_is_what_was_mended(rooms):
    async def fail(params, context):
        raise ToolError("it rains", code="weather", hint="wait")

    room = rooms([FakeTool("probe", fail)])
    result = await room.call("probe", raw="{a: 1}")
    assert result.status == "failed"
    assert result.for_model == "Error: it rains; wait\n[the call was repaired: names without quotes]"
    assert result.fault.code == "weather"


@pytest.mark.req("TL-10")
async def test_a_large_result_is_cut_in_the_middle_with_a_mark(rooms):
    async def much(params, context):
        return "head\n" + "x" * LIMIT + "\ntail"

    result = await rooms([FakeTool("probe", much)]).ok("probe")
    assert len(result.for_model) <= LIMIT
    assert result.for_model.startswith("head\n")
    assert result.for_model.endswith("\ntail")
    assert "characters left out" in result.for_model


async def test_a_call_that_goes_where_there_is_no_tool(rooms):
    room = rooms([FakeTool("edit")])
    room.session._tools = LocalToolHost([FakeTool("edit")], room.workspace)
    told = await room.fails("str_replace_editor", command="create", path="b", file_text="x")
    assert "needs the tool write, which is not available" in told


@pytest.mark.req("MD-3")
async def test_a_mark_that_stands_for_a_secret_is_not_written_over_it(room):
    (room.root / "a.env").write_text("KEY=secret\n")
    await room.ok("read", path="a.env")
    result = await room.call("write", {"path": "a.env", "content": f"KEY={MASK_MARKER}\nMORE=1\n"})
    assert (result.status, result.fault.code) == ("failed", "withheld")
    assert (room.root / "a.env").read_text() == "KEY=secret\n"
