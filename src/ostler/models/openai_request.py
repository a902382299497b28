"""Builds chat completion requests; the same history always gives the same bytes."""

from collections.abc import Collection, Mapping
from typing import Any, Literal

import msgspec

from ostler.core.message import Message
from ostler.core.prompt import ImageContent, TextContent
from ostler.core.sessions import Thinking
from ostler.core.tools import ToolSpec
from ostler.models.loose_json import write_json
from ostler.models.model_errors import is_role_error
from ostler.models.model_types import (
    AssistantMessage,
    ModelRequest,
    RequestMessage,
    SystemMessage,
    ToolResultsMessage,
    UserMessage,
)
from ostler.models.request_content import merge_text, min_limit, split_files, system_note, tool_name

_LIMIT_NAMES = ("max_completion_tokens", "max_tokens")
_LIMIT_PHRASES = (*_LIMIT_NAMES, "in the completion")


class ServerQuirks(msgspec.Struct, frozen=True):
    """Request features that a server rejected; learned from its errors, for the lifetime of the client."""

    sends_usage_option: bool = True
    system_role: Literal["anywhere", "first", "never"] = "anywhere"
    limit_name: str = "max_tokens"
    rejected_limit: int | None = None
    omitted: frozenset[str] = frozenset()

    def adapt(self, error_text: str, request: ModelRequest) -> "ServerQuirks | None":
        """Return quirks adapted to an error that names a part of the request, or None if nothing can be changed."""
        error_text = error_text.lower()
        if self.sends_usage_option and ("stream_options" in error_text or "include_usage" in error_text):
            return msgspec.structs.replace(self, sends_usage_option=False)
        if self.limit_name == "max_tokens" and "max_tokens" in error_text and "max_completion_tokens" in error_text:
            return msgspec.structs.replace(self, limit_name="max_completion_tokens")
        if self.reply_limit(request) and any(word in error_text for word in _LIMIT_PHRASES):
            return msgspec.structs.replace(self, rejected_limit=request.max_tokens)
        if self.system_role != "never" and is_role_error(error_text):
            return msgspec.structs.replace(self, system_role="first" if self.system_role == "anywhere" else "never")
        for name, sent in self._optional_params(request).items():
            if name in error_text and sent is not None:
                return msgspec.structs.replace(self, omitted=self.omitted | {name})
        return None

    def reply_limit(self, request: ModelRequest) -> int | None:
        """Return the maximum tokens to send, or None if the server rejected that many and applies its own limit."""
        requested = request.max_tokens
        return (
            None
            if requested is not None and self.rejected_limit is not None and requested >= self.rejected_limit
            else requested
        )

    def sampling_params(self, request: ModelRequest) -> dict[str, Any]:
        """Return the sampling and reasoning parameters, without those that the server rejected."""
        return {name: value for name, value in self._optional_params(request).items() if value is not None}

    def _optional_params(self, request: ModelRequest) -> dict[str, Any]:
        params = {"temperature": request.temperature, "top_p": request.top_p, **_reasoning_params(request.thinking)}
        return {name: value for name, value in params.items() if name not in self.omitted}


def chat_body(model: str, request: ModelRequest, quirks: ServerQuirks, extra: Mapping[str, Any]) -> bytes:
    """Return the request body. The messages come last, so that it is a prefix of the next request's body."""
    body: dict[str, Any] = {"model": model, "stream": True, **extra}
    if quirks.sends_usage_option:
        body["stream_options"] = {"include_usage": True}
    if limit := quirks.reply_limit(request):
        name = next((name for name in _LIMIT_NAMES if name in extra), quirks.limit_name)
        body[name] = min_limit(limit, extra.get(name))
    for name, value in quirks.sampling_params(request).items():
        body[name] = {**body[name], **value} if isinstance(body.get(name), dict) and isinstance(value, dict) else value
    if request.tools:
        body["tools"] = [_tool_definition(spec) for spec in request.tools]
    body["messages"] = chat_messages(request, quirks)
    return write_json(body)


