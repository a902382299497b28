"""An MCP server for tests, as a script without dependencies: `fake_mcp_server.py [--era E] [--mode M] [--folder F]`.

It writes the frames that it receives to `F/frames.jsonl`, and its process id to `F/pids`. It reads the tools that it
adds to its own from `F/tools.json`.
"""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

MODES = ["ok", "exit", "never", "garbage", "flood", "pages", "mute", "endless", "relist", "deep", "stubborn", "eager"]
MODES += ["picky"]
parser = argparse.ArgumentParser()
parser.add_argument("--era", default="both", choices=["modern", "legacy", "both", "silent", "fragile"])
parser.add_argument("--mode", default="ok", choices=MODES)
parser.add_argument("--folder", default="")
parser.add_argument("--name", default="fake")
parser.add_argument("--instructions", default="")
parser.add_argument("--offers", action="store_true")
parser.add_argument("--ttl", type=int)
args = parser.parse_args()

MODERN = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
TOOLS = [
    {
        "name": "echo",
        "description": "Echo a text.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
    {"name": "slow", "description": "Report progress.", "inputSchema": {"type": "object"}},
    {"name": "wait", "description": "Wait until cancelled.", "inputSchema": {"type": "object"}},
    {"name": "crash", "description": "End the server.", "inputSchema": {"type": "object"}},
    {
        "name": "crash_once",
        "description": "End the server once.",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    },
    {"name": "fail", "description": "Fail.", "inputSchema": {"type": "object"}},
    {"name": "refuse", "description": "Answer with a protocol error.", "inputSchema": {"type": "object"}},
    {"name": "environment", "description": "Return the environment.", "inputSchema": {"type": "object"}},
    {"name": "picture", "description": "Return many kinds of content.", "inputSchema": {"type": "object"}},
    {"name": "big", "description": "Return a giant text.", "inputSchema": {"type": "object"}},
    {"name": "structured", "description": "Return structured content only.", "inputSchema": {"type": "object"}},
    {"name": "ask", "description": "Ask the user.", "inputSchema": {"type": "object"}},
    {"name": "grow", "description": "Add a tool and announce it.", "inputSchema": {"type": "object"}},
]


def folder():
    return Path(args.folder) if args.folder else None


def send(frame):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
    sys.stdout.flush()


def reply(request_id, result):
    send({"id": request_id, "result": result})


def fail(request_id, code, message, data=None):
    send({"id": request_id, "error": {"code": code, "message": message, **({"data": data} if data else {})}})


def tools():
    extra = folder() / "tools.json" if folder() else None
    return [*TOOLS, *(json.loads(extra.read_text()) if extra and extra.exists() else [])]


def listing(params):
    if args.mode == "endless":
        start = int(params.get("cursor", 0))
        return {"tools": [{"name": f"t{start}"}], "nextCursor": str(start + 1)}
    if args.mode == "relist":
        send({"method": "notifications/tools/list_changed", "params": {}})
    if args.mode == "eager":
        send({"id": "early", "method": "elicitation/create", "params": QUESTION})
    if args.mode == "picky" and "elicitation" not in params["_meta"].get(CAPABILITIES, {}):
        return {"tools": [tool for tool in tools() if tool["name"] != "ask"]}
    if args.ttl is not None:
        return {"tools": tools(), "ttlMs": args.ttl, "cacheScope": "private"}
    if args.mode != "pages":
        return {"tools": tools()}
    start = int(params.get("cursor", 0))
    page = {"tools": tools()[start : start + 3]}
    return {**page, "nextCursor": str(start + 3)} if start + 3 < len(tools()) else page


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}


