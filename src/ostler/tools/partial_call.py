"""A call cut down to the hunks that a person took of it: the same call, looked at anew, and never a wider one."""

import msgspec

from ostler.core.errors import ToolError
from ostler.core.permission import Permission
from ostler.core.protocols import Workspace
from ostler.tools.call_resolution import ResolvedCall

HUNKS_ARGUMENT = "hunks"  # the argument of a tool that can make a part of the change it shows


async def restrict_to_hunks(
    resolved: ResolvedCall, requested: Permission, hunks: tuple[int, ...], workspace: Workspace
) -> ResolvedCall:
    """The call with only those hunks; a failure where it is no longer, or not only, what the person saw."""
    if not requested.by_hunk:
        raise ToolError(f"{resolved.call.tool} cannot be done in part; nothing was done", code="not_by_hunk")
    if not hunks:
        raise ToolError("none of the hunks of this change was taken", code="bad_arguments")
    now = await resolved.tool.permission(resolved.params, workspace)
    if now.preview != requested.preview:
        why = "what this call would change has changed since the user was asked; nothing was written"
        raise ToolError(why, code="changed_on_disk", hint="read it again and make the call anew")
    call = msgspec.structs.replace(resolved.call, arguments={**resolved.call.arguments, HUNKS_ARGUMENT: list(hunks)})
    params = resolved.tool.parse(call.arguments)
    wanted = await resolved.tool.permission(params, workspace)
    if not set(wanted.needs) <= set(requested.needs):
        raise ToolError("a part of this call would need more than all of it; nothing was done", code="wider")
    return msgspec.structs.replace(resolved, params=params, call=call)
