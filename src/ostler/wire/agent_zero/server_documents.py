"""The other documents of a server: its log, its connector's capabilities and its error bodies."""

import re
from typing import Any

import msgspec

from ostler.wire.agent_zero.loose_values import NOT_JSON, first_text, parse_json

_MAX_ERROR = 400
_BROKEN_ERROR = re.compile(r'\A\s*\{\s*"(?:error|message|detail)"\s*:\s*"(.*)"\s*\}\s*\Z', re.DOTALL)
_HTML = re.compile(r"\s*<[!a-z]", re.IGNORECASE)
_ICON = re.compile(r"\A\s*icon://\S*")
# Linear for any page: what begins to match is not scanned again from its next part.
_TAGS = re.compile(r"<(script|style)\b.*?(?:</\1\s*>|\Z)|<[^<>]*>", re.DOTALL | re.IGNORECASE)
_TRACEBACK = "Traceback (most recent call last):"
THOUGHT_NAMES = ("reasoning", "thoughts")
_TITLE = re.compile(r"<title[^<>]*>([^<]*)", re.IGNORECASE)


class ZeroLogItem(msgspec.Struct, frozen=True):
    """An item of a conversation's log. It is sent again when it grows; `no` stays the same."""

    no: int
    type: str
    heading: str = ""
    content: str = ""
    kvps: dict[str, Any] = {}

    @property
    def thoughts(self) -> str:
        """The reasoning of the model and the thoughts in its answer, one per line."""
        parts = [self.kvps.get(name) for name in THOUGHT_NAMES]
        lines = [line for part in parts for line in (part if isinstance(part, list) else [part])]
        return "\n".join(line for line in lines if isinstance(line, str) and line)


class ZeroLog(msgspec.Struct, frozen=True):
    """A part of a log. `guid` changes when the log was reset."""

    guid: str = ""
    items: tuple[ZeroLogItem, ...] = ()


def read_log(value: Any) -> ZeroLog:
    """Read the answer of the log route; members of an unexpected type are left out."""
    log = value.get("log") if isinstance(value, dict) else None
    if not isinstance(log, dict):
        return ZeroLog()
    items = log.get("items")
    read = [_read_item(item) for item in items] if isinstance(items, list) else []
    return ZeroLog(
        str(log.get("guid") or ""),
        tuple(sorted((item for item in read if item), key=lambda item: item.no)),
    )


def _read_item(value: Any) -> ZeroLogItem | None:
    if not isinstance(value, dict) or type(value.get("no")) is not int:
        return None
    kvps = value.get("kvps")
    return ZeroLogItem(
        value["no"],
        first_text(value, "type") or "info",
        read_heading(value),
        first_text(value, "content"),
        kvps if isinstance(kvps, dict) else {},
    )


def read_heading(members: dict[str, Any]) -> str:
    """Return the heading of an item as one line, without the name of the icon that the server's web page shows."""
    return " ".join(_ICON.sub("", first_text(members, "heading")).split())


def error_text(body: str, content_type: str = "") -> str:
    """Return the message of an error body: JSON, JSON with an unescaped text, HTML or plain text."""
    value = parse_json(body)
    if isinstance(value, dict):
        inner = value.get("error")
        text = first_text(inner, "message", "detail") if isinstance(inner, dict) else ""
        text = text or first_text(value, "error", "message", "detail", "response")
    elif value is NOT_JSON and (match := _BROKEN_ERROR.match(body)):
        text = match[1]
    elif value is NOT_JSON and ("html" in content_type.lower() or _HTML.match(body)):
        title = _TITLE.search(body)
        text = title[1] if title else _TAGS.sub(" ", body)
    else:
        text = value if isinstance(value, str) else body
    return " ".join(without_traceback(text).split())[:_MAX_ERROR]


def without_traceback(text: str) -> str:
    """Return the message of an error that has a traceback: what is before it, as in real servers, or its last line."""
    before, found, _ = text.partition(_TRACEBACK)
    return before.strip() or text.strip().rpartition("\n")[2] if found else text