def call(request_id, params, is_modern):
    name, arguments = params["name"], params.get("arguments", {})
    done = {"resultType": "complete"} if is_modern else {}
    token = params.get("_meta", {}).get("progressToken")
    if name == "echo":
        return reply(request_id, {**done, **text(f"{args.name}: {arguments['text']}")})
    if name == "slow":
        for step in range(1, 4):
            time.sleep(0.3)
            progress = {"progressToken": token, "progress": step, "total": 3, "message": f"step {step}"}
            send({"method": "notifications/progress", "params": progress})
        return reply(request_id, {**done, **text("finished")})
    if name == "wait":
        return None
    if name == "crash" or (name == "crash_once" and not (folder() / "crashed").exists()):
        if folder():
            (folder() / "crashed").touch()
        sys.stderr.write("going down\n")
        sys.stderr.flush()
        os._exit(7)
    if name == "crash_once":
        return reply(request_id, {**done, **text("survived")})
    if name == "fail":
        return reply(request_id, {**done, **text("it failed", isError=True, structuredContent={"reason": "no disk"})})
    if name == "refuse":
        return fail(request_id, -32602, "no such argument")
    if name == "environment":
        return reply(request_id, {**done, **text(json.dumps({**os.environ, "CWD": os.getcwd()}))})
    if name == "picture":
        content = [
            {"type": "text", "text": "hello"},
            {"type": "image", "mimeType": "image/png", "data": "aGk="},
            {"type": "image", "mimeType": "image/tiff", "data": "aGk="},
            {"type": "audio", "mimeType": "audio/wav", "data": "aGk="},
            {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "file:///b.bin", "blob": "aGk=", "mimeType": "application/zip"}},
            {"type": "resource_link", "uri": "file:///c", "name": "c"},
            *([{"type": "resource_link", "uri": "memo://one", "name": "memo"}] if args.offers else []),
            {"type": "hologram"},
        ]
        return reply(request_id, {**done, "content": content, "structuredContent": {"text": "hello"}})
    if name == "big":
        return reply(request_id, {**done, **text("x" * 30_000_000)})
    if name == "structured":
        return reply(request_id, {**done, "content": [], "structuredContent": {"answer": 42}})
    if name == "ask":
        return ask(request_id, params, is_modern)
    if name == "connect":
        if not (opened := folder() / "opened").exists():
            url = {
                "mode": "url",
                "url": "https://example.com/connect",
                "elicitationId": "1",
                "message": "Connect first",
            }
            opened.touch()
            return fail(request_id, -32042, "This needs a connection", {"elicitations": [url]})
        return reply(request_id, {**done, **text("connected")})
    if name == "ask_forever":
        return ask_forever(request_id, is_modern)
    if name == "grow":
        grown = {"name": "grown", "description": "New.", "inputSchema": {"type": "object"}}
        TOOLS.append(grown)
        send({"method": "notifications/tools/list_changed", "params": {}})
        return reply(request_id, {**done, **text("grew")})
    return fail(request_id, -32602, f"unknown tool {name}")


QUESTION = {
    "mode": "form",
    "message": "Which colour?",
    "requestedSchema": {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]},
}


def answer_text(value, kind):
    return text(value) if kind == "content" else {"messages": [{"role": "user", "content": text(value)["content"][0]}]}


def ask(request_id, params, is_modern, kind="content"):
    if not is_modern:
        send({"id": "question", "method": "elicitation/create", "params": QUESTION})
        while True:
            frame = read()
            if frame.get("id") == "question":
                return reply(request_id, answer_text(json.dumps(frame.get("result", frame.get("error"))), kind))
    if "inputResponses" not in params:
        requests = {"colour": {"method": "elicitation/create", "params": QUESTION}}
        result = {"resultType": "input_required", "inputRequests": requests, "requestState": "state-1"}
        return reply(request_id, result)
    assert params["requestState"] == "state-1"
    return reply(
        request_id, {"resultType": "complete", **answer_text(json.dumps(params["inputResponses"]["colour"]), kind)}
    )


RESOURCES = [
    {"uri": "memo://one", "name": "first memo"},
    {"uri": "memo://with space", "name": "second"},
    {"uri": "memo://\x1b[2J", "name": "\x1b]0;owned\x07evil"},
]
PROMPTS = [
    {"name": "plain", "description": "No arguments. \x1b[2J"},
    {"name": "review", "description": "Review.", "arguments": [{"name": "code", "required": True}]},
    {"name": "mix", "arguments": [{"name": "a", "required": True}, {"name": "b"}, {"name": "c"}]},
    {"name": "empty"},
    {"name": "ask me"},
]
CONTENTS = {
    "memo://one": {"text": "remember the milk"},
    "memo://with space": {"text": "spaced"},
    "memo://image": {"mimeType": "image/png", "blob": "aGk="},
    "memo://zip": {"mimeType": "application/zip", "blob": "aGk="},
    "memo://json": {"mimeType": "application/json", "blob": "eyJhIjogMX0="},
    "memo://big": {"text": "x" * 2_000_000},
}


