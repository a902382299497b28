"""A call cut down to the hunks that a person took of it: the same call, looked at anew, and never a wider one."""

import msgspec

from ostler.tools.understand import Understood
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.permission import Permission
from ostler.vocabulary.seams import Ground

HUNKS = "hunks"  # the argument of a tool that can make a part of the change it shows


async def part(understood: Understood, asked: Permission, taken: tuple[int, ...], ground: Ground) -> Understood:
    """The call with only those hunks; a failure where it is no longer, or not only, what the person saw."""
    if not asked.by_hunk:
        raise ToolFailure(f"{understood.call.tool} cannot be done in part; nothing was done", code="not_by_hunk")
    if not taken:
        raise ToolFailure("none of the hunks of this change was taken", code="bad_arguments")
    now = await understood.tool.permission(understood.params, ground)
    if now.preview != asked.preview:
        why = "what this call would change has changed since the user was asked; nothing was written"
        raise ToolFailure(why, code="changed_on_disk", hint="read it again and make the call anew")
    call = msgspec.structs.replace(understood.call, arguments={**understood.call.arguments, HUNKS: list(taken)})
    params = understood.tool.parse(call.arguments)
    wanted = await understood.tool.permission(params, ground)
    if not set(wanted.needs) <= set(asked.needs):
        raise ToolFailure("a part of this call would need more than all of it; nothing was done", code="wider")
    return msgspec.structs.replace(understood, params=params, call=call)
