"""What a call means: the tool that is meant, its arguments in our words, and what had to be mended on the way."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.core.errors import ToolError
from ostler.core.protocols import Tool, Workspace
from ostler.core.tools import ToolCall

ToolsByName = Mapping[str, Tool[Any]]


class ResolvedCall(msgspec.Struct):
    """A call as it will run."""

    tool: Tool[Any]
    params: Any
    call: ToolCall
    notes: list[str] = []


async def resolve_call(call: ToolCall, tools: ToolsByName, workspace: Workspace) -> ResolvedCall:
    """The call as it is if it is sound, else as it was surely meant; a failure says what to send."""
    call = _repair_surrogates(call)
    tool = tools.get(call.tool)
    if tool is not None and (call.arguments or not call.raw or call.raw.isspace()):
        try:
            return ResolvedCall(tool, tool.parse(call.arguments), call)
        except ToolError:
            pass  # looked at below, where there is more to say
    return await _repair_call(call, tools, workspace)


async def _repair_call(call: ToolCall, tools: ToolsByName, workspace: Workspace) -> ResolvedCall:
    # A sound call, which nearly all are, does not pay for these.
    from ostler.core.tool_aliases import resolve_tool_name
    from ostler.tools.aliases import translate_call
    from ostler.tools.repair import read_arguments, unwrap_arguments
    from ostler.tools.repair_types import RepairedArguments, convert_arguments

    name = resolve_tool_name(call.tool, tools)
    if name is None:
        raise _unknown_tool_error(call.tool, tools)
    spec = tools[name].spec
    read = RepairedArguments(call.arguments) if call.arguments else read_arguments(call.raw, spec)
    inner = unwrap_arguments(read.arguments, spec, tools)
    routed = await translate_call(name, call.tool, inner.arguments, workspace)
    tool = tools.get(routed.tool)
    if tool is None:
        raise ToolError(f"{call.tool} needs the tool {routed.tool}, which is not here", code="unknown_tool")
    fitted = convert_arguments(routed.arguments, tool.spec, getattr(tool, "accepts", tool.spec.schema))
    made = _repair_surrogates(msgspec.structs.replace(call, tool=routed.tool, arguments=fitted.arguments))
    notes = list(dict.fromkeys([*read.notes, *inner.notes, *fitted.notes]))
    return ResolvedCall(tool, tool.parse(made.arguments), made, notes)


def _repair_surrogates(call: ToolCall) -> ToolCall:
    """The call with characters put together whose halves came apart; refused when there is only one half of one."""
    try:
        msgspec.json.encode(call.arguments)
    except UnicodeEncodeError:
        return msgspec.structs.replace(call, arguments=_join_surrogates(call.arguments, call.tool))
    except RecursionError:
        raise ToolError(f"the arguments of {call.tool} are nested too deeply", code="bad_arguments") from None
    return call


def _join_surrogates(value: Any, tool: str, name: str = "") -> Any:
    if isinstance(value, str):
        try:
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            said = f"{name or 'a name'} of {tool} holds half of a character, which no file and no wire can hold"
            raise ToolError(said, code="bad_arguments", hint="send it with whole characters") from None
    if isinstance(value, dict):
        return {
            _join_surrogates(key, tool): _join_surrogates(item, tool, name or str(key)) for key, item in value.items()
        }
    return [_join_surrogates(item, tool, name) for item in value] if isinstance(value, list) else value


def _unknown_tool_error(name: str, tools: ToolsByName) -> ToolError:
    from ostler.text.closest_name import closest_name

    near = closest_name(name, tools)
    meant = f"did you mean {near}? " if near else ""
    said = f"there is no tool {name!r:.60}; {meant}there are {', '.join(sorted(tools))}"
    return ToolError(said, code="unknown_tool")
