"""A remote MCP server for tests: streamable HTTP in a thread, in one era, with JSON or event streams."""

import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODERN = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
ECHO = {"name": "echo", "description": "Echo.", "inputSchema": {"type": "object"}}
WAIT = {"name": "wait", "description": "Wait.", "inputSchema": {"type": "object"}}
CUT = {"name": "cut", "description": "Close the connection.", "inputSchema": {"type": "object"}}


class FakeHttpServer:
    """Serves from `with` on. `requests` has the headers and the body of each request."""

    def __init__(self, era="modern", *, streams=False, token=""):
        self.era, self.streams, self.token = era, streams, token
        self.requests = []
        self.tools = [ECHO, WAIT, CUT]
        self.pushed = queue.SimpleQueue()  # messages on the stream of a legacy server; None ends the stream
        self.has_stream = False
        self.interrupts = False  # ends the answer to a call after its first event
        self.interrupted = []
        self.resumed_at = []
        self.authority = None  # a FakeAuthorizationServer that issues the tokens
        self.challenge = ""  # parameters of the Bearer challenge
        self.metadata = None  # of the server as a protected resource
        self.needed_scope = ""  # of calls, which the token never has
        self.refused_probes = 0
        self.batches = False  # sends all messages of an answer as one array
        self.wrong_ids = False  # of the answers to calls
        self.sessions = {"session-1"}
        self.released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *args: _Handler(self, *args))
        self._server.daemon_threads = True
        self._server.handle_error = lambda *args: None  # clients close connections early

    def protect(self, authority):
        """Accept only tokens of an authorization server."""
        self.authority = authority
        self.metadata = {"resource": self.resource, "authorization_servers": [authority.issuer]}

    @property
    def resource(self):
        return self.url.partition("?")[0]

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}/mcp?team=a"

    def __enter__(self):
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, *error):
        self.released.set()
        self.pushed.put(None)
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def methods(self):
        return [body.get("method") for _, body in self.requests if body]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, fake, *args):
        self.fake = fake
        super().__init__(*args)

    def log_message(self, *args):
        pass

    def do_DELETE(self):
        self.fake.requests.append((dict(self.headers), {"method": "DELETE"}))
        self.answer(200, b"")

    def do_GET(self):
        if self.path.startswith("/.well-known/oauth-protected-resource") and self.fake.metadata:
            return self.answer(200, json.dumps(self.fake.metadata).encode(), "application/json")
        if self.path.startswith("/.well-known/"):
            return self.answer(404, b"")
        self.fake.requests.append((dict(self.headers), {"method": "GET"}))
        if place := self.headers.get("last-event-id"):
            self.fake.resumed_at.append(place)
            rest = f"id: event-2\ndata: {json.dumps(self.fake.interrupted.pop())}\n\n"
            return self.answer(200, rest.encode(), "text/event-stream")
        if not self.fake.has_stream:
            return self.answer(405, b"")
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.close_connection = True
        while (frame := self.fake.pushed.get()) is not None:
            self.wfile.write(f"data: {json.dumps({'jsonrpc': '2.0', **frame})}\n\n".encode())
            self.wfile.flush()
        return None

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.fake.requests.append(({key.lower(): value for key, value in self.headers.items()}, body))
        if self.fake.token and self.headers.get("authorization") != f"Bearer {self.fake.token}":
            return self.answer(401, b"who are you?")
        authority, sent = self.fake.authority, self.headers.get("authorization", "")
        if authority and not authority.accepts(sent, self.fake.metadata["resource"]):
            return self.answer(401, b"", headers={"www-authenticate": f"Bearer {self.fake.challenge}".strip()})
        if self.fake.needed_scope and body.get("method") == "tools/call":
            challenge = f'Bearer error="insufficient_scope", scope="{self.fake.needed_scope}"'
            return self.answer(403, b"", headers={"www-authenticate": challenge})
        if "id" not in body or "method" not in body:
            return self.answer(202, b"")
        is_modern = body.get("params", {}).get("_meta", {}).get(VERSION) == MODERN
        if is_modern != (self.fake.era == "modern"):
            return self.answer(400, b"Bad Request")
        if self.fake.refused_probes:
            self.fake.refused_probes -= 1
            error = {"code": -32022, "message": "Unsupported protocol version", "data": {"supported": [MODERN]}}
            return self.reply(400, {"id": body["id"], "error": error})
        if is_modern and (
            self.headers.get("mcp-method") != body["method"]
            or (body["method"] == "tools/call" and self.headers.get("mcp-name") != body["params"]["name"])
        ):
            return self.reply(400, {"id": body["id"], "error": {"code": -32020, "message": "headers"}})
        if (
            not is_modern
            and body["method"] != "initialize"
            and self.headers.get("mcp-session-id") not in self.fake.sessions
        ):
            return self.answer(404, b"")
        return self.handle_request(body, is_modern)

    def handle_request(self, body, is_modern):
        capabilities = {"tools": {}}
        match body["method"]:
            case "server/discover":
                result = {"supportedVersions": [MODERN], "capabilities": capabilities}
            case "initialize":
                result = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": {"name": "far"}}
            case "tools/list":
                result = {"tools": self.fake.tools}
            case "tools/call" if body["params"]["name"] == "cut":
                self.close_connection = True
                return self.wfile.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"
                )
            case "tools/call":
                if body["params"]["name"] == "wait":
                    self.fake.released.wait(30)
                result = {"content": [{"type": "text", "text": f"far: {body['params']['arguments'].get('text')}"}]}
        headers = {"mcp-session-id": "session-1"} if body["method"] == "initialize" else {}
        return self.reply(200, {"id": body["id"], "result": result}, body, headers)

    def reply(self, status, frame, request=None, headers=None):
        frame = {"jsonrpc": "2.0", **frame}
        if self.fake.wrong_ids and request and request["method"] == "tools/call":
            frame["id"] += 1
        if self.fake.interrupts and request and request["method"] == "tools/call":
            self.fake.interrupted.append(frame)
            return self.answer(200, b"id: event-1\nretry: 1\ndata: \n\nid: event-9\ndata: cut", "text/event-stream")
        token = request["params"]["_meta"]["progressToken"] if request else 0
        progress = {"method": "notifications/progress", "params": {"progressToken": token, "progress": 1, "total": 2}}
        items = [[progress, frame]] if self.fake.batches else [progress, frame]
        if status != 200 or not self.fake.streams or not request:
            return self.answer(status, json.dumps(items[-1]).encode(), "application/json", headers)
        events = "".join(f"event: message\ndata: {json.dumps(item)}\n\n" for item in items)
        return self.answer(200, f": hello\n\n{events}".encode(), "text/event-stream", headers)

    def answer(self, status, data, kind="text/plain", headers=None):
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
