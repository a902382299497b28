"""Builds requests for the Anthropic messages API, including cache marks."""

import re
from collections.abc import Collection, Mapping
from typing import Any, Literal

from ostler.core.message import CallPart, Message, MessagePart, ThoughtPart
from ostler.core.prompt import ImageContent, TextContent
from ostler.core.tools import ToolResult, ToolSpec
from ostler.models.loose_json import write_json
from ostler.models.model_types import AssistantMessage, ModelRequest, RequestMessage, SystemMessage, UserMessage
from ostler.models.request_content import merge_text, split_files, system_note, tool_name

REDACTED_PREFIX = "redacted:"

_THINKING_BUDGETS = {"low": 2_048, "medium": 8_192, "high": 16_384}
_MIN_BUDGET = 1_024
_CACHE_CONTROL = {"type": "ephemeral"}
_INVALID_ID_CHARS = re.compile(r"[^a-zA-Z0-9_-]")


ThinkingForm = Literal["budget", "adaptive", "none"]


def messages_body(
    model: str, request: ModelRequest, max_tokens: int, extra: Mapping[str, Any], form: ThinkingForm = "budget"
) -> bytes:
    """Return the request body. Apart from cache marks it is a prefix of the next request's body."""
    messages = alternating_messages(request, model)
    body: dict[str, Any] = {"model": model, "stream": True, **extra, "max_tokens": max_tokens}
    if request.thinking not in (None, "off") and _can_think(messages):
        body.update(thinking_params(request.thinking, max_tokens, form))
    if "thinking" not in body:  # the API rejects these together with thinking
        sampling = {"temperature": request.temperature, "top_p": request.top_p}
        body.update({name: value for name, value in sampling.items() if value is not None})
    if request.tools:
        body["tools"] = [_tool_definition(spec) for spec in request.tools]
        body["tools"][-1]["cache_control"] = _CACHE_CONTROL
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHE_CONTROL}]
    body["messages"] = add_cache_marks(messages)
    return write_json(body)


def thinking_params(effort: str | None, max_tokens: int, form: ThinkingForm) -> dict[str, Any]:
    """Return the thinking parameters: a token budget within `max_tokens`, or an effort level for adaptive models."""
    if form == "adaptive":
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
    budget = min(_THINKING_BUDGETS.get(effort or "", 0), max_tokens - _MIN_BUDGET)
    if form == "none" or budget < _MIN_BUDGET:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _can_think(messages: list[dict[str, Any]]) -> bool:
    """Return False if the current turn started without a signed thought; the API then rejects thinking."""
    first_reply = None
    for message in reversed(messages):
        if message["role"] == "assistant":
            first_reply = message
        elif any(block["type"] != "tool_result" for block in message["content"]):
            break
    return first_reply is None or first_reply["content"][0]["type"] in ("thinking", "redacted_thinking")


def alternating_messages(request: ModelRequest, model: str) -> list[dict[str, Any]]:
    """Return the history as alternating user and assistant messages, starting with the user."""
    messages: list[dict[str, Any]] = []
    for entry in request.history:
        role = "assistant" if isinstance(entry, AssistantMessage) else "user"
        blocks = _content_blocks(entry, model, {tool.name for tool in request.tools})
        if not blocks:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"].extend(blocks)
        else:
            messages.append({"role": role, "content": blocks})
    if not messages or messages[0]["role"] != "user":
        messages.insert(0, {"role": "user", "content": [{"type": "text", "text": "(earlier messages omitted)"}]})
    return messages


def add_cache_marks(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add cache marks to the last two user messages: the end of the previous request and of this one."""
    for message in [message for message in messages if message["role"] == "user"][-2:]:
        message["content"][-1]["cache_control"] = _CACHE_CONTROL
    return messages


def _content_blocks(message: RequestMessage, model: str, tool_names: Collection[str]) -> list[dict[str, Any]]:
    if isinstance(message, UserMessage):
        files, rest = split_files(message.blocks)
        return [block for run in (*files, *merge_text(rest)) for block in _run_blocks(run)]
    if isinstance(message, SystemMessage):
        return _text_blocks(system_note(message.text))
    if isinstance(message, AssistantMessage):
        return _assistant_blocks(message.message, model, tool_names)
    return [_tool_result_block(result) for result in message.results]


def _run_blocks(run: str | ImageContent) -> list[dict[str, Any]]:
    return [_image_block(run)] if isinstance(run, ImageContent) else _text_blocks(run)


def _text_blocks(text: str) -> list[dict[str, Any]]:
    """Return a text block, or nothing for blank text, which the API rejects."""
    return [{"type": "text", "text": text}] if text.strip() else []


def _image_block(image: ImageContent) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": image.mime, "data": image.data}}


def _assistant_blocks(message: Message, model: str, tool_names: Collection[str]) -> list[dict[str, Any]]:
    """Return the parts in order, with calls last: their results must follow directly."""
    same_model = message.model in ("", model)
    parts = sorted(message.parts, key=lambda part: isinstance(part, CallPart))
    return [block for part in parts for block in _part_blocks(part, same_model, tool_names)]


def _part_blocks(part: MessagePart, same_model: bool, tool_names: Collection[str]) -> list[dict[str, Any]]:
    if isinstance(part, TextContent):
        return _text_blocks(part.text)
    if isinstance(part, CallPart):
        call = part.call
        name = tool_name(call.tool, tool_names)
        return [{"type": "tool_use", "id": _valid_id(call.id), "name": name, "input": call.arguments}]
    if isinstance(part, ThoughtPart) and same_model:
        return _thinking_blocks(part)
    return []


def _thinking_blocks(thought: ThoughtPart) -> list[dict[str, Any]]:
    """Return a thinking block. Thoughts without the API's signature are not sent back."""
    if thought.signature.startswith(REDACTED_PREFIX):
        return [{"type": "redacted_thinking", "data": thought.signature.removeprefix(REDACTED_PREFIX)}]
    return [{"type": "thinking", "thinking": thought.text, "signature": thought.signature}] if thought.signature else []


def _tool_result_block(result: ToolResult) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": _valid_id(result.call_id)}
    content = [*_text_blocks(result.for_model), *(_image_block(image) for image in result.images)]
    if content:
        block["content"] = content if result.images else result.for_model
    if result.status != "ok":
        block["is_error"] = True
    return block


def _tool_definition(spec: ToolSpec) -> dict[str, Any]:
    return {"name": spec.name, "description": spec.description, "input_schema": spec.schema}


def _valid_id(call_id: str) -> str:
    """Replace the characters in another server's call id that this API rejects."""
    return _INVALID_ID_CHARS.sub("_", call_id) or "call"
