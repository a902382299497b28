"""Stream events of the Anthropic API as typed values, with a lenient fallback."""

from typing import Any

import msgspec

from ostler.models.loose_json import LooseJsonError, to_text
from ostler.models.openai_frames import valid_count


class AnthropicDelta(msgspec.Struct, gc=False):
    """The `delta` of an event. Only the fields of its own type are set."""

    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class AnthropicEvent(msgspec.Struct, gc=False):
    """One event of the stream. Rare fields stay undecoded; `choices` is only sent by servers of OpenAI's API."""

    type: str = ""
    index: int = 0
    delta: AnthropicDelta | None = None
    content_block: Any = None
    message: Any = None
    usage: Any = None
    error: Any = None
    choices: Any = None


_DECODER = msgspec.json.Decoder(AnthropicEvent)
_RAW_FIELDS = ("content_block", "message", "usage", "error", "choices")


def decode_event(data: bytes) -> AnthropicEvent | None:
    """Decode an event of the usual shape. Return None for any other shape."""
    try:
        return _DECODER.decode(data)
    except (ValueError, RecursionError):
        return None


def event_from_document(document: Any) -> AnthropicEvent:
    """Convert an unusual JSON object to an event. Raises `LooseJsonError` if `document` is not an object."""
    if not isinstance(document, dict):
        raise LooseJsonError("not a JSON object")
    kind, delta = document.get("type"), document.get("delta")
    return AnthropicEvent(
        type=kind if isinstance(kind, str) else "",
        index=valid_count(document.get("index")),
        delta=_convert_delta(delta) if isinstance(delta, dict) else None,
        **{name: document.get(name) for name in _RAW_FIELDS},
    )


def _convert_delta(delta: dict[str, Any]) -> AnthropicDelta:
    fields = {name: delta.get(name) for name in AnthropicDelta.__struct_fields__}
    return AnthropicDelta(**{name: to_text(value) for name, value in fields.items() if value is not None})
