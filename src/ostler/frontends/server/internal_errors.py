"""Hides internal errors of the server from its clients: they get no exception and no traceback."""

import msgspec

from ostler.core.errors import Fault
from ostler.core.events import Event, ToolFinished, TurnEnded

_INTERNAL = Fault("bug", "internal error of the server; its log has the details")


def hide_internal_error(event: Event) -> Event:
    """Return an event as clients may see it; usually the same object."""
    match event:
        case TurnEnded(fault=Fault(code="bug")):
            return msgspec.structs.replace(event, fault=_INTERNAL)
        case ToolFinished(result) if result.fault and result.fault.code == "bug":
            result = msgspec.structs.replace(result, for_model=_INTERNAL.message, fault=_INTERNAL)
            return msgspec.structs.replace(event, result=result)
        case _:
            return event
