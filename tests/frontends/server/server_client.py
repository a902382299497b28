"""A client of the server that uses a WebSocket library of others and knows only the documented protocol."""

import http.client
import json
import threading

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

STREAM = "/api/agent/sessions/{}/stream"
LS = {
    "name": "ls",
    "description": "List a folder.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


class ServerClient:
    """Sends requests as one user."""

    def __init__(self, port, token):
        self.port, self.token = port, token

    @property
    def headers(self):
        return {"Authorization": f"Bearer {self.token}"}

    def request(self, method, path, body=None, **headers):
        """Return the status and the JSON body."""
        answer = self.open(method, path, body, **headers)
        data = answer.read()
        return answer.status, json.loads(data) if data else None

    def open(self, method, path, body=None, **headers):
        """Return the answer as a stream. Its connection ends with it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"} if data is not None else {}
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, data, {**self.headers, "Connection": "close", **kind, **names})
        answer = connection.getresponse()
        connection.close()  # the answer has its own reference to the socket
        return answer

    def create(self, **body):
        """Create a session and return its id."""
        status, session = self.request("POST", "/api/agent/sessions", body)
        assert status == 201, session
        return session["sessionId"]

    def describe(self, session_id):
        return self.request("GET", f"/api/agent/sessions/{session_id}")[1]

    def messages(self, session_id):
        return self.request("GET", f"/api/agent/sessions/{session_id}/messages")[1]["messages"]

    def raw(self, session_id, **options):
        """Return a WebSocket without a `hello`."""
        url = f"ws://127.0.0.1:{self.port}{STREAM.format(session_id)}"
        opening = connect(url, additional_headers=self.headers, max_size=None, compression=None, **options)
        return opening.__enter__()

    def host(self, session_id="", tools=(LS,), root="/work", **fields):
        """Connect as the tool host of a session, or of a new one."""
        return Attached(self, session_id, {"toolManifest": {"tools": list(tools)}, "workspaceRoot": root, **fields})

    def viewer(self, session_id, **fields):
        return Attached(self, session_id, fields)


class Attached:
    """A connection to a session. `created` is the server's answer to `hello`."""

    def __init__(self, client, session_id, hello):
        self.id = session_id or client.create()
        self.client = client
        self.socket = client.raw(self.id)
        self.frames = []
        self.send("hello", clientVersion="test", **hello)
        self.created = self.receive()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.socket.close()

    def send(self, kind, **fields):
        self.socket.send(json.dumps({"type": kind, **fields}))

    def say(self, content, **fields):
        self.send("user.message", sessionId=self.id, content=content, **fields)

    def answer(self, call, output, **fields):
        self.send("tool.result", sessionId=self.id, toolCallId=call["toolCallId"], output=output, **fields)

    def receive(self, timeout=15):
        frame = json.loads(self.socket.recv(timeout))
        self.frames.append(frame)
        return frame

    def wait(self, kind, timeout=15, **fields):
        """Return the next message of a type with these fields."""
        while True:
            frame = self.receive(timeout)
            if frame["type"] == kind and all(frame.get(name) == value for name, value in fields.items()):
                return frame

    def until_done(self):
        """Return all messages until the end of the turn."""
        frames = []
        while not frames or frames[-1]["type"] != "assistant.done":
            frames.append(self.receive())
        return frames

    def run_turn(self, content, output="a.txt", **fields):
        """Send a message, answer every call, and return the messages until the end of the turn."""
        self.say(content, **fields)
        frames = []
        while not frames or frames[-1]["type"] != "assistant.done":
            frames.append(self.receive())
            if frames[-1]["type"] == "tool.call":
                self.answer(frames[-1], output)
        return frames

    def closed(self):
        """Return code and reason with which the server closes the connection."""
        try:
            while True:
                self.receive()
        except ConnectionClosed as error:
            return error.rcvd.code, error.rcvd.reason

    def cut(self):
        """Break the connection without saying goodbye."""
        self.socket.socket.shutdown(2)
        self.socket.socket.close()


def text_of(frames):
    """Return the texts of the messages that deltas make up, by the rule of the protocol, joined."""
    texts = {}
    for frame in frames:
        if frame["type"] == "assistant.delta":
            key, offset = frame["messageId"], frame.get("offset", 0)
            texts[key] = texts.get(key, "")[:offset] + frame["content"]
    return "".join(texts.values())


class Gate:
    """Lets a scripted reply go on when the test says so; `await gate.wait()` runs in another thread's loop."""

    def __init__(self):
        self._event = threading.Event()

    def open(self):
        self._event.set()

    async def wait(self):
        import asyncio

        await asyncio.to_thread(self._event.wait, 30)
