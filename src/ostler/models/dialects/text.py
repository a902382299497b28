"""Tools described in the system prompt and called in the text, for servers that know nothing of tools."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ostler.models.call_ids import CallIds
from ostler.models.dialects.history import in_words
from ostler.models.dialects.native import TextEar, known_tools
from ostler.models.loose_json import write_json
from ostler.models.words import Request
from ostler.vocabulary.tools import ToolCall, ToolResult, ToolSpec


class Text:
    """No tools in the request: what they are, what was called and what came of it are all words."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases

    def write(self, request: Request) -> Request:
        system = f"{request.system}\n\n{_guide(request.tools)}" if request.tools else request.system
        history = in_words(request.history, write_calls, write_results)
        return msgspec.structs.replace(request, system=system, history=history, tools=())

    def listen(self, request: Request, ids: CallIds) -> TextEar:
        return TextEar(*known_tools(request.tools, self._aliases), ids)


def write_calls(calls: Sequence[ToolCall]) -> str:
    """Calls as the model is asked to write them, whatever it wrote."""
    written = (write_json({"name": call.tool, "arguments": call.arguments}).decode() for call in calls)
    return "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in written)


def write_results(results: Sequence[ToolResult], calls: Mapping[str, ToolCall]) -> str:
    """The results of a message's calls; an output cannot end its own block."""
    return "\n".join(_result(result, calls.get(result.call_id)) for result in results)


def _result(result: ToolResult, call: ToolCall | None) -> str:
    tool = write_json(call.tool if call else "unknown").decode()
    output = result.for_model.replace("</tool_response", "<\\/tool_response")
    return f"<tool_response tool={tool}>\n{output}\n</tool_response>"


def _guide(tools: Sequence[ToolSpec]) -> str:
    guide = Path(__file__).with_name("text.md").read_text(encoding="utf-8").strip()
    return guide.format(tools="\n".join(map(_line, tools)))


def _line(tool: ToolSpec) -> str:
    told = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return write_json(told).decode()
