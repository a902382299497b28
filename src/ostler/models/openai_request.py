"""Requests to an OpenAI-compatible server: the same history gives the same bytes, a longer one only adds."""

from collections.abc import Collection, Mapping
from typing import Any, Literal

import msgspec

from ostler.models.failures import role_refused
from ostler.models.loose_json import write_json
from ostler.models.speech import files_apart, least_of, runs_of, system_note, tool_name
from ostler.models.words import ModelSaid, Request, Said, SystemSaid, Thinking, ToolsSaid, UserSaid
from ostler.vocabulary.message import Message
from ostler.vocabulary.prompt import Image, Text
from ostler.vocabulary.tools import ToolResult, ToolSpec

_LIMIT_NAMES = ("max_completion_tokens", "max_tokens")
_LIMIT_WORDS = (*_LIMIT_NAMES, "in the completion")


class Habits(msgspec.Struct, frozen=True):
    """What a server turned out not to take, learned from its refusals and kept for the client's life."""

    usage: bool = True
    system: Literal["anywhere", "first", "never"] = "anywhere"
    limit_name: str = "max_tokens"
    too_much: int | None = None
    left_out: frozenset[str] = frozenset()

    def learned(self, said: str, request: Request) -> "Habits | None":
        """Habits changed by a refusal that names what we sent; None when it names nothing that could be changed."""
        said = said.lower()
        if self.usage and ("stream_options" in said or "include_usage" in said):
            return msgspec.structs.replace(self, usage=False)
        if self.limit_name == "max_tokens" and "max_tokens" in said and "max_completion_tokens" in said:
            return msgspec.structs.replace(self, limit_name="max_completion_tokens")
        if self.limit(request) and any(word in said for word in _LIMIT_WORDS):
            return msgspec.structs.replace(self, too_much=request.max_tokens)
        if self.system != "never" and role_refused(said):
            return msgspec.structs.replace(self, system="first" if self.system == "anywhere" else "never")
        for name, sent in self._optional(request).items():
            if name in said and sent is not None:
                return msgspec.structs.replace(self, left_out=self.left_out | {name})
        return None

    def limit(self, request: Request) -> int | None:
        """The most tokens for the reply; a server that refuses so many has a limit of its own, which is lower."""
        most = request.max_tokens
        return None if most is not None and self.too_much is not None and most >= self.too_much else most

    def settings(self, request: Request) -> dict[str, Any]:
        """What the request says of sampling and reasoning, as far as the server takes it."""
        return {name: value for name, value in self._optional(request).items() if value is not None}

    def _optional(self, request: Request) -> dict[str, Any]:
        own = {"temperature": request.temperature, "top_p": request.top_p, **_reasoning(request.thinking)}
        return {name: value for name, value in own.items() if name not in self.left_out}


def chat_body(model: str, request: Request, habits: Habits, extra: Mapping[str, Any]) -> bytes:
    """The request's body; the messages stand last, so that all of it is a prefix of the next one's."""
    body: dict[str, Any] = {"model": model, "stream": True, **extra}
    if habits.usage:
        body["stream_options"] = {"include_usage": True}
    if most := habits.limit(request):
        name = next((name for name in _LIMIT_NAMES if name in extra), habits.limit_name)
        body[name] = least_of(most, extra.get(name))
    for name, value in habits.settings(request).items():
        body[name] = {**body[name], **value} if isinstance(body.get(name), dict) and isinstance(value, dict) else value
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
    body["messages"] = chat_messages(request, habits)
    return write_json(body)


def _reasoning(thinking: Thinking | None) -> dict[str, Any]:
    """How much to reason, in the two ways there are: a word that servers know, and a switch of the chat template."""
    if thinking is None:
        return {}
    wanted = thinking != "off"
    return {
        "reasoning_effort": thinking if wanted else "none",
        "chat_template_kwargs": {"enable_thinking": wanted, "thinking": wanted},
    }


def chat_messages(request: Request, habits: Habits) -> list[dict[str, Any]]:
    """System prompt and history as chat messages."""
    messages: list[dict[str, Any]] = []
    if request.system and habits.system == "never":
        messages.append({"role": "user", "content": system_note(request.system)})
    elif request.system:
        messages.append({"role": "system", "content": request.system})
    offered = {tool.name for tool in request.tools}
    for said in request.history:
        for message in _said(said, habits, offered):
            _append(messages, message, joining=habits.system != "anywhere")
    return messages


def _append(messages: list[dict[str, Any]], message: dict[str, Any], *, joining: bool) -> None:
    """Add a message; where roles must take turns, the user's words that follow each other become one message."""
    last = messages[-1] if messages else {}
    if joining and message["role"] == "user" and last.get("role") == "user":
        last["content"] = _joined(last["content"], message["content"])
    else:
        messages.append(message)


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    parts = [
        [{"type": "text", "text": content}] if isinstance(content, str) else content for content in (first, second)
    ]
    return parts[0] + parts[1]


def _said(said: Said, habits: Habits, offered: Collection[str]) -> list[dict[str, Any]]:
    if isinstance(said, UserSaid):
        return _user(said, habits)
    if isinstance(said, SystemSaid):
        if habits.system == "anywhere":
            return [{"role": "system", "content": said.text}]
        return [{"role": "user", "content": system_note(said.text)}]
    if isinstance(said, ModelSaid):
        return [_assistant(said.message, offered)]
    return _results(said)


def _user(said: UserSaid, habits: Habits) -> list[dict[str, Any]]:
    """A prompt, with the files it brings along ahead of it."""
    files, rest = files_apart(said.blocks)
    if habits.system == "anywhere" and rest:
        ahead = [{"role": "system", "content": file} for file in files]
        return [*ahead, {"role": "user", "content": _content(runs_of(rest))}]
    return [{"role": "user", "content": _content(runs_of((*map(Text, files), *rest)))}]


def _content(runs: list[str | Image]) -> str | list[dict[str, Any]]:
    if not runs:
        return ""
    if len(runs) == 1 and isinstance(runs[0], str):
        return runs[0]
    return [_picture(run) if isinstance(run, Image) else {"type": "text", "text": run} for run in runs]


def _picture(image: Image) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{image.mime};base64,{image.data}"}}


def _assistant(message: Message, offered: Collection[str]) -> dict[str, Any]:
    """Calls go back with their arguments encoded anew: what a model broke is never sent to a server again."""
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": tool_name(call.tool, offered), "arguments": write_json(call.arguments).decode()},
        }
        for call in message.calls
    ]
    if not calls:
        return {"role": "assistant", "content": message.text}
    return {"role": "assistant", "content": message.text or None, "tool_calls": calls}


def _results(said: ToolsSaid) -> list[dict[str, Any]]:
    """One message for each result; pictures, which that role cannot carry, follow in the user's."""
    messages = [_result(result) for result in said.results]
    pictures: list[str | Image] = [image for result in said.results for image in result.images]
    if pictures:
        messages.append({"role": "user", "content": _content(["Pictures from the tools:", *pictures])})
    return messages


def _result(result: ToolResult) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": result.call_id, "content": result.for_model}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.schema}
    return {"type": "function", "function": function}
