"""Broken calls: repaired if the intent is certain, else rejected with advice."""

import json
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.app.tool_host import builtin_tools, other_tools
from ostler.core.display import DisplayText
from ostler.core.errors import ToolError
from ostler.core.events import Notice, ToolCalled
from ostler.core.tool_aliases import resolve_tool_name
from ostler.core.tool_declarations import tool_names
from ostler.core.tools import ToolCall
from ostler.mcp.tool import McpTool
from ostler.settings.load import load
from ostler.testing.fake_tool import FakeTool
from ostler.tools import search
from ostler.tools.call_resolution import resolve_call
from ostler.tools.repair import read_arguments
from ostler.tools.repair_json import LenientJsonError, LenientJsonReader
from ostler.wire.mcp import ServerTool
from ostler.workspace.local_workspace import LocalWorkspace

CORPUS = [
    json.loads(line) for line in (Path(__file__).parents[1] / "data/tools/broken_calls.jsonl").read_text().splitlines()
]
CASES_BY_FAULT = defaultdict(list)
for case in CORPUS:
    CASES_BY_FAULT[case["fault"]].append(case)


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    offered = builtin_tools(load(folder, {"HOME": str(folder)}))
    return {tool.spec.name: tool for tool in (*other_tools(), *offered)}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    actual = LocalWorkspace(str(tmp_path_factory.mktemp("workspace")))
    yield actual
    actual.close()


async def outcome(case, tools, workspace) -> str:
    """Return `repaired`, `rejected`, or a description of the failure."""
    call = ToolCall("call-1", case["tool"], case.get("arguments", {}), raw=case.get("raw", ""))
    try:
        resolved = await resolve_call(call, tools, workspace)
        if "answer" in case:
            await resolved.tool.permission(resolved.params, workspace)
    except ToolError as error:
        expected = case.get("answer")
        if expected is None:
            return f"unexpectedly rejected: {error}"
        missing = [part for part in expected if part not in str(error)]
        return f"the answer lacks {missing}: {error}" if missing or len(str(error)) > 500 else "rejected"
    if "means" not in case:
        return f"taken for {resolved.call.tool} {resolved.call.arguments}"
    actual = {"tool": resolved.call.tool, "arguments": resolved.call.arguments}
    return "repaired" if actual == case["means"] else f"taken for {actual}"


@pytest.mark.req("TL-8")
@pytest.mark.parametrize("fault", CASES_BY_FAULT)
async def test_broken_call_is_repaired_or_rejected_with_advice(fault, tools, workspace):
    failures = [
        (case, output)
        for case in CASES_BY_FAULT[fault]
        if (output := await outcome(case, tools, workspace)) not in ACCEPTED
    ]
    assert failures == []


ACCEPTED = ("repaired", "rejected")


@pytest.mark.req("TL-8")
async def test_share_of_repaired_calls_in_the_corpus(tools, workspace):
    output = Counter([await outcome(case, tools, workspace) for case in CORPUS])
    assert len(CORPUS) >= 300
    assert output["repaired"] + output["rejected"] >= 0.95 * len(CORPUS)
    assert output["repaired"] >= 0.6 * len(CORPUS)


@pytest.mark.req("TL-8")
async def test_no_broken_call_causes_an_internal_error(harness, monkeypatch):
    monkeypatch.setattr(search, "find_ripgrep", lambda *_: None)
    for number, case in enumerate(CORPUS):
        if resolve_tool_name(case["tool"], tool_names()) != "bash":
            result = await harness.call(case["tool"], case.get("arguments"), case.get("raw", ""))
            assert result.status in ("ok", "failed", "denied"), (number, case)
            assert "Internal error in the tool" not in result.for_model, (case, result.for_model)
    assert harness.events(Notice) == []


@pytest.mark.req("TL-8")
async def test_repairs_are_reported_to_model_and_user(harness):
    harness.file("a.py", "x\n")
    result = await harness.call("read", raw="{'path': 'a.py', line: '1',}")
    first, second = harness.events(ToolCalled)
    assert (first.call.arguments, first.call.raw) == ({}, "{'path': 'a.py', line: '1',}")
    assert (second.call.id, second.call.arguments, second.kind) == (first.call.id, {"path": "a.py", "line": 1}, "read")
    repairs = "quotes other than double quotes, names without quotes, an extra comma, line was a string"
    output = f"the call was repaired: {repairs}"
    assert result.for_model.splitlines()[-1] == f"[{output}]"
    assert result.for_human.blocks[-1] == DisplayText(output)


