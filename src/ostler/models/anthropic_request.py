"""Requests to the Anthropic messages API: roles that take turns, and marks where its cache may cut."""

import re
from collections.abc import Collection, Mapping
from typing import Any, Literal

from ostler.models.loose_json import write_json
from ostler.models.speech import files_apart, runs_of, system_note, tool_name
from ostler.models.words import ModelSaid, Request, Said, SystemSaid, UserSaid
from ostler.vocabulary.message import Called, Message, Part, Thought
from ostler.vocabulary.prompt import Image, Text
from ostler.vocabulary.tools import ToolResult, ToolSpec

REDACTED = "redacted:"

_BUDGETS = {"low": 2_048, "medium": 8_192, "high": 16_384}
_SMALLEST_BUDGET = 1_024
_MARK = {"type": "ephemeral"}
_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")


ThinkingForm = Literal["budget", "adaptive", "none"]


def messages_body(
    model: str, request: Request, max_tokens: int, extra: Mapping[str, Any], form: ThinkingForm = "budget"
) -> bytes:
    """The request's body; but for the cache's marks all of it is a prefix of the next one's."""
    messages = turns(request, model)
    body: dict[str, Any] = {"model": model, "stream": True, **extra, "max_tokens": max_tokens}
    if request.thinking not in (None, "off") and _may_think(messages):
        body.update(thinking(request.thinking, max_tokens, form))
    if "thinking" not in body:  # with thinking the API refuses to have these set
        chosen = {"temperature": request.temperature, "top_p": request.top_p}
        body.update({name: value for name, value in chosen.items() if value is not None})
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
        body["tools"][-1]["cache_control"] = _MARK
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _MARK}]
    body["messages"] = marked(messages)
    return write_json(body)


def thinking(effort: str | None, max_tokens: int, form: ThinkingForm) -> dict[str, Any]:
    """How much to reason: a budget out of the reply's own, or a word where the model settles its budget itself."""
    if form == "adaptive":
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
    budget = min(_BUDGETS.get(effort or "", 0), max_tokens - _SMALLEST_BUDGET)
    if form == "none" or budget < _SMALLEST_BUDGET:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _may_think(messages: list[dict[str, Any]]) -> bool:
    """The API refuses to think on where a turn with calls began without a thought that it sealed."""
    begun = None
    for message in reversed(messages):
        if message["role"] == "assistant":
            begun = message
        elif any(block["type"] != "tool_result" for block in message["content"]):
            break
    return begun is None or begun["content"][0]["type"] in ("thinking", "redacted_thinking")


def turns(request: Request, model: str) -> list[dict[str, Any]]:
    """The history in turns of user and assistant, beginning with the user."""
    messages: list[dict[str, Any]] = []
    for said in request.history:
        role = "assistant" if isinstance(said, ModelSaid) else "user"
        blocks = _blocks(said, model, {tool.name for tool in request.tools})
        if not blocks:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"].extend(blocks)
        else:
            messages.append({"role": role, "content": blocks})
    if not messages or messages[0]["role"] != "user":
        messages.insert(0, {"role": "user", "content": [{"type": "text", "text": "(the beginning was left out)"}]})
    return messages


def marked(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cache marks at the user's last two turns: the one the last request ended with, and the one this one does."""
    for message in [message for message in messages if message["role"] == "user"][-2:]:
        message["content"][-1]["cache_control"] = _MARK
    return messages


def _blocks(said: Said, model: str, offered: Collection[str]) -> list[dict[str, Any]]:
    if isinstance(said, UserSaid):
        files, rest = files_apart(said.blocks)
        return [block for run in (*files, *runs_of(rest)) for block in _run(run)]
    if isinstance(said, SystemSaid):
        return _text(system_note(said.text))
    if isinstance(said, ModelSaid):
        return _assistant(said.message, model, offered)
    return [_result(result) for result in said.results]


def _run(run: str | Image) -> list[dict[str, Any]]:
    return [_picture(run)] if isinstance(run, Image) else _text(run)


def _text(text: str) -> list[dict[str, Any]]:
    """A text block; the API refuses empty ones."""
    return [{"type": "text", "text": text}] if text.strip() else []


def _picture(image: Image) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": image.mime, "data": image.data}}


def _assistant(message: Message, model: str, offered: Collection[str]) -> list[dict[str, Any]]:
    """The parts in their order, but calls last: their results must follow them at once."""
    own = message.model in ("", model)
    parts = sorted(message.parts, key=lambda part: isinstance(part, Called))
    return [block for part in parts for block in _part(part, own, offered)]


def _part(part: Part, own: bool, offered: Collection[str]) -> list[dict[str, Any]]:
    if isinstance(part, Text):
        return _text(part.text)
    if isinstance(part, Called):
        call = part.call
        name = tool_name(call.tool, offered)
        return [{"type": "tool_use", "id": _id(call.id), "name": name, "input": call.arguments}]
    if isinstance(part, Thought) and own:
        return _thought(part)
    return []


def _thought(thought: Thought) -> list[dict[str, Any]]:
    """Reasoning goes back only with the seal the API gave it."""
    if thought.seal.startswith(REDACTED):
        return [{"type": "redacted_thinking", "data": thought.seal.removeprefix(REDACTED)}]
    return [{"type": "thinking", "thinking": thought.text, "signature": thought.seal}] if thought.seal else []


def _result(result: ToolResult) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": _id(result.call_id)}
    content = [*_text(result.for_model), *(_picture(image) for image in result.images)]
    if content:
        block["content"] = content if result.images else result.for_model
    if result.status != "ok":
        block["is_error"] = True
    return block


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {"name": spec.name, "description": spec.description, "input_schema": spec.schema}


def _id(call_id: str) -> str:
    """Ids of other servers' calls in the characters this API takes."""
    return _NOT_IN_IDS.sub("_", call_id) or "call"
