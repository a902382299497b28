"""Writes calls and results in XNL, and the error texts for invalid blocks."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ostler.core.tools import ToolCall, ToolResult, ToolSpec
from ostler.models.loose_json import write_json
from ostler.xnl.call_blocks import BadCall, read_block, results_block
from ostler.xnl.scanner import UNQUOTE_END, UNQUOTE_START, MarkedBlock, scan
from ostler.xnl.tree import TextElement
from ostler.xnl.writer import format

BUILT_IN_NAMESPACE = "SysBuiltIn"

_UNCLOSED = "Nothing ran: the block is not closed. Send the complete block again with its end marker."
_NO_CALL = "Nothing ran: the block contains no <tool_call>. Write one, or omit the block."
_ESCAPED_END = "!\\unquote_end"
_MAX_SHOWN = 2_000


def qualified_name(tool: str) -> str:
    """Return a tool's name with a namespace; built-in tools get one."""
    return tool if "." in tool else f"{BUILT_IN_NAMESPACE}.{tool}"


def tool_route(tool: ToolSpec) -> str:
    """Return the name under which a tool is called: `<server>.<tool>` for a tool of an MCP server."""
    rest = tool.name.removeprefix(f"{tool.namespace}_") if tool.namespace else tool.name
    return f"{tool.namespace}.{rest}" if rest != tool.name else qualified_name(tool.name)


def write_calls(calls: Sequence[ToolCall], routes: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return one block with these calls. An unreadable call becomes a placeholder.

    `routes` are the names under which tools are called, where they differ from `qualified_name`.
    """
    elements = (
        TextElement("tool_call", {"id": call.id, "lang": "javascript"}, _call_code(call, routes)) for call in calls
    )
    return "\n".join((UNQUOTE_START, *map(format, elements), UNQUOTE_END))


def write_results(results: Sequence[ToolResult], calls: Mapping[str, ToolCall]) -> str:
    """Return one block with the results. End markers in an output are escaped."""
    outputs = ((result.call_id, _result_output(result, calls.get(result.call_id))) for result in results)
    return results_block([(call_id, output.replace(UNQUOTE_END, _ESCAPED_END)) for call_id, output in outputs])


def explain_block(block: str, call_id: str) -> str:
    """Return the error message for a block with its markers. The same block always gives the same message."""
    marked = next((marked for marked in scan(block) if isinstance(marked, MarkedBlock)), None)
    if marked is None:
        return _UNCLOSED
    bad = [entry for entry in read_block(marked.text) if isinstance(entry, BadCall)]
    failed = next((entry for entry in bad if entry.id == call_id), bad[0] if bad else None)
    return f"{failed.error}: {failed.message}" if failed else _NO_CALL


def _is_unreadable(call: ToolCall | None) -> bool:
    return call is not None and call.raw.startswith(UNQUOTE_START)


def _call_code(call: ToolCall, routes: Mapping[str, str]) -> str:
    if _is_unreadable(call):
        return "/* not understood */"
    # Escaped, so that an argument cannot end the block.
    arguments = write_json(call.arguments).decode().replace("!unquote_", "\\u0021unquote_")
    function = routes.get(call.tool) or qualified_name(call.tool)
    if all(part.isidentifier() for part in function.split(".")) and function.count(".") == 1:
        return f"{function}({arguments})"
    return f'{{"name":{write_json(function).decode()},"arguments":{arguments}}}'


def _result_output(result: ToolResult, call: ToolCall | None) -> str:
    if call is None or not _is_unreadable(call):
        return result.for_model or "(no output)"
    source = call.raw.removeprefix(UNQUOTE_START).removesuffix(UNQUOTE_END).strip()
    return f"{explain_block(call.raw, call.id)}\nYou wrote:\n{source[:_MAX_SHOWN]}"
