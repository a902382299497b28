"""The embedded model's reply format: one JSON step per reply, enforced by a schema.

A model this small writes calls that are almost right. The schema makes invalid calls impossible. The first field,
`say`, is both the model's reasoning and the text that the user sees.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ostler.core.tools import ToolSpec
from ostler.models.call_ids import CallIds
from ostler.models.embedded.step_history import DONE, encode_step, is_stuck, may_end, render_history
from ostler.models.model_types import CallChunk, ModelRequest, ReplyChunk, TextChunk

MAX_TOOLS = 5
STUCK_TEMPERATURE = 0.7  # used after a failed step, to avoid repeating it

# The tools in order of usefulness, with the short description and the parameters that the model sees.
_SHORT_TOOLS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "bash": ("run a shell command", ("command",)),
    "read": ("see a file", ("path",)),
    "edit": ("in a file, put `new` in the place of `old`", ("path", "old", "new")),
    "write": ("make a new file", ("path", "content")),
    "grep": ("search all files", ("pattern",)),
    "list": ("see a folder", ("path",)),
}
_SAY_FIELD = re.compile(r'\s*\{\s*"say"\s*:\s*"((?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*)')


def embedded_prompt() -> str:
    """Return the short system prompt of the embedded model."""
    return Path(__file__).with_name("prompt.md").read_text(encoding="utf-8").strip()


def embedded_tools(tools: Sequence[ToolSpec]) -> list[ToolSpec]:
    """Return the few tools that the model can handle, with short descriptions."""
    known = {tool.name: tool for tool in tools}
    return [_shorten_tool(known[name]) for name in _SHORT_TOOLS if name in known][:MAX_TOOLS]


def _shorten_tool(tool: ToolSpec) -> ToolSpec:
    description, parameters = _SHORT_TOOLS[tool.name]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in parameters}}
    return msgspec.structs.replace(tool, description=description, schema={**schema, "required": list(parameters)})


def step_schema(request: ModelRequest) -> dict[str, Any]:
    """Return the schema of a step: one form for each tool, and `done` if the turn may end."""
    steps = [_tool_step_schema(tool.name, tool.schema.get("properties", {})) for tool in request.tools]
    return {"anyOf": [*steps, *([_tool_step_schema(DONE, {})] if may_end(request.history) else [])]}


def _tool_step_schema(tool: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"say": {"type": "string"}, "tool": {"const": tool}, **properties}
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def encode_request(request: ModelRequest) -> ModelRequest:
    """Return the request with tools and calls as text. The same history always gives the same text."""
    system = f"{request.system}\n\n{_tool_guide(request.tools)}" if request.tools else request.system
    temperature = STUCK_TEMPERATURE if is_stuck(request.history) else request.temperature
    history = render_history(request.history)
    return msgspec.structs.replace(request, system=system, history=history, tools=(), temperature=temperature)


def _tool_guide(tools: Sequence[ToolSpec]) -> str:
    lines = [f"- {tool.name} ({', '.join(tool.schema.get('properties', {}))}): {tool.description}" for tool in tools]
    return "\n".join([*lines, f"- {DONE}: nothing is left to do; `say` is your answer"])


class StepParser:
    """Parses one streamed step: returns its `say` text immediately and the call when the step is complete."""

    def __init__(self, ids: CallIds) -> None:
        self._ids = ids
        self._text = ""
        self._sent_length = 0

    def feed(self, text: str) -> list[ReplyChunk]:
        self._text += text
        match = _SAY_FIELD.match(self._text)
        say = _decode_partial(match[1]) if match else ""
        new, self._sent_length = say[self._sent_length :], max(self._sent_length, len(say))
        return [TextChunk(new)] if new else []

    def finish(self) -> list[ReplyChunk]:
        """Return the call, if the step has one. A reply that is not a step is returned as text."""
        try:
            step = json.loads(self._text)
        except (ValueError, RecursionError):
            step = None
        if not isinstance(step, dict):
            return [TextChunk(self._text)] if self._text and not _SAY_FIELD.match(self._text) else []
        tool = step.pop("tool", DONE)
        step.pop("say", "")
        return [] if tool == DONE else [CallChunk(self._ids.allocate(), str(tool), encode_step(step))]


def _decode_partial(text: str) -> str:
    """Decode a partial JSON string, without a surrogate at its end whose second half is missing."""
    decoded: str = json.loads(f'"{text}"', strict=False)
    return decoded[:-1] if "\ud800" <= decoded[-1:] <= "\udbff" else decoded
