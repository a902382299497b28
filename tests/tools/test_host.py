"""The tool host: resolving, deciding, running and limiting calls; and the tool specs for the model."""

import asyncio
import json

import pytest

from ostler.app.tool_host import builtin_tools, other_tools
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

MAX_TOKENS = 2500


def load_settings(folder, **security):
    folder.mkdir(exist_ok=True)
    (folder / ".ostler").mkdir(exist_ok=True)
    (folder / ".ostler" / "config.json").write_text(json.dumps({"security": security}))
    return load(folder, {"HOME": str(folder)})


@pytest.mark.req("TL-3")
def test_tool_definitions_are_short(tmp_path):
    offered = builtin_tools(load(tmp_path, {"HOME": str(tmp_path)}))
    specs = [{"name": t.spec.name, "description": t.spec.description, "parameters": t.spec.schema} for t in offered]
    assert len(json.dumps(specs, ensure_ascii=False).encode()) / 4 <= MAX_TOKENS


@pytest.mark.req("TL-1", "TL-2")
def test_which_tools_are_offered(tmp_path):
    usual = {tool.spec.name for tool in builtin_tools(load(tmp_path, {"HOME": str(tmp_path)}))}
    assert usual == {"read", "list", "grep", "glob", "write", "edit", "patch", "bash", "todoread", "todowrite"}
    without = {tool.spec.name for tool in builtin_tools(load_settings(tmp_path, allow_shell=False))}
    assert without == (usual - {"bash"}) | {tool.spec.name for tool in other_tools()} - {"task", "skill"}


@pytest.mark.req("TL-3")
def test_every_tool_has_a_valid_spec(tmp_path):
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


async def test_hidden_tool_can_be_called(harness):
    host = LocalToolHost([FakeTool("shown")], harness.workspace, lambda: [FakeTool("hidden")])
    assert [spec.name for spec in host.specs()] == ["shown"]
    assert (await host.permission(ToolCall("1", "hidden", {}))).title == "use hidden"


async def test_listed_tool_takes_precedence_over_a_hidden_one(make_harness):
    shown, hidden = FakeTool("same"), FakeTool("same")
    harness = make_harness([shown])
    harness.session._tools = LocalToolHost([shown], harness.workspace, lambda: [hidden])
    await harness.ok("same")
    assert (len(shown.runs), len(hidden.runs)) == (1, 0)


@pytest.mark.req("PM-2")
async def test_rules_see_the_resolved_tool_and_events_are_in_order(make_harness):
    harness = make_harness(policy=ASK_ALL)
    (harness.root / "a.py").write_text("x\n")
    subscription = harness.session.subscribe()

    async def answer():
        async for envelope in subscription:
            if isinstance(envelope.event, PermissionAsked):
                harness.session.answer(envelope.event.ask_id, Decision("allow", by="person"))
                return

    answer_task = asyncio.create_task(answer())
    result = await harness.call("cat", {"filename": "a.py"})
    await answer_task
    assert result.status == "ok"
    kinds = [type(event) for event in harness.session.events()]
    assert kinds == [ToolCalled, ToolCalled, PermissionAsked, PermissionDecided, ToolStarted, ToolFinished]
    (asked,) = harness.events(PermissionAsked)
    assert [(need.key, need.subject) for need in asked.permission.needs] == [("read", "a.py")]
    assert harness.events(ToolStarted)[0].tool == "read"


@pytest.mark.req("PM-1")
@pytest.mark.invariant("W6")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("edit", {"path": "src/d/pre-commit", "old": "old", "new": "evil"}),
        ("write", {"path": "src/d/new", "content": "evil"}),
        ("write_chunk", {"path": "src/d/new", "content": "evil", "final": True}),
        ("mkdir", {"path": "src/d/evil"}),
        ("patch", {"patch": "*** Begin Patch\n*** Delete File: src/d/pre-commit\n*** End Patch"}),
        ("read", {"path": "src/d/pre-commit"}),
    ],
)
async def test_folder_that_becomes_a_link_while_an_approval_is_open_is_not_used(make_harness, tool, arguments):
    harness = make_harness(policy=ASK_ALL)
    for folder in ("src/d", ".git/hooks"):
        (harness.root / folder).mkdir(parents=True)
        (harness.root / folder / "pre-commit").write_text(f"old text of {folder}\n")
    subscription = harness.session.subscribe()

    async def replace_and_answer():
        async for envelope in subscription:
            if isinstance(envelope.event, PermissionAsked):
                (harness.root / "src/d").rename(harness.root / "src/e")
                (harness.root / "src/d").symlink_to("../.git/hooks")
                harness.session.answer(envelope.event.ask_id, Decision("allow", by="person"))
                return

    answer_task = asyncio.create_task(replace_and_answer())
    result = await harness.call(tool, arguments)
    await answer_task
    assert result.status == "failed", result
    assert [path.name for path in (harness.root / ".git/hooks").iterdir()] == ["pre-commit"]
    assert (harness.root / ".git/hooks/pre-commit").read_text() == "old text of .git/hooks\n"
    assert "text of .git" not in result.for_model


