"""A model on loopback for other people's agents: it speaks four APIs, answers anything, and calls a shell if told to.

A prompt with `RUN: command` makes it call the shell tool it was offered, and then say what came of it; one with `HANG`
makes it stop in the middle of an answer until the client leaves.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SHELLS = ("bash", "run_shell_command", "mcp__acp__Bash", "Bash", "shell", "exec_command")
ANSWER = "LOOPBACK-OK"
DONE = "TOOL-DONE"


class Wish:
    """What a request wants, whichever API it came by."""

    def __init__(self, words: str, tools: list[str], answered: bool) -> None:
        self.hang = "HANG" in words
        shell = next((name for name in SHELLS if name in tools), "")
        command = words.rpartition("RUN: ")[2].split("\n")[0].strip('"<> ') if "RUN: " in words else ""
        self.call = (
            (shell, {"command": command, "description": "as told", "timeout": 10000})
            if shell and command and not answered
            else None
        )
        self.text = DONE if answered and command else ANSWER


def _texts(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def openai(request: dict[str, Any]) -> tuple[Wish, list[Any]]:
    messages = request.get("messages", [])
    last = max((at for at, message in enumerate(messages) if message.get("role") == "user"), default=0)
    answered = any(message.get("role") == "tool" for message in messages[last:])
    content = messages[last].get("content", "") if messages else ""
    words = _texts(content)
    tools = [tool.get("function", {}).get("name", "") for tool in request.get("tools") or ()]
    wish = Wish(words, tools, answered)
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "" if wish.call else wish.text}]
    if wish.call:
        function = {"name": wish.call[0], "arguments": json.dumps(wish.call[1])}
        deltas.append({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})
    head = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "mock-model"}
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    reason = "tool_calls" if wish.call else "stop"
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage})
    return wish, [*chunks, "[DONE]"]


def anthropic(request: dict[str, Any]) -> tuple[Wish, list[Any]]:
    messages = request.get("messages", [])
    answered = "tool_result" in json.dumps(messages[-3:])
    said = "\n".join(_texts(message.get("content", "")) for message in messages if message.get("role") == "user")
    tools = [tool.get("name", "") for tool in request.get("tools") or ()]
    wish = Wish(said, tools, answered)
    start: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": wish.text}
    if wish.call:
        start = {"type": "tool_use", "id": "toolu_1", "name": wish.call[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(wish.call[1])}
    usage = {"input_tokens": 5, "output_tokens": 2}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    reason = "tool_use" if wish.call else "end_turn"
    return wish, [
        {"type": "message_start", "message": {**message, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def gemini(request: dict[str, Any]) -> tuple[Wish, list[Any]]:
    contents = request.get("contents", [])
    parts = contents[-1].get("parts", []) if contents else []
    answered = any("functionResponse" in part for part in parts)
    words = "\n".join(part.get("text", "") for content in contents for part in content.get("parts", []))
    declared = [f for tool in request.get("tools") or () for f in tool.get("functionDeclarations", ())]
    wish = Wish(words, [function.get("name", "") for function in declared], answered)
    part: dict[str, Any] = {"text": wish.text}
    if wish.call:
        part = {"functionCall": {"name": wish.call[0], "args": wish.call[1]}}
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return wish, [{"candidates": [candidate], "usageMetadata": usage}]


def responses(request: dict[str, Any]) -> tuple[Wish, list[Any]]:
    """OpenAI's other API; the shell of who speaks it has a form of its own, so it is never called."""
    wish = Wish(json.dumps(request.get("input", "")), [], answered=False)
    content = [{"type": "output_text", "text": wish.text, "annotations": []}]
    item = {"type": "message", "id": "m1", "role": "assistant", "content": content}
    counts = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    details = {"input_tokens_details": None, "output_tokens_details": None}
    return wish, [
        {"type": "response.created", "response": {"id": "r1"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.output_text.delta", "item_id": "m1", "output_index": 0, "delta": wish.text},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r1", "usage": {**counts, **details}}},
    ]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Nobody reads it."""

    def do_GET(self) -> None:
        self._json({"object": "list", "data": [{"id": "mock-model", "object": "model"}]})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        request = json.loads(body) if body.startswith(b"{") else {}
        path = self.path.partition("?")[0]
        if path.endswith("/chat/completions"):
            wish, items = openai(request)
            if not request.get("stream"):
                message = {"role": "assistant", "content": wish.text}
                self._json({"id": "x", "object": "chat.completion", "choices": [{"index": 0, "message": message}]})
                return
        elif path.endswith("/responses"):
            wish, items = responses(request)
        elif path.endswith("/messages"):
            wish, items = anthropic(request)
        elif "enerateContent" in path:
            wish, items = gemini(request)
            if "stream" not in path:
                self._json(items[0])
                return
        else:
            self._json({"input_tokens": 5, "totalTokens": 5})
            return
        self._stream(wish, items)

    def _stream(self, wish: Wish, items: list[Any]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for item in items:
            if wish.hang and item is items[-1]:
                self.server.released.wait(60)  # type: ignore[attr-defined]
            data = item if isinstance(item, str) else json.dumps(item)
            name = f"event: {item['type']}\n" if isinstance(item, dict) and "type" in item else ""
            try:
                self.wfile.write(f"{name}data: {data}\n\n".encode())
                self.wfile.flush()
            except OSError:
                return

    def _json(self, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class LoopbackModel:
    """`with LoopbackModel() as model: model.url`."""

    def __enter__(self) -> "LoopbackModel":
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.released = threading.Event()  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.released.set()  # type: ignore[attr-defined]
        self._server.shutdown()
        self._server.server_close()
