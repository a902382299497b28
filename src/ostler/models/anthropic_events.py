"""Stream events of the Anthropic API as typed ones: quickly in the usual shape, patiently in any other."""

from typing import Any

import msgspec

from ostler.models.loose_json import NotJson, compact
from ostler.models.openai_frames import sane_count


class Delta(msgspec.Struct, gc=False):
    """What an event adds; only the fields of its own kind are set."""

    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class Event(msgspec.Struct, gc=False):
    """One event of the stream; the rare kinds keep their content as it came. `choices` are of another API."""

    type: str = ""
    index: int = 0
    delta: Delta | None = None
    content_block: Any = None
    message: Any = None
    usage: Any = None
    error: Any = None
    choices: Any = None


_EVENT = msgspec.json.Decoder(Event)
_AS_THEY_CAME = ("content_block", "message", "usage", "error", "choices")


def read_event(data: bytes) -> Event | None:
    """An event in its usual shape, else nothing."""
    try:
        return _EVENT.decode(data)
    except (ValueError, RecursionError):
        return None


def loose_event(document: Any) -> Event:
    """An event out of whatever a server takes for one."""
    if not isinstance(document, dict):
        raise NotJson("it is no object")
    kind, delta = document.get("type"), document.get("delta")
    return Event(
        type=kind if isinstance(kind, str) else "",
        index=sane_count(document.get("index")),
        delta=_delta(delta) if isinstance(delta, dict) else None,
        **{name: document.get(name) for name in _AS_THEY_CAME},
    )


def _delta(delta: dict[str, Any]) -> Delta:
    told = {name: delta.get(name) for name in Delta.__struct_fields__}
    return Delta(**{name: compact(value) for name, value in told.items() if value is not None})
