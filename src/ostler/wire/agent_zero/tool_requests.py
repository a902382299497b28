"""Finds requests for local tools in parsed objects and in the text of an answer."""

import json
from typing import Any

import msgspec

from ostler.text.lazy_regex import lazy_regex
from ostler.wire.agent_zero.loose_values import NOT_JSON, MemberReader, parse_object_text
from ostler.wire.agent_zero.zero_events import ZeroToolRequest

# The tools in the description for the agent, and their arguments.
REQUESTED_TOOLS = {
    "read_file": "path, start_line?, end_line?, max_bytes?",
    "list_files": "path?",
    "search_text": "query, path?",
    "write_file": "path, content",
    "replace_text": "path, old, new, count?",
    "apply_patch": "patch (a unified diff)",
    "shell": "command",
}
_MAX_ATTEMPTS = 64  # objects that a text may begin before the search ends; each attempt may scan the whole text
_MAX_SEARCHED = 1_000_000
_OBJECT = lazy_regex(r'\{\s*"')
_FENCE_BEFORE = lazy_regex(r"(?:`{3,20}|~{3,20})[\w-]*\Z")
_FENCE_AFTER = lazy_regex(r"\A\s*(?:`{3,20}|~{3,20})[ \t]*(?:\n|\Z)")
_NAMES = ("tool_name", "name", "tool")
_ARGUMENTS = ("payload", "arguments", "input", "args", "tool_args", "parameters")


def read_request(members: dict[str, Any]) -> ZeroToolRequest | None:
    """Return the tool request that an object describes, in any of the known shapes; None if it names no tool."""
    outer, function = MemberReader(members), MemberReader({})
    if isinstance(members.get("function"), dict):
        function = MemberReader(outer.value("function"))
    name = outer.text(*_NAMES) or function.text("name") or outer.text("function")
    if not name:
        return None
    outer.text("type")
    payload, raw = _read_arguments(function.value("arguments"))
    if not payload and not raw:
        payload, raw = _read_arguments(outer.value(*_ARGUMENTS))
    command = outer.text("command", "summary")
    if not payload and not raw and command and name in ("shell", "terminal", "command"):
        payload = {"command": command}
    reason, call_id = outer.text("reason"), outer.id("tool_call_id", "id")
    unread = function.rest()
    extra = {**outer.rest(), **({"function": unread} if unread else {})}
    return ZeroToolRequest(name, payload, command, reason, call_id, raw, extra)


def split_requests(text: str) -> list[str | ZeroToolRequest]:
    """Return the text with the JSON of each tool request replaced by the request, in order.

    An object is a request only if it has the type `tool_request`, the name of a tool and a payload, and if no other
    text is on its lines, because an answer may quote such an object. A code fence around it is removed.
    """
    if "tool_request" not in text or len(text) > _MAX_SEARCHED:
        return [text]
    parts: list[str | ZeroToolRequest] = []
    rest = text
    while (found := _find_request(rest)) is not None:
        start, end, request = found
        before, after = rest[:start], rest[end:]
        if (opening := _FENCE_BEFORE.search(before.rstrip())) and (closing := _FENCE_AFTER.search(after)):
            before, after = before[: opening.start()].rstrip(" \t").removesuffix("\n"), after[closing.end() :]
        parts += [before, request] if before.strip() else [request]
        rest = after
    return [*parts, rest] if rest.strip() or not parts else parts


def _find_request(text: str) -> tuple[int, int, ZeroToolRequest] | None:
    decoder = json.JSONDecoder()
    position = 0
    for _ in range(_MAX_ATTEMPTS):
        match = _OBJECT.search(text, position)
        if match is None:
            return None
        try:
            value, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            position = match.start() + 1
            continue
        if (request := _as_request(value)) is not None and _is_alone(text, match.start(), end):
            return match.start(), end, request
        position = end
    return None


def _is_alone(text: str, start: int, end: int) -> bool:
    """Return whether nothing but other objects is on the lines of an object."""
    before, after = text[text.rfind("\n", 0, start) + 1 : start].strip(), text[end:].partition("\n")[0].strip()
    return (not before or before.endswith("}")) and (not after or after.startswith("{"))


def _as_request(value: Any) -> ZeroToolRequest | None:
    """Return the request if an object in a text has exactly the documented form."""
    if isinstance(value, dict) and isinstance(value.get("tool_request"), dict):
        outside = {key: item for key, item in value.items() if key != "tool_request"}
        value = {"type": "tool_request", **({"outside": outside} if outside else {}), **value["tool_request"]}
    if not isinstance(value, dict) or value.get("type") != "tool_request":
        return None
    if not isinstance(value.get("tool_name"), str) or not value["tool_name"]:
        return None
    payload = value.get("payload")
    if not isinstance(payload, dict) and not (payload is None and isinstance(value.get("command"), str)):
        return None
    request = read_request(value)
    return request if request and _is_encodable(request) else None


def _is_encodable(request: ZeroToolRequest) -> bool:
    try:
        msgspec.json.encode(request)
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def _read_arguments(value: Any) -> tuple[dict[str, Any], str]:
    """Return the arguments as an object, or their text if they are not one."""
    if value is None:
        return {}, ""
    if isinstance(value, str):
        parsed = parse_object_text(value)
        return (parsed, "") if parsed is not NOT_JSON and isinstance(parsed, dict) else ({}, value)
    if isinstance(value, dict):
        return value, ""
    return {}, json.dumps(value, ensure_ascii=False, default=str)
