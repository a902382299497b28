"""Agents that violate the protocol: the turn always ends, with an explanation where it fails."""

import asyncio
import sys
import textwrap

import pytest

from ostler.core.errors import BackendError
from ostler.core.events import MessageDone, Notice
from ostler.policy.verdict import Policy
from ostler.testing.session_fixture import run_turn

pytestmark = pytest.mark.req("AC-5")

TIMEOUT = 120
AGENT = """
import json, os, sys, time
out = sys.stdout.buffer

def send(frame):
    out.write(frame if isinstance(frame, bytes) else json.dumps(frame).encode() + b"\\n")
    out.flush()

def answer(number, result):
    send({"jsonrpc": "2.0", "id": number, "result": result})

def update(value):
    send({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": value}})

def ask(number, method, params):
    send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

def say(text):
    update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})

def answers(count):
    found = []
    while len(found) < count:
        frame = json.loads(sys.stdin.readline())
        found += [frame] if "method" not in frame else []
    return found

for line in sys.stdin:
    request = json.loads(line)
    number, method = request.get("id"), request.get("method")
    if method == "initialize":
        answer(number, {"protocolVersion": 1})
    elif method == "session/new":
        answer(number, {"sessionId": "s"})
    elif method == "session/prompt":
        ACTIONS
        say("hi")
        answer(number, {"stopReason": "end_turn"})
"""


def agent(actions):
    """Return the command of an agent that performs these actions in its turn."""
    body = textwrap.indent(textwrap.dedent(actions).strip(), " " * 8).strip()
    return [sys.executable, "-c", AGENT.replace("ACTIONS", body)]


INVALID_UPDATES = """
    for value in (
        5, None, [], "x", {}, {"sessionUpdate": 5}, {"sessionUpdate": "agent_message_chunk"},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": 5}},
        {"sessionUpdate": "tool_call"},
        {"sessionUpdate": "tool_call", "toolCallId": 5, "title": [], "content": [5, {"type": "diff"}]},
        {"sessionUpdate": "tool_call_update", "toolCallId": "x", "status": 9, "content": "s"},
        {"sessionUpdate": "plan", "entries": [5, {}]},
        {"sessionUpdate": "available_commands_update", "availableCommands": 5},
        {"sessionUpdate": "usage_update", "used": "x", "size": 1e308, "cost": {"amount": "much"}},
        {"sessionUpdate": "config_option_update", "configOptions": [{}]},
        {"sessionUpdate": "current_mode_update"},
    ):
        update(value)
    for params in ([1], None, {}, {"sessionId": "another's", "update": {"sessionUpdate": "agent_message_chunk"}}):
        send({"jsonrpc": "2.0", "method": "session/update", "params": params})
"""
INVALID_FRAMES = """
    send(b"[" * 300000 + b"\\n" + b'{"a":' * 300000 + b"\\n" + bytes(range(256)) + b"\\n42\\nnull\\n")
    for name in (None, 99, "x", 1.5, [], {}):
        answer(name, {})
"""
INVALID_REQUESTS = """
    requests = [
        ("session/request_permission", {}),
        ("session/request_permission", {"sessionId": "s", "toolCall": 5, "options": 5}),
        ("session/request_permission", {"toolCall": {"toolCallId": "x"}, "options": [5, {"optionId": 3}]}),
        ("fs/read_text_file", {}),
        ("fs/read_text_file", {"path": "\\0", "line": -5, "limit": "x"}),
        ("fs/write_text_file", {"path": "a"}),
        ("fs/write_text_file", {"path": "../../x", "content": "x"}),
        ("terminal/create", {"command": "\\0", "args": 7, "env": [3]}),
        ("terminal/output", {"terminalId": "nope"}),
        ("terminal/kill", {"terminalId": []}),
        ("elicitation/create", {"message": 5, "requestedSchema": 7}),
        ("", {}),
    ]
    for name, (method, params) in enumerate(requests):
        ask(name, method, params)
    refused = [frame for frame in answers(len(requests)) if "error" in frame]
    say("" if all(frame["error"]["message"] for frame in refused) else "an error without a message ")
"""
FLOOD = """
    for name in range(3000):
        ask(name, "fs/read_text_file", {"sessionId": "s", "path": "/nowhere/%d" % name})
    answers(3000)
"""


@pytest.mark.parametrize(
    "hostile",
    [INVALID_UPDATES, INVALID_FRAMES, INVALID_REQUESTS, FLOOD],
    ids=["invalid updates", "invalid frames", "invalid requests", "flood"],
)
async def test_turn_survives(echo, hostile):
    session = await echo.open(command=agent(hostile), policy=Policy(interactive=False))
    events, ended = await asyncio.wait_for(run_turn(session, "go"), TIMEOUT)
    assert (ended.reason, ended.fault) == ("done", None)
    assert [event.message.text for event in events if isinstance(event, MessageDone)][-1].endswith("hi")


async def test_unknown_kinds_are_reported_a_limited_number_of_times(echo):
    session = await echo.open(command=agent("for n in range(500): update({'sessionUpdate': 'k%d' % n})"))
    events, _ = await run_turn(session, "go")
    assert len([event for event in events if isinstance(event, Notice)]) == 20


@pytest.mark.parametrize(
    ("hostile", "message"),
    [
        ("send(b'x' * (65 << 20))", "broke the protocol: the other side sent a line of more than"),
        ("send(b'{\"jsonrpc\"'); os._exit(3)", "ended with exit code 3"),
        ("os.kill(os.getpid(), 9)", "ended with exit code 137"),
        ("os.close(1); time.sleep(1000)", "closed its output but is still running"),
    ],
)
async def test_failed_turn_is_explained(echo, hostile, message):
    session = await echo.open(command=agent(hostile))
    _, ended = await asyncio.wait_for(run_turn(session, "go"), TIMEOUT)
    assert ended.reason == "failed"
    assert message in str(ended.fault)


@pytest.mark.parametrize("answer", ["[1]", "None", "7", '{"protocolVersion": "1"}', '{"protocolVersion": 2}'])
async def test_unsupported_version_is_refused(echo, answer):
    code = AGENT.replace('{"protocolVersion": 1}', answer).replace("ACTIONS", "pass")
    with pytest.raises(BackendError, match="uses protocol version"):
        await echo.open(command=[sys.executable, "-c", code])