def offer(request_id, method, params, is_modern):
    """Answer requests about prompts and resources."""
    done = {"resultType": "complete"} if is_modern else {}
    if method == "prompts/list":
        return reply(request_id, {**done, "prompts": PROMPTS})
    if method == "resources/list":
        return reply(request_id, {**done, "resources": RESOURCES})
    if method == "resources/templates/list":
        return reply(request_id, {**done, "resourceTemplates": [{"uriTemplate": "memo://by-id/{id}", "name": "by id"}]})
    if method == "resources/read":
        if params["uri"] not in CONTENTS:
            return fail(request_id, -32002, "Resource not found")
        return reply(request_id, {**done, "contents": [{"uri": params["uri"], **CONTENTS[params["uri"]]}]})
    if params["name"] == "ask me":
        return ask(request_id, params, is_modern, "messages")
    messages = [
        {"role": "user", "content": {"type": "text", "text": f"{params['name']} {json.dumps(params['arguments'])}"}}
    ]
    if params["name"] == "mix":
        messages.append({"role": "assistant", "content": {"type": "image", "mimeType": "image/png", "data": "aGk="}})
        messages.append({"role": "assistant", "content": {"type": "text", "text": "Understood."}})
    return reply(request_id, {**done, "messages": [] if params["name"] == "empty" else messages})


def capabilities():
    more = {"prompts": {"listChanged": True}, "resources": {}} if args.offers else {}
    return {"tools": {"listChanged": True}, **more}


def ask_forever(request_id, is_modern):
    if is_modern:
        requests = {"colour": {"method": "elicitation/create", "params": QUESTION}}
        return reply(request_id, {"resultType": "input_required", "inputRequests": requests, "requestState": "again"})
    number = 0
    while True:
        number += 1
        send({"id": f"question-{number}", "method": "elicitation/create", "params": QUESTION})
        while (frame := read()).get("id") != f"question-{number}":
            if frame.get("method") == "notifications/cancelled":
                return None


def send_deep_list(request_id):
    """Send a schema with more levels than a parser accepts."""
    deep = '{"properties":{"a":' * 20_000 + "{}" + "}}" * 20_000
    sys.stdout.write(
        f'{{"jsonrpc":"2.0","id":{request_id},"result":{{"tools":[{{"name":"d","inputSchema":{deep}}}]}}}}\n'
    )
    sys.stdout.flush()


def read():
    line = sys.stdin.readline()
    if not line and args.mode == "stubborn":
        time.sleep(3600)
    if not line:
        sys.exit(0)
    if folder():
        with (folder() / "frames.jsonl").open("a") as file:
            file.write(line)
    return json.loads(line)


def handle(frame):
    request_id, method, params = frame.get("id"), frame.get("method"), frame.get("params", {})
    is_modern = params.get("_meta", {}).get(VERSION) == MODERN
    if request_id is None:
        return
    if is_modern and args.era == "silent":
        return
    if is_modern and args.era == "fragile":
        sys.exit(3)
    if (is_modern and args.era == "legacy") or (method == "initialize" and args.era == "modern"):
        fail(request_id, -32601, f"unknown method {method}")
    elif method == "server/discover":
        info = {"io.modelcontextprotocol/serverInfo": {"name": args.name, "version": "1.0"}}
        reply(
            request_id,
            {
                "resultType": "complete",
                "supportedVersions": [MODERN],
                "capabilities": capabilities(),
                "instructions": args.instructions,
                "_meta": info,
                "ttlMs": 0,
                "cacheScope": "private",
            },
        )
    elif method == "initialize":
        reply(
            request_id,
            {
                "protocolVersion": "2025-06-18",
                "capabilities": capabilities(),
                "serverInfo": {"name": args.name, "version": "1.0"},
                "instructions": args.instructions,
            },
        )
    elif method == "tools/list" and args.mode == "deep":
        send_deep_list(request_id)
    elif method == "tools/list":
        reply(request_id, listing(params))
    elif method == "tools/call":
        call(request_id, params, is_modern)
    elif args.offers and method.startswith(("prompts/", "resources/")):
        offer(request_id, method, params, is_modern)
    elif method == "subscriptions/listen":
        pass
    else:
        fail(request_id, -32601, f"unknown method {method}")


def be_stubborn():
    """Ignore what asks to end, and leave a child behind that does the same."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    if (child := os.fork()) == 0:
        time.sleep(3600)
    with (folder() / "pids").open("a") as file:
        file.write(f"{child}\n")


def main():
    if folder():
        with (folder() / "pids").open("a") as file:
            file.write(f"{os.getpid()}\n")
    if args.mode == "exit":
        sys.stderr.write("bad configuration\n")
        sys.exit(1)
    if args.mode == "never":
        time.sleep(3600)
    if args.mode == "garbage":
        for number in range(5000):
            print("hello, this is not JSON", number, flush=True)
        time.sleep(3600)
    if args.mode == "stubborn":
        be_stubborn()
    while args.mode == "flood":
        sys.stderr.write("flood " * 1000 + "\n")
    while True:
        handle(read())


main()