@pytest.mark.req("PM-1")
async def test_alias_does_not_bypass_a_rule(make_harness):
    harness = make_harness(policy=Policy(rules=(Rule("*", "*", "allow"), Rule("edit", "*", "deny", "test"))))
    (harness.root / "a.py").write_text("x\n")
    for name, arguments in {
        "write_file": {"filename": "b", "content": "x"},
        "SysBuiltIn.edit_text": {"path": "a.py", "action": "insert", "insertAfter": 0, "newText": "y"},
        "replace_text": {"path": "a.py", "old": "x", "new": "y"},
        "apply_patch": {"patchText": "*** Begin Patch\n*** Add File: b\n+x\n*** End Patch"},
        "str_replace_editor": {"command": "create", "path": "b", "file_text": "x"},
        "append_to_file": {"path": "a.py", "content": "y"},
    }.items():
        assert (await harness.call(name, arguments)).status == "denied", name
    assert (harness.root / "a.py").read_text() == "x\n"
    assert not (harness.root / "b").exists()


async def test_rules_of_a_call_are_kept_when_it_is_repaired(harness):
    harness.file("a.py", "x\n")
    narrow = (Rule("read", "*", "deny", "the agent"),)
    result = await harness.session.call(ToolCall("1", "cat", {}, rules=narrow, raw="{filename: 'a.py'}"))
    assert result.status == "denied"


async def test_tool_error_and_repairs_are_reported(make_harness):
    async def fail(params, context):
        raise ToolError("it rains", code="weather", hint="wait")

    harness = make_harness([FakeTool("probe", fail)])
    result = await harness.call("probe", raw="{a: 1}")
    assert result.status == "failed"
    assert result.for_model == "Error: it rains; wait\n[the call was repaired: names without quotes]"
    assert result.fault.code == "weather"


@pytest.mark.req("TL-10")
async def test_large_result_is_truncated_in_the_middle(make_harness):
    async def large_output(params, context):
        return "head\n" + "x" * LIMIT + "\ntail"

    result = await make_harness([FakeTool("probe", large_output)]).ok("probe")
    assert len(result.for_model) <= LIMIT
    assert result.for_model.startswith("head\n")
    assert result.for_model.endswith("\ntail")
    assert "characters omitted" in result.for_model


async def test_alias_of_a_missing_tool_is_rejected(make_harness):
    harness = make_harness([FakeTool("edit")])
    harness.session._tools = LocalToolHost([FakeTool("edit")], harness.workspace)
    specs = await harness.fails("str_replace_editor", command="create", path="b", file_text="x")
    assert "needs the tool write, which is not available" in specs


@pytest.mark.req("MD-3")
async def test_mask_marker_is_not_written_over_a_secret(harness):
    (harness.root / "a.env").write_text("KEY=secret\n")
    await harness.ok("read", path="a.env")
    result = await harness.call("write", {"path": "a.env", "content": f"KEY={MASK_MARKER}\nMORE=1\n"})
    assert (result.status, result.fault.code) == ("failed", "withheld")
    assert (harness.root / "a.env").read_text() == "KEY=secret\n"


@pytest.mark.req("FS-2", "FS-3")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"path": "../secret.txt"}),
        ("read", {"path": "/etc/hosts"}),
        ("list", {"path": ".."}),
        ("glob", {"pattern": "*", "path": "/etc"}),
        ("grep", {"pattern": "x", "path": "../.."}),
        ("write", {"path": "/no/such/file", "content": "x"}),
        ("write", {"path": "../x", "content": "x"}),
        ("edit", {"path": "../x", "old": "a", "new": "b"}),
        ("mkdir", {"path": "/no/such/folder"}),
    ],
)
@pytest.mark.sampled(every=2)
def test_path_outside_the_workspace_is_denied_with_a_code(ostler, tool, arguments):
    done = ostler("tool", "call", "--write", tool, json.dumps(arguments))
    result = json.loads(done.stdout)
    assert (result["status"], result["fault"]["code"]) == ("denied", "outside_workspace")
    assert "/" in result["fault"]["message"]
