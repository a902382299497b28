"""Resolves a call to a tool and typed parameters, translating aliases and repairing arguments."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.core.errors import ToolError
from ostler.core.protocols import Tool, Workspace
from ostler.core.tools import CALLS_THAT_CANNOT_RUN, ToolCall

ToolsByName = Mapping[str, Tool[Any]]


class ResolvedCall(msgspec.Struct):
    """A call with its tool and parameters. `notes` lists the repairs."""

    tool: Tool[Any]
    params: Any
    call: ToolCall
    notes: list[str] = []


async def resolve_call(call: ToolCall, tools: ToolsByName, workspace: Workspace) -> ResolvedCall:
    """Resolve a call to a tool and typed parameters. Malformed arguments are repaired if the intent is certain.

    Raises `ToolError` that says what to send instead.
    """
    call = _repair_surrogates(call)
    tool = tools.get(call.tool)
    if tool is not None and (call.arguments or not call.raw or call.raw.isspace()):
        try:
            return ResolvedCall(tool, tool.parse(call.arguments), call)
        except ToolError:
            pass  # repaired below, or reported with more detail
    return await _repair_call(call, tools, workspace)


async def _repair_call(call: ToolCall, tools: ToolsByName, workspace: Workspace) -> ResolvedCall:
    # Imported late, because nearly all calls are valid.
    from ostler.core.tool_aliases import resolve_tool_name
    from ostler.tools.aliases import translate_call
    from ostler.tools.repair import read_arguments, unwrap_arguments
    from ostler.tools.repair_types import RepairedArguments, convert_arguments

    name = resolve_tool_name(call.tool, tools)
    if name is None and call.tool in CALLS_THAT_CANNOT_RUN and not call.arguments:
        raise ToolError(CALLS_THAT_CANNOT_RUN[call.tool], code="bad_call")
    if name is None:
        raise _unknown_tool_error(call.tool, tools)
    spec = tools[name].spec
    parsed = RepairedArguments(call.arguments) if call.arguments else read_arguments(call.raw, spec)
    unwrapped = unwrap_arguments(parsed.arguments, spec, tools)
    name, arguments = await translate_call(name, call.tool, unwrapped.arguments, workspace)
    tool = tools.get(name)
    if tool is None:
        raise ToolError(f"{call.tool} needs the tool {name}, which is not available", code="unknown_tool")
    if tool.spec.namespace and _accepts(tool, arguments):  # the schema is the server's, and it checks them
        converted = RepairedArguments(arguments)
    else:
        converted = convert_arguments(arguments, tool.spec, getattr(tool, "accepts", tool.spec.schema))
    call = _repair_surrogates(msgspec.structs.replace(call, tool=name, arguments=converted.arguments))
    notes = list(dict.fromkeys([*parsed.notes, *unwrapped.notes, *converted.notes]))
    return ResolvedCall(tool, tool.parse(call.arguments), call, notes)


def _accepts(tool: Tool[Any], arguments: Mapping[str, Any]) -> bool:
    """Return whether the arguments are valid without a repair."""
    try:
        tool.parse(arguments)
    except ToolError:
        return False
    return True


def _repair_surrogates(call: ToolCall) -> ToolCall:
    """Join surrogate pairs in the arguments. Raises `ToolError` for an unpaired surrogate."""
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
            message = f"{name or 'a name'} of {tool} contains half of a surrogate pair"
            raise ToolError(message, code="bad_arguments", hint="send complete characters") from None
    if isinstance(value, dict):
        return {
            _join_surrogates(key, tool): _join_surrogates(item, tool, name or str(key)) for key, item in value.items()
        }
    return [_join_surrogates(item, tool, name) for item in value] if isinstance(value, list) else value


def _unknown_tool_error(name: str, tools: ToolsByName) -> ToolError:
    from ostler.text.closest_name import closest_name

    suggestion = closest_name(name, tools)
    hint = f"did you mean {suggestion}? " if suggestion else ""
    message = f"there is no tool {name!r:.60}; {hint}available: {', '.join(sorted(tools))}"
    return ToolError(message, code="unknown_tool")
