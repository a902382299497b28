"""Calls and results in the XNL dialect: how they are written, and what a model is told of a block that cannot run."""

from collections.abc import Mapping, Sequence

from ostler.core.tools import ToolCall, ToolResult
from ostler.models.loose_json import write_json
from ostler.xnl.call_blocks import BadCall, read_block, results_block
from ostler.xnl.scanner import UNQUOTE_END, UNQUOTE_START, MarkedBlock, scan
from ostler.xnl.tree import TextElement
from ostler.xnl.writer import format

BUILT_IN_NAMESPACE = "SysBuiltIn"
UNREADABLE_CALL = "tool_call"

_UNCLOSED = "Nothing ran: the block was not closed. Send it again, whole, with the mark that ends it."
_NO_CALL = "Nothing ran: there is no <tool_call> in the block. Write one, or leave the block out."
_ESCAPED_END = "!\\unquote_end"
_MAX_SHOWN = 2_000


def qualified_name(tool: str) -> str:
    """How a tool is called: tools of a server come with its name, built-in ones get a namespace."""
    return tool if "." in tool else f"{BUILT_IN_NAMESPACE}.{tool}"


def write_calls(calls: Sequence[ToolCall]) -> str:
    """One block with these calls; a call that could not be read leaves only its place."""
    elements = (TextElement("tool_call", {"id": call.id, "lang": "javascript"}, _call_code(call)) for call in calls)
    return "\n".join((UNQUOTE_START, *map(format, elements), UNQUOTE_END))


def write_results(results: Sequence[ToolResult], calls: Mapping[str, ToolCall]) -> str:
    """One block with the results of a message's calls; an output cannot end it."""
    outputs = ((result.call_id, _result_output(result, calls.get(result.call_id))) for result in results)
    return results_block([(call_id, output.replace(UNQUOTE_END, _ESCAPED_END)) for call_id, output in outputs])


def explain_block(block: str, call_id: str) -> str:
    """What was wrong with a block as it came, marks included; the same words each time."""
    piece = next((piece for piece in scan(block) if isinstance(piece, MarkedBlock)), None)
    if piece is None:
        return _UNCLOSED
    bad = [entry for entry in read_block(piece.text) if isinstance(entry, BadCall)]
    told = next((entry for entry in bad if entry.id == call_id), bad[0] if bad else None)
    return f"{told.error}: {told.message}" if told else _NO_CALL


def _is_unreadable(call: ToolCall | None) -> bool:
    return call is not None and call.raw.startswith(UNQUOTE_START)


def _call_code(call: ToolCall) -> str:
    if _is_unreadable(call):
        return "/* not understood */"
    # An escape keeps the text of an argument from ending the block.
    arguments = write_json(call.arguments).decode().replace("!unquote_", "\\u0021unquote_")
    function = qualified_name(call.tool)
    if all(part.isidentifier() for part in function.split(".")) and function.count(".") == 1:
        return f"{function}({arguments})"
    return f'{{"name":{write_json(function).decode()},"arguments":{arguments}}}'


def _result_output(result: ToolResult, call: ToolCall | None) -> str:
    if call is None or not _is_unreadable(call):
        return result.for_model or "(no output)"
    wrote = call.raw.removeprefix(UNQUOTE_START).removesuffix(UNQUOTE_END).strip()
    return f"{explain_block(call.raw, call.id)}\nWhat you wrote:\n{wrote[:_MAX_SHOWN]}"