def _reasoning_params(thinking: Thinking | None) -> dict[str, Any]:
    """Return the reasoning parameters: the effort level, and the switches that chat templates use."""
    if thinking is None:
        return {}
    enabled = thinking != "off"
    return {
        "reasoning_effort": thinking if enabled else "none",
        "chat_template_kwargs": {"enable_thinking": enabled, "thinking": enabled},
    }


def chat_messages(request: ModelRequest, quirks: ServerQuirks) -> list[dict[str, Any]]:
    """Return system prompt and history as chat messages."""
    messages: list[dict[str, Any]] = []
    if request.system and quirks.system_role == "never":
        messages.append({"role": "user", "content": system_note(request.system)})
    elif request.system:
        messages.append({"role": "system", "content": request.system})
    tool_names = {tool.name for tool in request.tools}
    for entry in request.history:
        for message in _encode_message(entry, quirks, tool_names):
            _append_message(messages, message, merge_user=quirks.system_role != "anywhere")
    return messages


def _append_message(messages: list[dict[str, Any]], message: dict[str, Any], *, merge_user: bool) -> None:
    """Add a message. With `merge_user` it is merged into a preceding user message, because roles must alternate."""
    last = messages[-1] if messages else {}
    if merge_user and message["role"] == "user" and last.get("role") == "user":
        last["content"] = _join_content(last["content"], message["content"])
    else:
        messages.append(message)


def _join_content(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    parts = [
        [{"type": "text", "text": content}] if isinstance(content, str) else content for content in (first, second)
    ]
    return parts[0] + parts[1]


def _encode_message(message: RequestMessage, quirks: ServerQuirks, tool_names: Collection[str]) -> list[dict[str, Any]]:
    if isinstance(message, UserMessage):
        return _user_messages(message, quirks)
    if isinstance(message, SystemMessage):
        if quirks.system_role == "anywhere":
            return [{"role": "system", "content": message.text}]
        return [{"role": "user", "content": system_note(message.text)}]
    if isinstance(message, AssistantMessage):
        return [_assistant_message(message.message, tool_names)]
    return _tool_messages(message)


def _user_messages(message: UserMessage, quirks: ServerQuirks) -> list[dict[str, Any]]:
    """Return a prompt, with its attached files before it."""
    files, rest = split_files(message.blocks)
    if quirks.system_role == "anywhere" and rest:
        file_messages = [{"role": "system", "content": file} for file in files]
        return [*file_messages, {"role": "user", "content": _encode_content(merge_text(rest))}]
    return [{"role": "user", "content": _encode_content(merge_text((*map(TextContent, files), *rest)))}]


def _encode_content(runs: list[str | ImageContent]) -> str | list[dict[str, Any]]:
    if not runs:
        return ""
    if len(runs) == 1 and isinstance(runs[0], str):
        return runs[0]
    return [
        {"type": "image_url", "image_url": {"url": f"data:{run.mime};base64,{run.data}"}}
        if isinstance(run, ImageContent)
        else {"type": "text", "text": run}
        for run in runs
    ]


def _assistant_message(message: Message, tool_names: Collection[str]) -> dict[str, Any]:
    """Return the model's message. Call arguments are encoded again, so that invalid JSON is never sent back."""
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": tool_name(call.tool, tool_names), "arguments": write_json(call.arguments).decode()},
        }
        for call in message.calls
    ]
    if not calls:
        return {"role": "assistant", "content": message.text}
    return {"role": "assistant", "content": message.text or None, "tool_calls": calls}


def _tool_messages(message: ToolResultsMessage) -> list[dict[str, Any]]:
    """Return one message per result. Images follow in a user message, because the tool role cannot contain them."""
    messages: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": result.call_id, "content": result.for_model} for result in message.results
    ]
    images: list[str | ImageContent] = [image for result in message.results for image in result.images]
    if images:
        messages.append({"role": "user", "content": _encode_content(["Images from the tools:", *images])})
    return messages


def _tool_definition(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.schema}
    return {"type": "function", "function": function}
