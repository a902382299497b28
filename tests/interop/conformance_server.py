"""Serves the handler of `ostler mcp serve` over HTTP, with the tools that the official conformance suite needs.

Ostler itself serves stdio only. This front passes each message to the same handler and peer: a legacy client has its
own handler, all modern clients share one. It prints its URL.
"""

import asyncio
import json
import sys
import tempfile
import uuid
from contextlib import asynccontextmanager

import msgspec

from ostler.backends.none import NoBackend
from ostler.core.display import Display
from ostler.core.permission import Question
from ostler.core.prompt import ImageContent
from ostler.core.tools import ToolResult, ToolSpec
from ostler.frontends.mcp_server.handler import McpServerHandler
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import open_test_session
from ostler.wire.jsonrpc import MCP_CANCEL, JsonRpcPeer
from ostler.workspace.local_workspace import LocalWorkspace

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
VERSION_META = "io.modelcontextprotocol/protocolVersion"
STATUS = {-32601: 404, -32602: 400, -32600: 400, -32700: 400, -32020: 400, -32021: 400, -32022: 400}
# The suite fixes the key of this tool's question; Ostler chooses keys itself.
FIXED_KEYS = {"test_input_required_result_elicitation": "user_name"}


class FixtureTool(FakeTool):
    """A tool of the suite: returns a text, or a whole result."""

    def __init__(self, name, behaviour, schema=None):
        super().__init__(name, effects=False)
        self._run = behaviour
        self.spec = ToolSpec(name, "other", f"{name} of the suite", schema or {"type": "object"}, effects=False)

    async def run(self, params, context):
        result = await self._run(params, context)
        return ToolResult("", "ok", result, Display(result)) if isinstance(result, str) else result


def returning(value):
    async def run(params, context):
        return value

    return run


async def progress(params, context):
    for step in (0, 50, 100):
        context.progress(Display(f"{step} of 100"))
        await asyncio.sleep(0.05)
    return "done"


def asking(*schemas, text="Please answer"):
    async def run(params, context):
        replies = [await context.ask(Question("", params.get("message", text), schema)) for schema in schemas]
        return "; ".join(
            f"User response, state-ok: action={reply.action}, content={json.dumps(reply.content)}" for reply in replies
        )

    return run


