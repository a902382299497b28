"""A local model server with four APIs, for agents that are tested.

A prompt with `RUN: command` makes it call the shell tool, one with `WRITE: path` the tool `write_file`. A prompt with
`HANG` makes it stop in the middle of an answer until the client disconnects. All other prompts get a fixed answer.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SHELLS = ("bash", "run_shell_command", "mcp__acp__Bash", "Bash", "shell", "exec_command")
WRITE_TOOL = "write_file"
ANSWER = "LOOPBACK-OK"
DONE = "TOOL-DONE"


class ParsedRequest:
    """The relevant part of a request of any API."""

    def __init__(self, prompt: str, tools: list[str], answered: bool) -> None:
        self.hang = "HANG" in prompt
        shell = next((name for name in SHELLS if name in tools), "")
        command = prompt.rpartition("RUN: ")[2].split("\n")[0].strip('"<> ') if "RUN: " in prompt else ""
        self.call = (
            (shell, {"command": command, "description": "from the prompt", "timeout": 10000})
            if shell and command and not answered
            else None
        )
        path = prompt.rpartition("WRITE: ")[2].split()[0] if "WRITE: " in prompt else ""
        if path and WRITE_TOOL in tools and not answered:
            self.call = (WRITE_TOOL, {"file_path": path, "content": "made\n"})
        self.text = DONE if answered and (command or path) else ANSWER


def _texts(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def openai(request: dict[str, Any]) -> tuple[ParsedRequest, list[Any]]:
    messages = request.get("messages", [])
    last = max((index for index, message in enumerate(messages) if message.get("role") == "user"), default=0)
    answered = any(message.get("role") == "tool" for message in messages[last:])
    content = messages[last].get("content", "") if messages else ""
    prompt = _texts(content)
    tools = [tool.get("function", {}).get("name", "") for tool in request.get("tools") or ()]
    parsed = ParsedRequest(prompt, tools, answered)
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "" if parsed.call else parsed.text}]
    if parsed.call:
        function = {"name": parsed.call[0], "arguments": json.dumps(parsed.call[1])}
        deltas.append({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})
    head = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "mock-model"}
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    reason = "tool_calls" if parsed.call else "stop"
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage})
    return parsed, [*chunks, "[DONE]"]


def anthropic(request: dict[str, Any]) -> tuple[ParsedRequest, list[Any]]:
    messages = request.get("messages", [])
    answered = "tool_result" in json.dumps(messages[-3:])
    user_text = "\n".join(_texts(message.get("content", "")) for message in messages if message.get("role") == "user")
    tools = [tool.get("name", "") for tool in request.get("tools") or ()]
    parsed = ParsedRequest(user_text, tools, answered)
    start: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": parsed.text}
    if parsed.call:
        start = {"type": "tool_use", "id": "toolu_1", "name": parsed.call[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(parsed.call[1])}
    usage = {"input_tokens": 5, "output_tokens": 2}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    reason = "tool_use" if parsed.call else "end_turn"
    return parsed, [
        {"type": "message_start", "message": {**message, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def gemini(request: dict[str, Any]) -> tuple[ParsedRequest, list[Any]]:
    contents = request.get("contents", [])
    parts = contents[-1].get("parts", []) if contents else []
    answered = any("functionResponse" in part for part in parts)
    prompt = "\n".join(part.get("text", "") for content in contents for part in content.get("parts", []))
    declared = [f for tool in request.get("tools") or () for f in tool.get("functionDeclarations", ())]
    parsed = ParsedRequest(prompt, [function.get("name", "") for function in declared], answered)
    part: dict[str, Any] = {"text": parsed.text}
    if parsed.call:
        part = {"functionCall": {"name": parsed.call[0], "args": parsed.call[1]}}
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return parsed, [{"candidates": [candidate], "usageMetadata": usage}]


def responses(request: dict[str, Any]) -> tuple[ParsedRequest, list[Any]]:
    """OpenAI's Responses API. Its agents have a different shell tool, so it is not called."""
    parsed = ParsedRequest(json.dumps(request.get("input", "")), [], answered=False)
    content = [{"type": "output_text", "text": parsed.text, "annotations": []}]
    item = {"type": "message", "id": "m1", "role": "assistant", "content": content}
    counts = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    details = {"input_tokens_details": None, "output_tokens_details": None}
    return parsed, [
        {"type": "response.created", "response": {"id": "r1"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.output_text.delta", "item_id": "m1", "output_index": 0, "delta": parsed.text},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r1", "usage": {**counts, **details}}},
    ]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self._json({"object": "list", "data": [{"id": "mock-model", "object": "model"}]})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        request = json.loads(body) if body.startswith(b"{") else {}
        path = self.path.partition("?")[0]
        if path.endswith("/chat/completions"):
            parsed, items = openai(request)
            if not request.get("stream"):
                message = {"role": "assistant", "content": parsed.text}
                self._json({"id": "x", "object": "chat.completion", "choices": [{"index": 0, "message": message}]})
                return
        elif path.endswith("/responses"):
            parsed, items = responses(request)
        elif path.endswith("/messages"):
            parsed, items = anthropic(request)
        elif "enerateContent" in path:
            parsed, items = gemini(request)
            if "stream" not in path:
                self._json(items[0])
                return
        else:
            self._json({"input_tokens": 5, "totalTokens": 5})
            return
        self._stream(parsed, items)

    def _stream(self, parsed: ParsedRequest, items: list[Any]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for item in items:
            if parsed.hang and item is items[-1]:
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
