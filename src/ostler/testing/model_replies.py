"""Scripted replies and faults in the wire formats of both APIs."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Api = Literal["openai", "anthropic"]
Framing = Literal["chunked", "length", "close"]


@dataclass(frozen=True)
class ScriptedToolCall:
    """A tool call in a script. Without an id the server assigns one."""

    tool: str
    arguments: dict[str, Any] | str
    id: str = ""

    @property
    def arguments_json(self) -> str:
        """The arguments as JSON text."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class ScriptedReply:
    """One reply: the model's output or a raw body, and how it is delivered. Each method returns a new reply."""

    text: str = ""
    thought: str = ""
    calls: tuple[ScriptedToolCall, ...] = ()
    chunks: int = 1
    finish_reason: str = ""
    tokens: tuple[int, int, int] = (10, 5, 0)
    body: tuple[bytes, ...] | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    framing: Framing = "chunked"
    plain_json: bool = False
    closes_after: bool = False
    cut_at: int | None = None
    reset: bool = False
    stall_at: int | None = None
    silent: bool = False
    comments: bool = False
    hold_at: tuple[int, Callable[[], Awaitable[object]]] | None = None
    before_part: Callable[[int], Awaitable[object]] | None = None
    write_size: int = 0
    pause: float = 0.0

    def cut_after(self, size: int, *, reset: bool = False) -> "ScriptedReply":
        """Close or reset the connection after `size` bytes of the body."""
        return replace(self, cut_at=size, reset=reset)

    def stall_after(self, parts: int, *, comments: bool = False) -> "ScriptedReply":
        """Stop after `parts` parts of the body and keep the connection open, with keep-alive comments or silent."""
        return replace(self, stall_at=parts, comments=comments)

    def hold_after(self, parts: int, until: Callable[[], Awaitable[object]]) -> "ScriptedReply":
        """Write `parts` parts of the body, wait for `until`, then write the rest."""
        return replace(self, hold_at=(parts, until))

    def paced_by(self, wait: Callable[[int], Awaitable[object]]) -> "ScriptedReply":
        """Wait for `wait(index)` before each part of the body; the first text is part 1."""
        return replace(self, before_part=wait)

    def with_framing(self, framing: Framing) -> "ScriptedReply":
        """Select the framing of the body: chunked, by length, or until close."""
        return replace(self, framing=framing)

    def as_json(self) -> "ScriptedReply":
        """Reply with one JSON document although a stream was requested."""
        return replace(self, plain_json=True)

    def with_write_size(self, size: int) -> "ScriptedReply":
        """Write `size` bytes at a time."""
        return replace(self, write_size=size)

    def with_pause(self, pause: float) -> "ScriptedReply":
        """Wait `pause` seconds after each part."""
        return replace(self, pause=pause)

    def then_close(self) -> "ScriptedReply":
        """Close the connection after the reply without announcing it."""
        return replace(self, closes_after=True)

    def with_finish_reason(self, reason: str) -> "ScriptedReply":
        """Set the finish reason, as the API spells it."""
        return replace(self, finish_reason=reason)

    def with_usage(self, tokens_in: int, tokens_out: int, cached: int = 0) -> "ScriptedReply":
        """Set the reported usage. `tokens_in` includes the cached tokens."""
        return replace(self, tokens=(tokens_in, tokens_out, cached))

    def body_parts(self, api: Api, request: dict[str, Any], number: int) -> list[bytes]:
        """Return the body in the parts in which it is written."""
        if self.body is not None:
            return list(self.body)
        reply = replace(self, calls=tuple(_with_id(call, number, index) for index, call in enumerate(self.calls)))
        if self.plain_json or not request.get("stream"):
            document = _openai_document(reply) if api == "openai" else _anthropic_document(reply)
            return [json.dumps(document).encode()]
        return _openai_events(reply, request) if api == "openai" else _anthropic_events(reply)


def text(content: str, *, chunks: int = 1, thought: str = "") -> ScriptedReply:
    """Reply with text in `chunks` deltas, optionally after a thought."""
    return ScriptedReply(text=content, chunks=chunks, thought=thought)


def calls(tool_calls: Sequence[ScriptedToolCall | tuple[str, dict[str, Any]]], *, text: str = "") -> ScriptedReply:
    """Reply with tool calls, optionally after text."""
    return ScriptedReply(
        text=text,
        calls=tuple(call if isinstance(call, ScriptedToolCall) else ScriptedToolCall(*call) for call in tool_calls),
    )


def status(code: int, body: Any = None, *, headers: dict[str, str] | None = None) -> ScriptedReply:
    """Reply with an HTTP status and a JSON or text body, by default an error object."""
    if body is None:
        body = {"error": {"message": f"scripted status {code}", "type": "scripted"}}
    encoded = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return ScriptedReply(status=code, body=(encoded,), headers=headers or {}, framing="length")


def raw(*parts: bytes, content_type: str = "text/event-stream") -> ScriptedReply:
    """Reply with a raw body in parts."""
    return ScriptedReply(body=parts, headers={"content-type": content_type})


def sse_reply(*data: str | dict[str, Any], done: bool = True) -> ScriptedReply:
    """Reply with server-sent events of this data, ended by `[DONE]` unless `done` is False."""
    events = [sse_event(item) for item in data]
    return raw(*events, *([b"data: [DONE]\n\n"] if done else []))


