"""How the embedded model is spoken to: each reply is one step, a JSON object that a schema holds it to.

A model this small writes calls that are almost right. Held to the schema it cannot write another, so there is nothing
to mend; and what it says first, in `say`, is both its reasoning and the words that a person sees.
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
STUCK_TEMPERATURE = 0.7  # the temperature where the surest step has just failed

# The tools in the order of their use to it: what each does, and all that it is told of the parameters.
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
    """The system prompt of a model that has room for no more."""
    return Path(__file__).with_name("prompt.md").read_text(encoding="utf-8").strip()


def embedded_tools(tools: Sequence[ToolSpec]) -> list[ToolSpec]:
    """The few of the tools that it can handle, in few words."""
    known = {tool.name: tool for tool in tools}
    return [_shorten_tool(known[name]) for name in _SHORT_TOOLS if name in known][:MAX_TOOLS]


def _shorten_tool(tool: ToolSpec) -> ToolSpec:
    told, parameters = _SHORT_TOOLS[tool.name]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in parameters}}
    return msgspec.structs.replace(tool, description=told, schema={**schema, "required": list(parameters)})


def step_schema(request: ModelRequest) -> dict[str, Any]:
    """The steps there are: one for each tool, and the last one where it may come."""
    steps = [_tool_step_schema(tool.name, tool.schema.get("properties", {})) for tool in request.tools]
    return {"anyOf": [*steps, *([_tool_step_schema(DONE, {})] if may_end(request.history) else [])]}


def _tool_step_schema(tool: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"say": {"type": "string"}, "tool": {"const": tool}, **properties}
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def encode_request(request: ModelRequest) -> ModelRequest:
    """The request in words alone; the same history always becomes the same words."""
    system = f"{request.system}\n\n{_tool_guide(request.tools)}" if request.tools else request.system
    temperature = STUCK_TEMPERATURE if is_stuck(request.history) else request.temperature
    words = render_history(request.history)
    return msgspec.structs.replace(request, system=system, history=words, tools=(), temperature=temperature)


def _tool_guide(tools: Sequence[ToolSpec]) -> str:
    lines = [f"- {tool.name} ({', '.join(tool.schema.get('properties', {}))}): {tool.description}" for tool in tools]
    return "\n".join([*lines, f"- {DONE}: nothing is left to do; `say` is your answer"])


class StepParser:
    """Hears one step, in pieces of any size: what it says at once, the call when the step is whole."""

    def __init__(self, ids: CallIds) -> None:
        self._ids = ids
        self._text = ""
        self._sent_length = 0

    def feed(self, text: str) -> list[ReplyChunk]:
        self._text += text
        found = _SAY_FIELD.match(self._text)
        said = _decode_partial(found[1]) if found else ""
        new, self._sent_length = said[self._sent_length :], max(self._sent_length, len(said))
        return [TextChunk(new)] if new else []

    def finish(self) -> list[ReplyChunk]:
        """The call, if the step has one; words that are no step are only words."""
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
    """What a JSON string holds so far; half of a character waits for its other half."""
    said: str = json.loads(f'"{text}"', strict=False)
    return said[:-1] if "\ud800" <= said[-1:] <= "\udbff" else said
