"""The text dialect: tools described in the system prompt, calls as `<tool_call>` blocks."""

from collections.abc import Mapping, Sequence

import msgspec

from ostler.core.package_data import read_text
from ostler.core.tools import ToolCall, ToolResult, ToolSpec
from ostler.models.call_ids import CallIds
from ostler.models.dialects.history import to_text_history
from ostler.models.dialects.native import TextCallParser, known_tools
from ostler.models.dialects.quoted_calls import ShownTexts, explain_quoted_calls
from ostler.models.loose_json import write_json
from ostler.models.model_types import ModelRequest


class TextDialect:
    """Sends tools, calls and results as text, for servers without tool support."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases

    def encode_request(self, request: ModelRequest) -> ModelRequest:
        system = f"{request.system}\n\n{_tool_guide(request.tools)}" if request.tools else request.system
        history = to_text_history(explain_quoted_calls(request.history), write_calls, write_results)
        return msgspec.structs.replace(request, system=system, history=history, tools=())

    def new_parser(self, request: ModelRequest, ids: CallIds, *, makes_api_calls: bool) -> TextCallParser:
        return TextCallParser(*known_tools(request.tools, self._aliases), ids, ShownTexts(request.history))


def write_calls(calls: Sequence[ToolCall]) -> str:
    """Return calls in the format that the model is asked to use, also if it wrote another."""
    encoded = (write_json({"name": call.tool, "arguments": call.arguments}).decode() for call in calls)
    return "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in encoded)


def write_results(results: Sequence[ToolResult], calls: Mapping[str, ToolCall]) -> str:
    """Return result blocks. Closing tags in an output are escaped."""
    return "\n".join(_result_block(result, calls.get(result.call_id)) for result in results)


def _result_block(result: ToolResult, call: ToolCall | None) -> str:
    tool = write_json(call.tool if call else "unknown").decode()
    output = result.for_model.replace("</tool_response", "<\\/tool_response")
    return f"<tool_response tool={tool}>\n{output}\n</tool_response>"


def _tool_guide(tools: Sequence[ToolSpec]) -> str:
    guide = read_text("models/dialects/text.md")
    return guide.format(tools="\n".join(map(_tool_line, tools)))


def _tool_line(tool: ToolSpec) -> str:
    definition = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return write_json(definition).decode()
