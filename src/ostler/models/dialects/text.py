"""Tools described in the system prompt and called in the text, for servers that know nothing of tools."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ostler.core.tools import ToolCall, ToolResult, ToolSpec
from ostler.models.call_ids import CallIds
from ostler.models.dialects.history import to_text_history
from ostler.models.dialects.native import TextCallParser, known_tools
from ostler.models.loose_json import write_json
from ostler.models.model_types import ModelRequest


class TextDialect:
    """No tools in the request: what they are, what was called and what came of it are all words."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases

    def encode_request(self, request: ModelRequest) -> ModelRequest:
        system = f"{request.system}\n\n{_tool_guide(request.tools)}" if request.tools else request.system
        history = to_text_history(request.history, write_calls, write_results)
        return msgspec.structs.replace(request, system=system, history=history, tools=())

    def new_parser(self, request: ModelRequest, ids: CallIds) -> TextCallParser:
        return TextCallParser(*known_tools(request.tools, self._aliases), ids)


def write_calls(calls: Sequence[ToolCall]) -> str:
    """Calls as the model is asked to write them, whatever it wrote."""
    written = (write_json({"name": call.tool, "arguments": call.arguments}).decode() for call in calls)
    return "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in written)


def write_results(results: Sequence[ToolResult], calls: Mapping[str, ToolCall]) -> str:
    """The results of a message's calls; an output cannot end its own block."""
    return "\n".join(_result_block(result, calls.get(result.call_id)) for result in results)


def _result_block(result: ToolResult, call: ToolCall | None) -> str:
    tool = write_json(call.tool if call else "unknown").decode()
    output = result.for_model.replace("</tool_response", "<\\/tool_response")
    return f"<tool_response tool={tool}>\n{output}\n</tool_response>"


def _tool_guide(tools: Sequence[ToolSpec]) -> str:
    guide = Path(__file__).with_name("text.md").read_text(encoding="utf-8").strip()
    return guide.format(tools="\n".join(map(_tool_line, tools)))


def _tool_line(tool: ToolSpec) -> str:
    told = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return write_json(told).decode()
