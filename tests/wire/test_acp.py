"""ACP structs: lenient decoding, encoding that matches the schema, and unknown data preserved."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.wire import acp, acp_requests, acp_updates
from ostler.wire.acp_decode import decode_lenient
from ostler.wire.acp_tool_calls import ToolCallTracker
from ostler.wire.acp_updates import AcpToolCall, AcpToolCallUpdate, UnknownUpdate, decode_update
from ostler.wire.acp_validator import AcpValidator

FRAMES = Path(__file__).parents[1] / "data" / "acp" / "frames"
AGENTS = sorted(path.stem for path in FRAMES.iterdir())


def recorded_lines(name):
    return [json.loads(line) for line in (FRAMES / f"{name}.jsonl").read_text().splitlines()]


def updates(name):
    frames = (line["frame"] for line in recorded_lines(name))
    return [frame["params"]["update"] for frame in frames if frame.get("method") == "session/update"]


@pytest.mark.req("AC-2", "AC-7")
@pytest.mark.parametrize("name", AGENTS)
def test_recorded_updates_survive_a_round_trip(name):
    for raw in updates(name):
        update = decode_update(raw)
        assert not isinstance(update, UnknownUpdate)
        written = json.loads(msgspec.json.encode(update))
        assert decode_update(written) == update
        line = json.dumps(
            {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": written}}
        )
        assert AcpValidator().check_line("agent", line.encode()) == []


@pytest.mark.req("AC-7")
@pytest.mark.parametrize("name", AGENTS)
def test_recorded_responses_are_decoded(name):
    methods, sessions = {}, 0
    for line in recorded_lines(name):
        frame = line["frame"]
        if line["dir"] == "->" and "method" in frame:
            methods[frame.get("id")] = frame["method"]
        elif line["dir"] == "<-" and "result" in frame:
            method = methods[frame["id"]]
            if method == "initialize":
                info = decode_lenient(acp_requests.InitializeResponse, frame["result"])
                assert (info.protocol_version, bool(info.agent_info.name)) == (1, True)
                assert info.agent_capabilities.load_session is True
            elif method == "session/new":
                opened = decode_lenient(acp_requests.OpenSessionResponse, frame["result"])
                sessions += bool(opened.session_id)
                assert opened.modes or opened.config_options or opened.models
            elif method == "session/prompt":
                assert decode_lenient(acp_requests.PromptResponse, frame["result"]).stop_reason in (
                    "end_turn",
                    "cancelled",
                )
    assert sessions or name == "auggie"


@pytest.mark.req("AC-2")
@pytest.mark.parametrize(
    "raw", [{"sessionUpdate": "compaction_update", "status": "x"}, {"sessionUpdate": None}, {}, {"sessionUpdate": [1]}]
)
def test_unknown_update_is_kept_unchanged(raw):
    update = decode_update(raw)
    assert isinstance(update, UnknownUpdate)
    assert update.raw == raw


def test_update_that_is_not_an_object_is_kept():
    assert decode_update([1, 2]) == UnknownUpdate("", {"update": [1, 2]})


def test_meta_is_kept_separate():
    raw = {"sessionId": "real", "path": "/a", "_meta": {"sessionId": "forged", "path": "/etc/passwd"}}
    request = decode_lenient(acp_requests.ReadTextFileRequest, raw)
    assert (request.session_id, request.path, request.meta) == ("real", "/a", raw["_meta"])


def test_invalid_fields_are_dropped():
    raw = {
        "sessionUpdate": "tool_call",
        "toolCallId": "c",
        "title": 7,
        "kind": "brand_new_kind",
        "locations": [{"path": "/a", "line": "seven"}, 3, {"path": "/b", "line": 2}],
        "content": [{"type": "content", "content": {"type": "hologram", "text": "hi"}}, {"type": 1}],
    }
    call = decode_update(raw)
    assert (call.tool_call_id, call.title, call.kind) == ("c", None, "brand_new_kind")
    assert [(location.path, location.line) for location in call.locations] == [("/a", None), ("/b", 2)]
    assert [item.type for item in call.content] == ["content", ""]
    assert call.content[0].content.type == "hologram"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KINDS = [
    "tool_call",
    "plan",
    "available_commands_update",
    "config_option_update",
    "usage_update",
    "agent_message_chunk",
]
NAMES = ["toolCallId", "content", "locations", "entries", "availableCommands", "configOptions", "used", "cost", "_meta"]


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(NAMES), JSON | st.lists(JSON)))
@examples(150)
def test_any_update_can_be_decoded(kind, fields):
    update = decode_update({**fields, "sessionUpdate": kind})
    assert not isinstance(update, UnknownUpdate)


def test_tool_call_is_merged_from_its_updates():
    calls = ToolCallTracker()
    tool_call = {"toolCallId": "c", "title": "Run ls", "kind": "execute", "status": "pending"}
    permission_request = decode_lenient(
        acp_requests.RequestPermissionRequest, {"sessionId": "s", "toolCall": tool_call, "options": []}
    )
    calls.upsert(permission_request.tool_call)
    calls.upsert(
        AcpToolCallUpdate("c", status="in_progress", content=(acp.ToolCallContent("terminal", terminal_id="t"),))
    )
    calls.upsert(AcpToolCall("c", title="Run ls -l"))
    call = calls.upsert(AcpToolCallUpdate("c", status="completed", raw_output={"code": 0}))
    assert (call.title, call.kind, call.status, call.raw_output) == ("Run ls -l", "execute", "completed", {"code": 0})
    assert call.content[0].terminal_id == "t"
    assert calls.get("other") is None


def test_config_choices_are_ungrouped():
    raw = {"id": "model", "name": "Model", "type": "select", "currentValue": "a"}
    grouped = [{"group": "g", "name": "G", "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}]}]
    option = decode_lenient(acp.SessionConfigOption, {**raw, "options": grouped})
    assert [choice.value for choice in option.choices] == ["a", "b"]
    assert [
        choice.value
        for choice in decode_lenient(acp.SessionConfigOption, {**raw, "options": grouped[0]["options"]}).choices
    ] == [
        "a",
        "b",
    ]


REQUESTS = [
    ("client", "initialize", acp_requests.InitializeRequest(1, client_info=acp_requests.Implementation("ostler", "0"))),
    ("client", "session/new", acp_requests.OpenSessionParams("/w", ())),
    (
        "client",
        "session/load",
        acp_requests.OpenSessionParams("/w", (acp.AcpMcpServer("m", command="x", args=(), env=()),), session_id="s"),
    ),
    ("client", "session/prompt", acp_requests.PromptRequest("s", (acp.text_content("hi"),))),
    ("client", "session/set_mode", acp_requests.SetSessionModeRequest("s", "plan")),
    ("client", "session/set_config_option", acp_requests.SetSessionConfigOptionRequest("s", "model", "m")),
    ("client", "session/set_config_option", acp_requests.SetSessionConfigOptionRequest("s", "fast", True, "boolean")),
    ("client", "session/list", acp_requests.ListSessionsRequest("/w")),
    (
        "agent",
        "session/request_permission",
        acp_requests.RequestPermissionRequest(
            "s", acp.ToolCallFields("c", "Edit"), (acp.PermissionOption("y", "Yes", "allow_once"),)
        ),
    ),
    ("agent", "fs/read_text_file", acp_requests.ReadTextFileRequest("s", "/w/a", 1, 10)),
    ("agent", "fs/write_text_file", acp_requests.WriteTextFileRequest("s", "/w/a", "")),
    ("agent", "terminal/create", acp_requests.CreateTerminalRequest("s", "ls", ("-l",), (acp.EnvVariable("A", "b"),))),
    ("agent", "terminal/kill", acp_requests.TerminalRef("s", "t")),
    ("agent", "elicitation/create", {"message": "who?", "mode": "url", "url": "https://x", "elicitationId": "e"}),
]


@pytest.mark.req("AC-2")
@pytest.mark.parametrize(("sender", "method", "params"), REQUESTS)
def test_requests_match_the_schema(sender, method, params):
    if isinstance(params, dict):
        params = {**params, "sessionId": "s"}
    frame = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    assert AcpValidator().check_line(sender, frame) == []


RESPONSES = [
    (
        "agent",
        "initialize",
        acp_requests.InitializeResponse(
            1, auth_methods=(acp_requests.AuthMethod("a", "A"),), agent_info=acp_requests.Implementation("o", "0")
        ),
    ),
    (
        "agent",
        "session/new",
        acp_requests.OpenSessionResponse("s", acp.SessionModeState("a", (acp.SessionMode("a", "A"),))),
    ),
    (
        "agent",
        "session/load",
        acp_requests.OpenSessionResponse(
            config_options=(
                acp.SessionConfigOption("m", "Model", "select", "a", (acp.SessionConfigChoice("A", "a"),), "model"),
            )
        ),
    ),
    ("agent", "session/prompt", acp_requests.PromptResponse("end_turn")),
    (
        "agent",
        "session/list",
        acp_requests.ListSessionsResponse((acp_requests.AcpSessionInfo("s", "/w", "t"),), "next"),
    ),
    ("client", "session/request_permission", acp_requests.selected_outcome("yes")),
    ("client", "session/request_permission", acp_requests.cancelled_outcome()),
]


@pytest.mark.req("AC-2")
@pytest.mark.parametrize(("sender", "method", "result"), RESPONSES)
def test_responses_match_the_schema(sender, method, result):
    from ostler.wire.acp_schema import find_problems
    from ostler.wire.acp_validator import _response_schemas

    assert find_problems(_response_schemas()[sender, method], json.loads(msgspec.json.encode(result))) == []


def test_every_kind_of_update_can_be_encoded():
    updates = [
        acp_updates.PlanUpdate((acp.PlanEntry("x", "high", "pending"),)),
        acp_updates.AvailableCommandsUpdate(
            (acp.AvailableCommand("init", "start", acp.AvailableCommandInput("what")),)
        ),
        acp_updates.CurrentModeUpdate("plan"),
        acp_updates.SessionInfoUpdate("title"),
        acp_updates.UsageUpdate(1, 2, acp_updates.Cost(0.5, "USD")),
        acp_updates.AgentThoughtChunk(acp.text_content("hm"), "m1"),
        AcpToolCall("c", "Edit", "edit", "pending", (acp.ToolCallContent("diff", path="/a", new_text="x"),)),
    ]
    for update in updates:
        frame = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}
        assert AcpValidator().check_line("agent", msgspec.json.encode(frame)) == []
        assert decode_update(json.loads(msgspec.json.encode(update))) == update