async def test_valid_call_is_not_changed(harness):
    harness.file("a.py", "x\n")
    result = await harness.call("read", {"path": "a.py"}, raw='{"path": "a.py"}')
    assert len(harness.events(ToolCalled)) == 1
    assert "repaired" not in result.for_model
    assert result.for_human.blocks == ()


async def test_calls_of_external_tools_are_repaired_by_their_schema(tmp_path, workspace):
    tool = FakeTool("weather")
    schema = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
    tool.spec = type(tool.spec)("weather", "other", "", {**schema, "required": ["city"]})
    call = ToolCall("1", "weather", {}, raw="{city: 'Oslo', days: '3',}")
    resolved = await resolve_call(call, {"weather": tool}, workspace)
    assert resolved.call.arguments == {"city": "Oslo", "days": 3}


async def test_existing_tool_with_an_alias_name_is_not_translated(workspace):
    tool = FakeTool("edit_text")
    arguments = {"action": "insert", "insertAfter": 0}
    resolved = await resolve_call(ToolCall("1", "edit_text", arguments), {"edit_text": tool}, workspace)
    assert resolved.call.arguments == arguments
    raw = ToolCall("1", "edit_text", {}, raw='{"action": "insert", "insertAfter": 0,}')
    assert (await resolve_call(raw, {"edit_text": tool}, workspace)).call.arguments == arguments


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=4))
@examples(100)
def test_valid_json_is_parsed_without_notes(value):
    reader = LenientJsonReader(json.dumps(value))
    assert reader.read_value() == value
    assert not reader.notes


@given(st.dictionaries(st.sampled_from(["path", "line", "limit", "x"]), JSON, max_size=3), st.data())
@examples(200)
def test_corrupted_arguments_are_repaired_or_rejected(tools, value, data):
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))
    broken = (
        text[:at]
        + data.draw(st.text("{}[]\"'`,:\\ \nabtu0/*#=", max_size=3))
        + text[at + data.draw(st.integers(0, 3)) :]
    )
    try:
        repaired = read_arguments(broken, tools["read"].spec)
    except ToolError as error:
        assert ' as {"path":"src/main.py"}' in str(error)
    else:
        assert isinstance(repaired.arguments, dict)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "{" * 100_000,
        '{"a":' * 50_000,
        '{"a":"' + '\\"' * 200_000,
        "[" + "1," * 100_000,
        "/*" * 100_000,
        "{a" + " " * 300_000,
        '{"a":1}' * 50_000 + "{",
        "'" * 200_001,
        "```json\n" * 50_000,
        "{" + "//" * 200_000,
        '{"' + "a" * 500_000,
        "f()" + " " * 100_000 + "x",
        "await " + "a." * 100_000,
    ],
    ids=lambda text: text[:12],
)
def test_parsing_time_is_bounded(text, tools):
    started = time.process_time()  # CPU time, because the machine may be busy
    with pytest.raises(ToolError):
        read_arguments(text, tools["bash"].spec)
    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a:1}", {"a": 1}),
        ("[1, .5, -0x1F, 1e3, +7, 007, 1_000]", [1, 0.5, -31, 1000.0, 7, 7, 1000]),
        ("{'a': \"it's\", \"b\": 'say \\'hi\\''}", {"a": "it's", "b": "say 'hi'"}),
        ('{"a": "\\u00e9\\n\\t\\/\\b"}', {"a": "é\n\t/\b"}),
    ],
    ids=str,
)
def test_lenient_values(text, value):
    assert LenientJsonReader(text).read_value() == value


def test_error_has_a_position():
    with pytest.raises(LenientJsonError) as caught:
        LenientJsonReader('{"a": 1 "b": 2}').read_value()
    assert caught.value.position == 8


@pytest.mark.parametrize("name", ["server.tool", "mcp__server__tool", "server_tool"])
@pytest.mark.parametrize("arguments", [{"a": "x"}, {"a": None}, {"a": "none", "more": 2}, {"a": "x", "n": 7}])
async def test_valid_call_of_a_server_under_another_name_is_not_changed(workspace, name, arguments):
    properties = {"a": {"type": ["string", "null"]}, "n": {"type": "integer", "maximum": 5}}
    schema = {"type": "object", "properties": properties, "required": ["a"]}
    tool = McpTool(None, ServerTool("tool", "about it", schema), "server_tool", "server", None)
    resolved = await resolve_call(ToolCall("1", name, arguments), {"server_tool": tool}, workspace)
    assert (resolved.call.arguments, resolved.notes) == (arguments, [])
