"""Restricts a call to the hunks that the user selected and checks it again."""

import msgspec

from ostler.core.errors import ToolError
from ostler.core.permission import Permission
from ostler.core.protocols import Workspace
from ostler.tools.call_resolution import ResolvedCall

HUNKS_ARGUMENT = "hunks"  # the parameter of tools that can apply a part of their change


async def restrict_to_hunks(
    resolved: ResolvedCall, requested: Permission, hunks: tuple[int, ...], workspace: Workspace
) -> ResolvedCall:
    """Return the call with only these hunks. Raises `ToolError` if it differs from what the user saw."""
    if not requested.by_hunk:
        raise ToolError(f"{resolved.call.tool} cannot be applied in part; nothing was changed", code="not_by_hunk")
    if not hunks:
        raise ToolError("no hunk of this change was selected", code="bad_arguments")
    current = await resolved.tool.permission(resolved.params, workspace)
    if current.preview != requested.preview:
        message = "the files changed since the user was asked; nothing was written"
        raise ToolError(message, code="changed_on_disk", hint="read them and repeat the call")
    call = msgspec.structs.replace(resolved.call, arguments={**resolved.call.arguments, HUNKS_ARGUMENT: list(hunks)})
    params = resolved.tool.parse(call.arguments)
    permission = await resolved.tool.permission(params, workspace)
    if not set(permission.needs) <= set(requested.needs):
        raise ToolError(
            "the selected hunks need more permissions than the whole call; nothing was changed", code="wider"
        )
    return msgspec.structs.replace(resolved, params=params, call=call)
