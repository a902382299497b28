"""The ACP validator: matches the official schema, reports violations and accepts valid frames."""

import json
from pathlib import Path

import pytest

import ostler.wire
from ostler.wire.acp_schema import definitions
from ostler.wire.acp_validator import AcpValidator

DATA = Path(__file__).parents[1] / "data" / "acp"
SHIPPED = Path(ostler.wire.__file__).with_name("acp_schema.json")

UNIONS, INNER = ("anyOf", "oneOf", "allOf"), ("items", "not", "additionalProperties")
PLAIN = ("type", "required", "enum", "const", "minimum", "$ref", "x-side", "x-method")


def slim(schema):
    """Return a schema as shipped: without descriptions, `_meta`, and hints for code generators."""
    if not isinstance(schema, dict):
        return schema
    result = {key: schema[key] for key in PLAIN if key in schema}
    result |= {key: [slim(part) for part in schema[key]] for key in UNIONS if key in schema}
    result |= {key: slim(schema[key]) for key in INNER if key in schema}
    if "properties" in schema:
        result["properties"] = {name: slim(part) for name, part in schema["properties"].items() if name != "_meta"}
    return result


def official():
    schema_file = json.loads((DATA / "schema.json").read_text())
    return {name: slim(schema) for name, schema in schema_file["$defs"].items()}


@pytest.mark.req("AC-2")
def test_shipped_schema_is_the_official_one():
    assert definitions() == official()
    assert SHIPPED.stat().st_size < 60_000


def recorded(name):
    lines = (DATA / "frames" / f"{name}.jsonl").read_text().splitlines()
    for line in map(json.loads, lines):
        yield ("client" if line["dir"] == "->" else "agent"), json.dumps(line["frame"]).encode()


# Known violations in the recordings; the recorder itself sends the probe `foo/bar`.
QWEN_MODE = "qwen/notify/session/mode-update"
PROBE = "foo/bar is not a method of an agent"
KNOWN = {
    "auggie": set(),
    "claude-old": {PROBE},
    "gemini": {PROBE},
    "opencode": {PROBE},
    "pi": {PROBE},
    "qwen": {PROBE, *(f"{m} is not a method of a client" for m in ("craft/drainMidTurnQueue", QWEN_MODE))},
}


@pytest.mark.req("AC-7")
@pytest.mark.parametrize("name", KNOWN)
def test_recorded_connections_have_only_known_violations(name):
    validator = AcpValidator()
    problems = {problem for sender, line in recorded(name) for problem in validator.check_line(sender, line)}
    assert problems == KNOWN[name]


def problems_in(*frames):
    validator, problems = AcpValidator(), []
    for sender, frame in frames:
        line = frame if isinstance(frame, bytes) else json.dumps({"jsonrpc": "2.0", **frame}).encode()
        problems += validator.check_line(sender, line)
    return problems


def update(**fields):
    return ("agent", {"method": "session/update", "params": {"sessionId": "s", "update": fields}})


PROMPT = ("client", {"id": 1, "method": "session/prompt", "params": {"sessionId": "s", "prompt": []}})

VIOLATIONS = [
    ([("agent", b"hello")], "not valid JSON"),
    ([("agent", b"42")], "a frame must be a JSON object"),
    ([("agent", b'{"method":"_x"}')], '"jsonrpc" is not "2.0"'),
    ([("agent", {})], "a frame must have a method or a request id"),
    ([("agent", {"id": 4, "result": {}})], "no open request has the id 4"),
    (
        [("agent", {"id": 1.5, "method": "fs/read_text_file"})],
        "fs/read_text_file: the id must be an integer or a string",
    ),
    ([("agent", {"method": "session/new"})], "session/new is not a method of a client"),
    ([PROMPT, ("agent", {"id": 1})], "the answer to session/prompt has no result and no error"),
    ([PROMPT, ("agent", {"id": 1, "result": {}})], "the answer to session/prompt: it has no stopReason"),
    (
        [PROMPT, ("agent", {"id": 1, "result": {"stopReason": "bored"}})],
        "the answer to session/prompt: stopReason is 'bored'; expected one of end_turn, max_tokens",
    ),
    ([PROMPT, ("agent", {"id": 1, "error": "x"})], "the error that answers session/prompt: it is not object"),
    ([update(sessionUpdate="dance")], "session/update: update has sessionUpdate 'dance'; expected one of user_mess"),
    ([update(sessionUpdate="tool_call", title="x")], "session/update: update has no toolCallId"),
    (
        [update(sessionUpdate="plan", entries=[{"content": 1, "priority": "high", "status": "pending"}])],
        "session/update: update.entries[0].content is not string",
    ),
    ([("client", {"id": 2, "method": "session/new", "params": {"cwd": "/"}})], "session/new: it has no mcpServers"),
    (
        [("agent", {"id": 2, "method": "fs/read_text_file", "params": {"sessionId": "s", "path": "/", "line": -1}})],
        "fs/read_text_file: line is less than 0",
    ),
]


@pytest.mark.parametrize(("frames", "message"), VIOLATIONS)
def test_violations_are_reported(frames, message):
    problems = problems_in(*frames)
    assert len(problems) == 1
    assert problems[0].startswith(message)


def test_valid_frames_pass():
    call = {"toolCallId": "c", "title": "t", "content": [{"type": "diff", "path": "/a", "newText": "x"}]}
    assert not problems_in(
        PROMPT,
        update(sessionUpdate="tool_call", **call, _meta={"anything": 1}),
        ("agent", {"method": "_own/thing"}),
        ("client", {"method": "$/cancel_request", "params": {"requestId": 1}}),
        ("agent", {"id": 1, "result": {"stopReason": "end_turn"}}),
        ("agent", {"id": 1, "method": "terminal/create", "params": {"sessionId": "s", "command": "ls"}}),
        ("client", {"id": 1, "result": {"terminalId": "t"}}),
    )
