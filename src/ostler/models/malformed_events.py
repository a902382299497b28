"""Events that are not quite events: two in one, none at all, or words where JSON belongs."""

from ostler.models.loose_json import LooseJsonError, read_json

_MAX_TEXT_LENGTH = 200


def is_done(event: bytes) -> bool:
    """Whether it is the mark that nothing follows, however it is spelt."""
    return event.strip().upper() == b"[DONE]"


def split_events(event: bytes) -> list[bytes]:
    """The events in one, where a server left out the blank lines between them; one of many lines stays one."""
    if b"\n" not in event or is_json(event):
        return [event]
    return event.split(b"\n")


def split_json_lines(body: bytes) -> list[bytes]:
    """The events in a body of one JSON object a line; none where it is another kind of document."""
    first, newline, _ = body.lstrip().partition(b"\n")
    return body.split(b"\n") if newline and first.startswith(b"{") and is_json(first) and not is_json(body) else []


def plain_text_of(event: bytes) -> str | None:
    """What an event says that is no object, so no part of a reply: a sign of life, or words; None where it is one."""
    text = event.strip()
    if not text.startswith((b"{", b"[")):
        said = text[:_MAX_TEXT_LENGTH].decode("utf-8", "replace")
        return "" if is_json(text) else said
    return "" if text == b"[]" else None


def is_json(data: bytes) -> bool:
    try:
        read_json(data)
    except LooseJsonError:
        return False
    return True