def form(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


TEXT = {"type": "string"}
DEFAULTS = form(
    name={"type": "string", "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    verified={"type": "boolean", "default": True},
)
TITLED = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]
NAMES = ["option1", "option2", "option3"]
ENUMS = form(
    untitledSingle={"type": "string", "enum": NAMES},
    titledSingle={"type": "string", "oneOf": TITLED},
    legacyEnum={"type": "string", "enum": NAMES, "enumNames": ["Option One", "Option Two", "Option Three"]},
    untitledMulti={"type": "array", "items": {"type": "string", "enum": NAMES}},
    titledMulti={"type": "array", "items": {"anyOf": TITLED}},
)
ADDRESS = {"$anchor": "addressDef", "type": "object", "properties": {"street": TEXT, "city": TEXT}}
JSON_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": ADDRESS},
    "properties": {
        "name": TEXT,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": TEXT,
        "email": TEXT,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
CONFIRM = form(["ok"], ok={"type": "boolean"})
USER = form(["username", "email"], username=TEXT, email=TEXT)
TOOLS = [
    FixtureTool("test_simple_text", returning("This is a simple text response for testing.")),
    FixtureTool("test_image_content", returning(ToolResult("", "ok", "", images=(ImageContent("image/png", PIXEL),)))),
    FixtureTool(
        "test_error_handling",
        returning(ToolResult("", "failed", "This tool intentionally returns an error for testing")),
    ),
    FixtureTool("test_logging_tool", returning("nothing was logged")),
    FixtureTool("test_tool_with_progress", progress),
    FixtureTool("test_elicitation", asking(USER), form(["message"], message=TEXT)),
    FixtureTool("test_elicitation_sep1034_defaults", asking(DEFAULTS)),
    FixtureTool("test_elicitation_sep1330_enums", asking(ENUMS)),
    FixtureTool("test_streaming_elicitation", asking(USER)),
    FixtureTool("json_schema_2020_12_tool", returning("ok"), JSON_SCHEMA),
    FixtureTool("test_input_required_result_elicitation", asking(form(["name"], name=TEXT))),
    FixtureTool("test_input_required_result_request_state", asking(CONFIRM)),
    FixtureTool("test_input_required_result_tampered_state", asking(CONFIRM)),
    FixtureTool("test_input_required_result_capabilities", asking(CONFIRM)),
    FixtureTool(
        "test_input_required_result_multi_round", asking(form(["name"], name=TEXT), form(["color"], color=TEXT))
    ),
]


class Client:
    """The peer of one client. Messages without an open request of their own go to the request that was opened last."""

    def __init__(self, handler):
        self.handler = handler
        self.peer = handler.peer = JsonRpcPeer(self._send, handler, is_server=True, cancel_method=MCP_CANCEL)
        self._count = 0
        self._streams = {}

    async def request(self, frame):
        """Yield the messages for one request; the last one is its response. Ids are made unique."""
        self._count += 1
        number, outgoing = self._count, asyncio.Queue()
        token = frame.get("params", {}).get("_meta", {}).get("progressToken")
        self._streams[number] = (token, outgoing)
        self.peer.feed(msgspec.json.encode({**frame, "id": number}) + b"\n")
        finished = False
        try:
            while not finished:
                message = await outgoing.get()
                finished = message.get("id") == number and "method" not in message
                yield {**message, "id": frame["id"]} if finished else message
        finally:
            del self._streams[number]
            if not finished:
                self.peer.feed(
                    msgspec.json.encode({"jsonrpc": "2.0", "method": MCP_CANCEL, "params": {"requestId": number}})
                    + b"\n"
                )

    def notify(self, frame):
        self.peer.feed(msgspec.json.encode(frame) + b"\n")

    def _send(self, line):
        message = json.loads(line)
        token = message.get("params", {}).get("progressToken")
        streams = [queue for known, queue in self._streams.values() if token is not None and known == token]
        if "method" not in message and message.get("id") in self._streams:
            streams = [self._streams[message["id"]][1]]
        for queue in streams[:1] or [queue for _, queue in [*self._streams.values()][-1:]]:
            queue.put_nowait(message)


class Front:
    """Answers HTTP requests."""

    def __init__(self, session):
        self._session = session
        self._modern = self._new_client()
        self._legacy = {}

    def _new_client(self):
        async def open_session(interactive):
            return self._session

        return Client(McpServerHandler(open_session, no_runs, "1", ("test_*", "json_*")))

    async def serve(self, reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            await self._answer(writer, head[0].split()[0], headers, body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, writer, method, headers, body):
        if not all(is_local(headers[name]) for name in ("host", "origin") if name in headers):
            return respond(writer, 403)
        session_id = headers.get("mcp-session-id", "")
        if method == "DELETE":
            return respond(writer, 200 if self._legacy.pop(session_id, None) else 404)
        if method != "POST":
            return respond(writer, 405)
        frame = json.loads(body)
        meta = frame.get("params", {}).get("_meta", {})
        if headers.get("mcp-protocol-version") == "2026-07-28" or VERSION_META in meta:
            return await self._answer_modern(writer, headers, frame, meta)
        return await self._answer_legacy(writer, session_id, frame)

    async def _answer_modern(self, writer, headers, frame, meta):
        if "id" not in frame:
            return respond(writer, 202)
        if not isinstance(meta.get(VERSION_META), str):
            return respond_error(writer, frame, -32602, "Invalid params: _meta is incomplete")
        expected = {"mcp-protocol-version": meta[VERSION_META], "mcp-method": frame["method"]}
        if frame["method"] == "tools/call":
            expected["mcp-name"] = str(frame["params"].get("name"))
        if any(headers.get(name) != value for name, value in expected.items()):
            return respond_error(writer, frame, -32020, "Header mismatch")
        fixed = FIXED_KEYS.get(expected.get("mcp-name"))
        return await stream(writer, self._modern.request(rename_keys(frame)), STATUS, fixed)

    async def _answer_legacy(self, writer, session_id, frame):
        if frame.get("method") == "initialize":
            session_id = uuid.uuid4().hex
            self._legacy[session_id] = self._new_client()
        client = self._legacy.get(session_id)
        if client is None:
            return respond(writer, 404 if session_id else 400)
        if "id" not in frame or "method" not in frame:
            client.notify(frame)
            return respond(writer, 202)
        return await stream(writer, client.request(frame), {}, headers={"mcp-session-id": session_id})


def rename_keys(frame):
    """Replace the key that the suite fixes with the one that Ostler chose, which is kept in the state."""
    params = frame["params"]
    state, _, key = str(params.get("requestState", "")).partition("|")
    if not key or params.get("name") not in FIXED_KEYS:
        return frame
    fixed = FIXED_KEYS[params["name"]]
    responses = {key if name == fixed else name: value for name, value in params.get("inputResponses", {}).items()}
    return {**frame, "params": {**params, "requestState": state, "inputResponses": responses}}


def fix_key(message, fixed):
    requests = message.get("result", {}).get("inputRequests")
    if not fixed or not requests:
        return message
    ((key, request),) = requests.items()
    state = f"{message['result']['requestState']}|{key}"
    return {**message, "result": {**message["result"], "inputRequests": {fixed: request}, "requestState": state}}


def is_local(value):
    return value.removeprefix("http://").rpartition(":")[0].strip("[]") in ("localhost", "127.0.0.1", "::1")


def respond(writer, status, body=b"", headers=None):
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "connection: close"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    writer.write("\r\n".join([*lines, "", ""]).encode() + body)


def respond_error(writer, frame, code, message):
    error = {"jsonrpc": "2.0", "id": frame.get("id"), "error": {"code": code, "message": message}}
    respond(writer, STATUS[code], json.dumps(error).encode(), {"content-type": "application/json"})


async def stream(writer, messages, statuses, fixed=None, headers=None):
    """Send a lone response as JSON, otherwise an event stream."""
    started = False
    async for message in messages:
        message = fix_key(message, fixed)
        if not started and "method" not in message:
            status = statuses.get(message.get("error", {}).get("code"), 200)
            kind = {"content-type": "application/json", **(headers or {})}
            respond(writer, status, json.dumps(message).encode(), kind)
            continue
        if not started:
            started = True
            extra = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
            writer.write(
                f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n{extra}\r\n".encode()
            )
        writer.write(f"event: message\ndata: {json.dumps(message)}\n\n".encode())
        await writer.drain()


@asynccontextmanager
async def no_runs(session_id, interactive):
    raise NotImplementedError
    yield


async def main():
    with tempfile.TemporaryDirectory() as folder:
        session = await open_test_session(NoBackend(), TOOLS, LocalWorkspace(folder))
        server = await asyncio.start_server(Front(session).serve, "127.0.0.1", 0, limit=2**20)
        sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp\n")
        sys.stdout.flush()
        async with server:
            await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
