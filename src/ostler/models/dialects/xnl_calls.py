"""Calls and results in the XNL dialect: how they are written, and what a model is told of a block that cannot run."""

from collections.abc import Mapping, Sequence

from ostler.models.loose_json import write_json
from ostler.vocabulary.tools import ToolCall, ToolResult
from ostler.xnl.blocks import BadCall, read_block, results_block
from ostler.xnl.scanner import END, START, Block, scan
from ostler.xnl.tree import TextElement
from ostler.xnl.writer import format

BUILT_IN = "SysBuiltIn"
NO_TOOL = "tool_call"

_UNCLOSED = "Nothing ran: the block was not closed. Send it again, whole, with the mark that ends it."
_NO_CALL = "Nothing ran: there is no <tool_call> in the block. Write one, or leave the block out."
_SHOWN_END = "!\\unquote_end"
_SHOWN = 2_000


def route(tool: str) -> str:
    """How a tool is called: tools of a server come with its name, built-in ones get a namespace."""
    return tool if "." in tool else f"{BUILT_IN}.{tool}"


def write_calls(calls: Sequence[ToolCall]) -> str:
    """One block with these calls; a call that could not be read leaves only its place."""
    elements = (TextElement("tool_call", {"id": call.id, "lang": "javascript"}, _code(call)) for call in calls)
    return "\n".join((START, *map(format, elements), END))


def write_results(results: Sequence[ToolResult], calls: Mapping[str, ToolCall]) -> str:
    """One block with the results of a message's calls; an output cannot end it."""
    outputs = ((result.call_id, _output(result, calls.get(result.call_id))) for result in results)
    return results_block([(call_id, output.replace(END, _SHOWN_END)) for call_id, output in outputs])


def explain(block: str, call_id: str) -> str:
    """What was wrong with a block as it came, marks included; the same words each time."""
    piece = next((piece for piece in scan(block) if isinstance(piece, Block)), None)
    if piece is None:
        return _UNCLOSED
    bad = [entry for entry in read_block(piece.text) if isinstance(entry, BadCall)]
    told = next((entry for entry in bad if entry.id == call_id), bad[0] if bad else None)
    return f"{told.error}: {told.message}" if told else _NO_CALL


def _is_unread(call: ToolCall | None) -> bool:
    return call is not None and call.raw.startswith(START)


def _code(call: ToolCall) -> str:
    if _is_unread(call):
        return "/* not understood */"
    # An escape keeps the text of an argument from ending the block.
    arguments = write_json(call.arguments).decode().replace("!unquote_", "\\u0021unquote_")
    function = route(call.tool)
    if all(part.isidentifier() for part in function.split(".")) and function.count(".") == 1:
        return f"{function}({arguments})"
    return f'{{"name":{write_json(function).decode()},"arguments":{arguments}}}'


def _output(result: ToolResult, call: ToolCall | None) -> str:
    if call is None or not _is_unread(call):
        return result.for_model or "(no output)"
    wrote = call.raw.removeprefix(START).removesuffix(END).strip()
    return f"{explain(call.raw, call.id)}\nWhat you wrote:\n{wrote[:_SHOWN]}"