def html(page: str = "<!doctype html><title>Welcome</title>") -> ScriptedReply:
    """Reply with a web page, as from a wrong base URL."""
    return ScriptedReply(body=(page.encode(),), headers={"content-type": "text/html"}, framing="length")


def stall(where: Literal["head", "body"] = "head") -> ScriptedReply:
    """Send nothing, or only a response head, and wait for the client to disconnect."""
    return ScriptedReply(silent=True) if where == "head" else ScriptedReply(body=(), stall_at=0)


def keep_alive_only() -> ScriptedReply:
    """Send a response head, then only keep-alive comments."""
    return ScriptedReply(body=(), stall_at=0, comments=True)


def drop(*, reset: bool = False) -> ScriptedReply:
    """Close or reset the connection without sending anything."""
    return ScriptedReply(silent=True, cut_at=0, reset=reset)


def sse_event(data: str | dict[str, Any], name: str = "") -> bytes:
    """Encode one server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def _with_id(call: ScriptedToolCall, number: int, index: int) -> ScriptedToolCall:
    return call if call.id else replace(call, id=f"call_{number}_{index}")


def _split_text(text: str, count: int) -> list[str]:
    size = max(1, -(-len(text) // max(1, count)))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _openai_usage(reply: ScriptedReply) -> dict[str, Any]:
    tokens_in, tokens_out, cached = reply.tokens
    return {
        "prompt_tokens": tokens_in,
        "completion_tokens": tokens_out,
        "total_tokens": tokens_in + tokens_out,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def _openai_events(reply: ScriptedReply, request: dict[str, Any]) -> list[bytes]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": part} for part in _split_text(reply.thought, reply.chunks)]
    deltas += [{"content": part} for part in _split_text(reply.text, reply.chunks)]
    for index, call in enumerate(reply.calls):
        function = {"name": call.tool, "arguments": ""}
        deltas.append({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
        parts = _split_text(call.arguments_json, 2)
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": part}}]} for part in parts]
    events = [sse_event(_openai_chunk([{"index": 0, "delta": delta, "finish_reason": None}])) for delta in deltas]
    reason = reply.finish_reason or ("tool_calls" if reply.calls else "stop")
    events.append(sse_event(_openai_chunk([{"index": 0, "delta": {}, "finish_reason": reason}])))
    if request.get("stream_options", {}).get("include_usage"):
        events.append(sse_event(_openai_chunk([]) | {"usage": _openai_usage(reply)}))
    return [*events, b"data: [DONE]\n\n"]


def _openai_chunk(choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "scripted",
        "choices": choices,
    }


def _openai_document(reply: ScriptedReply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.thought:
        message["reasoning_content"] = reply.thought
    if reply.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": call.arguments_json}}
            for call in reply.calls
        ]
    reason = reply.finish_reason or ("tool_calls" if reply.calls else "stop")
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return _openai_chunk([choice]) | {"object": "chat.completion", "usage": _openai_usage(reply)}


def _anthropic_usage(reply: ScriptedReply) -> dict[str, int]:
    tokens_in, tokens_out, cached = reply.tokens
    return {"input_tokens": tokens_in - cached, "cache_read_input_tokens": cached, "output_tokens": tokens_out}


def _anthropic_blocks(reply: ScriptedReply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.thought:
        blocks.append({"type": "thinking", "thinking": reply.thought, "signature": "signed"})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for call in reply.calls:
        blocks.append({"type": "tool_use", "id": call.id, "name": call.tool, "input": call.arguments})
    return blocks


def _anthropic_message(reply: ScriptedReply) -> dict[str, Any]:
    reason = reply.finish_reason or ("tool_use" if reply.calls else "end_turn")
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "stop_reason": reason}


def _anthropic_document(reply: ScriptedReply) -> dict[str, Any]:
    return _anthropic_message(reply) | {"content": _anthropic_blocks(reply), "usage": _anthropic_usage(reply)}


def _anthropic_events(reply: ScriptedReply) -> list[bytes]:
    message, usage = _anthropic_message(reply), _anthropic_usage(reply)
    start_message = message | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start_message}, {"type": "ping"}]
    for index, block in enumerate(_anthropic_blocks(reply)):
        first, deltas = _anthropic_deltas(block, reply)
        events.append({"type": "content_block_start", "index": index, "content_block": first})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": usage["output_tokens"]}})
    events.append({"type": "message_stop"})
    return [sse_event(item, item["type"]) for item in events]


def _anthropic_deltas(block: dict[str, Any], reply: ScriptedReply) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the initial form of a block, and its deltas."""
    if block["type"] == "thinking":
        parts = [{"type": "thinking_delta", "thinking": part} for part in _split_text(block["thinking"], reply.chunks)]
        return block | {"thinking": "", "signature": ""}, [
            *parts,
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    if block["type"] == "text":
        parts = [{"type": "text_delta", "text": part} for part in _split_text(block["text"], reply.chunks)]
        return block | {"text": ""}, parts
    arguments = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
    return block | {"input": {}}, [
        {"type": "input_json_delta", "partial_json": part} for part in _split_text(arguments, 2)
    ]
