"""The checker: true to the official schema, sharp about what is wrong, quiet about what is right."""

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
    """A schema without prose, `_meta`, and hints for code generators: what is shipped."""
    if not isinstance(schema, dict):
        return schema
    made = {key: schema[key] for key in PLAIN if key in schema}
    made |= {key: [slim(part) for part in schema[key]] for key in UNIONS if key in schema}
    made |= {key: slim(schema[key]) for key in INNER if key in schema}
    if "properties" in schema:
        made["properties"] = {name: slim(part) for name, part in schema["properties"].items() if name != "_meta"}
    return made


def official():
    whole = json.loads((DATA / "schema.json").read_text())
    return {name: slim(schema) for name, schema in whole["$defs"].items()}


@pytest.mark.req("AC-2")
def test_what_is_shipped_is_the_official_schema():
    assert definitions() == official()
    assert SHIPPED.stat().st_size < 60_000


def recorded(name):
    lines = (DATA / "frames" / f"{name}.jsonl").read_text().splitlines()
    for line in map(json.loads, lines):
        yield ("client" if line["dir"] == "->" else "agent"), json.dumps(line["frame"]).encode()


# What these agents really send beside the protocol; the recorder's own probe is `foo/bar`.
QWEN_MODE = "qwen/notify/session/mode-update"
PROBE = "foo/bar is no method that an agent has"
KNOWN = {
    "auggie": set(),
    "claude-old": {PROBE},
    "gemini": {PROBE},
    "opencode": {PROBE},
    "pi": {PROBE},
    "qwen": {PROBE, *(f"{m} is no method that a client has" for m in ("craft/drainMidTurnQueue", QWEN_MODE))},
}


@pytest.mark.req("AC-7")
@pytest.mark.parametrize("name", KNOWN)
def test_what_real_agents_say_is_held_to_the_protocol(name):
    checker = AcpValidator()
    found = {told for speaker, line in recorded(name) for told in checker.check_line(speaker, line)}
    assert found == KNOWN[name]


def checked(*said):
    checker, found = AcpValidator(), []
    for speaker, frame in said:
        line = frame if isinstance(frame, bytes) else json.dumps({"jsonrpc": "2.0", **frame}).encode()
        found += checker.check_line(speaker, line)
    return found


def update(**fields):
    return ("agent", {"method": "session/update", "params": {"sessionId": "s", "update": fields}})


PROMPT = ("client", {"id": 1, "method": "session/prompt", "params": {"sessionId": "s", "prompt": []}})

WRONG = [
    ([("agent", b"hello")], "this is no JSON"),
    ([("agent", b"42")], "a frame is a JSON object"),
    ([("agent", b'{"method":"_x"}')], '"jsonrpc" is not "2.0"'),
    ([("agent", {})], "a frame has a method, or the id of a request"),
    ([("agent", {"id": 4, "result": {}})], "nothing was asked with the id 4"),
    ([("agent", {"id": 1.5, "method": "fs/read_text_file"})], "fs/read_text_file: the id is no number and no text"),
    ([("agent", {"method": "session/new"})], "session/new is no method that a client has"),
    ([PROMPT, ("agent", {"id": 1})], "the answer to session/prompt has no result and no error"),
    ([PROMPT, ("agent", {"id": 1, "result": {}})], "the answer to session/prompt: it has no stopReason"),
    (
        [PROMPT, ("agent", {"id": 1, "result": {"stopReason": "bored"}})],
        "the answer to session/prompt: stopReason is 'bored', which is none of end_turn, max_tokens",
    ),
    ([PROMPT, ("agent", {"id": 1, "error": "x"})], "the error that answers session/prompt: it is not object"),
    ([update(sessionUpdate="dance")], "session/update: update has sessionUpdate 'dance', which is none of user_mess"),
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


@pytest.mark.parametrize(("said", "told"), WRONG)
def test_what_is_wrong_is_told(said, told):
    found = checked(*said)
    assert len(found) == 1
    assert found[0].startswith(told)


def test_what_is_right_passes():
    call = {"toolCallId": "c", "title": "t", "content": [{"type": "diff", "path": "/a", "newText": "x"}]}
    assert not checked(
        PROMPT,
        update(sessionUpdate="tool_call", **call, _meta={"anything": 1}),
        ("agent", {"method": "_own/thing"}),
        ("client", {"method": "$/cancel_request", "params": {"requestId": 1}}),
        ("agent", {"id": 1, "result": {"stopReason": "end_turn"}}),
        ("agent", {"id": 1, "method": "terminal/create", "params": {"sessionId": "s", "command": "ls"}}),
        ("client", {"id": 1, "result": {"terminalId": "t"}}),
    )
