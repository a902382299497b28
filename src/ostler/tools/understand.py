"""What a call means: the tool that is meant, its arguments in our words, and what had to be mended on the way."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.seams import Ground, Tool
from ostler.vocabulary.tools import ToolCall

Tools = Mapping[str, Tool[Any]]


class Understood(msgspec.Struct):
    """A call as it will run."""

    tool: Tool[Any]
    params: Any
    call: ToolCall
    notes: list[str] = []


async def understand(call: ToolCall, tools: Tools, ground: Ground) -> Understood:
    """The call as it is if it is sound, else as it was surely meant; a failure says what to send."""
    call = _whole(call)
    tool = tools.get(call.tool)
    if tool is not None and (call.arguments or not call.raw or call.raw.isspace()):
        try:
            return Understood(tool, tool.parse(call.arguments), call)
        except ToolFailure:
            pass  # looked at below, where there is more to say
    return await _mended(call, tools, ground)


async def _mended(call: ToolCall, tools: Tools, ground: Ground) -> Understood:
    # A sound call, which nearly all are, does not pay for these.
    from ostler.tools.aliases import route
    from ostler.tools.repair import read_arguments, unwrapped
    from ostler.tools.repair_fit import Mended, fit
    from ostler.vocabulary.tool_names import find_name

    name = find_name(call.tool, tools)
    if name is None:
        raise _unknown(call.tool, tools)
    spec = tools[name].spec
    read = Mended(call.arguments) if call.arguments else read_arguments(call.raw, spec)
    inner = unwrapped(read.arguments, spec, tools)
    routed = await route(name, call.tool, inner.arguments, ground)
    tool = tools.get(routed.tool)
    if tool is None:
        raise ToolFailure(f"{call.tool} needs the tool {routed.tool}, which is not here", code="unknown_tool")
    fitted = fit(routed.arguments, tool.spec, getattr(tool, "accepts", tool.spec.schema))
    made = _whole(msgspec.structs.replace(call, tool=routed.tool, arguments=fitted.arguments))
    notes = list(dict.fromkeys([*read.notes, *inner.notes, *fitted.notes]))
    return Understood(tool, tool.parse(made.arguments), made, notes)


def _whole(call: ToolCall) -> ToolCall:
    """The call with characters put together whose halves came apart; refused when there is only one half of one."""
    try:
        msgspec.json.encode(call.arguments)
    except UnicodeEncodeError:
        return msgspec.structs.replace(call, arguments=_joined(call.arguments, call.tool))
    except RecursionError:
        raise ToolFailure(f"the arguments of {call.tool} are nested too deeply", code="bad_arguments") from None
    return call


def _joined(value: Any, tool: str, name: str = "") -> Any:
    if isinstance(value, str):
        try:
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            said = f"{name or 'a name'} of {tool} holds half of a character, which no file and no wire can hold"
            raise ToolFailure(said, code="bad_arguments", hint="send it with whole characters") from None
    if isinstance(value, dict):
        return {_joined(key, tool): _joined(item, tool, name or str(key)) for key, item in value.items()}
    return [_joined(item, tool, name) for item in value] if isinstance(value, list) else value


def _unknown(name: str, tools: Tools) -> ToolFailure:
    from ostler.text.names import nearest

    near = nearest(name, tools)
    meant = f"did you mean {near}? " if near else ""
    said = f"there is no tool {name!r:.60}; {meant}there are {', '.join(sorted(tools))}"
    return ToolFailure(said, code="unknown_tool")
