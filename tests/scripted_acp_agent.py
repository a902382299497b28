"""ACP agents made of a few lines of Python, for tests that need an agent with a particular fault or habit."""

import sys
import textwrap
from collections.abc import Mapping

_SOURCE = """
import json, os, sys, threading, time
lock = threading.Lock()

def send(frame):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\\n")
        sys.stdout.flush()

def answer(number, result):
    send({"id": number, "result": result})

def update(update_kind, /, **fields):
    params = {"sessionId": session, "update": {"sessionUpdate": update_kind, **fields}}
    send({"method": "session/update", "params": params})

def say(text, kind="agent_message_chunk", **fields):
    update(kind, content={"type": "text", "text": text}, **fields)

def receive():
    line = sys.stdin.readline()
    return json.loads(line) if line else None

def ask(method, **params):
    send({"id": "ask", "method": method, "params": {"sessionId": session, **params}})
    while True:
        frame = receive()
        if frame is None or "method" not in frame:
            return frame

def request_permission(call, options=("allow_once", "reject_once")):
    global calls
    calls += 1
    options = [{"optionId": kind, "name": kind, "kind": kind} for kind in options]
    outcome = ask("session/request_permission", toolCall={"toolCallId": f"call-{calls}", **call}, options=options)
    return outcome["result"]["outcome"].get("optionId", "cancelled")

session, prompts, new_params, calls = "s", [], {}, 0
while True:
    request = receive()
    if request is None:
        break
    number, method, params = request.get("id"), request.get("method"), request.get("params")
    if method == "initialize":
        answer(number, INITIALIZE)
    elif method in ("session/new", "session/load", "session/resume"):
        new_params = params
        session = params.get("sessionId") or session
        result = {"sessionId": session} if method == "session/new" else {}
        ON_OPEN
        answer(number, result)
        AFTER_OPEN
    elif method == "session/prompt":
        prompts.append("".join(block.get("text", "") for block in params["prompt"]))
        reason = "end_turn"
        ON_PROMPT
        answer(number, {"stopReason": reason})
    elif number is not None:
        UNKNOWN
ON_END
"""
_NOT_FOUND = 'send({"id": number, "error": {"code": -32601, "message": "Method not found"}})'


def scripted_agent(
    on_prompt: str = 'say("hi")',
    *,
    capabilities: Mapping[str, object] | None = None,
    agent_info: Mapping[str, str] | None = None,
    on_open: str = "pass",
    after_open: str = "pass",
    unknown: str = _NOT_FOUND,
    on_end: str = "pass",
) -> list[str]:
    """Return the command of an agent that runs these lines; they can use `say`, `update`, `ask`, `params` …"""
    initialize: dict[str, object] = {"protocolVersion": 1, "agentCapabilities": dict(capabilities or {})}
    if agent_info:
        initialize["agentInfo"] = dict(agent_info)
    source = _SOURCE.replace("INITIALIZE", repr(initialize))
    parts = {"ON_OPEN": on_open, "AFTER_OPEN": after_open, "ON_PROMPT": on_prompt, "UNKNOWN": unknown, "ON_END": on_end}
    for name, code in parts.items():
        indent = 0 if name == "ON_END" else 8
        source = source.replace(f"\n{' ' * indent}{name}\n", f"\n{_block(code, indent)}\n")
    return [sys.executable, "-c", source]


def _block(code: str, indent: int) -> str:
    return textwrap.indent(textwrap.dedent(code).strip(), " " * indent)
