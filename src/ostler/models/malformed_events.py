"""Handles malformed stream events: several in one, plain text, bare JSON lines."""

from ostler.models.loose_json import LooseJsonError, read_json

_MAX_TEXT_LENGTH = 200


def is_done(event: bytes) -> bool:
    """Whether the event is the end marker `[DONE]`, in any case."""
    return event.strip().upper() == b"[DONE]"


def split_events(event: bytes) -> list[bytes]:
    """Split an event at newlines if the server omitted the blank lines between events; keep multi-line JSON."""
    if b"\n" not in event or is_json(event):
        return [event]
    return event.split(b"\n")


def split_json_lines(body: bytes) -> list[bytes]:
    """Return the lines of a JSON Lines body, or an empty list for any other document."""
    first, newline, _ = body.lstrip().partition(b"\n")
    return body.split(b"\n") if newline and first.startswith(b"{") and is_json(first) and not is_json(body) else []


def plain_text_of(event: bytes) -> str | None:
    """Return the text of a plain text event, empty for bare JSON values and `[]`, or None for an object or list."""
    text = event.strip()
    if not text.startswith((b"{", b"[")):
        return "" if is_json(text) else text[:_MAX_TEXT_LENGTH].decode("utf-8", "replace")
    return "" if text == b"[]" else None


def is_json(data: bytes) -> bool:
    try:
        read_json(data)
    except LooseJsonError:
        return False
    return True
