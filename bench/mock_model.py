"""A local model server that answers immediately: one line, ten tool calls, or 200 KB in four-byte pieces."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

FINAL = "MOCK-FINAL-OK"
PIECES = 51_200


def frame(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return (
        b"data: " + json.dumps({"id": "x", "object": "chat.completion.chunk", "choices": [choice]}).encode() + b"\n\n"
    )


def _end_frames(reason: str) -> bytes:
    usage = {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}}
    return frame({}, reason) + b"data: " + json.dumps(usage).encode() + b"\n\ndata: [DONE]\n\n"


def text_reply(text: str = FINAL) -> Iterator[bytes]:
    """Reply with one line."""
    yield frame({"role": "assistant", "content": text}) + _end_frames("stop")


def call_reply(number: int, tool: str, arguments: dict[str, Any]) -> Iterator[bytes]:
    """Reply with one tool call."""
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
    yield frame({"role": "assistant", "tool_calls": [call]}) + _end_frames("tool_calls")


def long_reply() -> Iterator[bytes]:
    """Reply with 200 KB in pieces of four bytes."""
    for block in range(PIECES // 64):
        yield b"".join(frame({"content": f"{block * 64 + number:03x} "[-4:]}) for number in range(64))
    yield frame({"content": FINAL}) + _end_frames("stop")


class MockModel:
    """A blocking server in its own threads; `on_request` is called at the first line of each model request."""

    def __init__(self, on_request: Callable[[], None] | None = None) -> None:
        self.requests: list[bytes] = []
        self.arrivals: list[float] = []
        self.reply: Callable[[int, dict[str, Any]], Iterator[bytes]] = lambda number, body: text_reply()
        self._on_request = on_request
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        threading.Thread(target=self._accept, daemon=True).start()

    def reset(self) -> None:
        self.requests.clear()
        self.arrivals.clear()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as reader:
            try:
                while line := reader.readline():
                    self._answer(connection, reader, line)
            except OSError:
                return

    def _answer(self, connection: socket.socket, reader: Any, request_line: bytes) -> None:
        self.arrivals.append(time.perf_counter())
        if self._on_request and request_line.startswith(b"POST"):
            self._on_request()
        length = 0
        while (header := reader.readline()) not in (b"\r\n", b""):
            if header.lower().startswith(b"content-length:"):
                length = int(header.split(b":")[1])
        body = reader.read(length)
        if len(body) < length:
            return  # the client was killed, which is how the first request is measured
        if not request_line.startswith(b"POST"):
            answer = b'{"data":[{"id":"mock"}]}'
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), answer))
            return
        self.requests.append(body)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for part in self.reply(len(self.requests), json.loads(body)):
            connection.sendall(b"%x\r\n%b\r\n" % (len(part), part))
        connection.sendall(b"0\r\n\r\n")
