"""Joins the fragments of tool calls in an OpenAI-shaped stream."""

from typing import Any

import msgspec

from ostler.wire.agent_zero.tool_requests import read_request
from ostler.wire.agent_zero.zero_events import ZeroToolRequest

_MAX_CALLS = 64


class _StreamedCall(msgspec.Struct):
    id: str = ""
    name: str = ""
    arguments: list[str] = msgspec.field(default_factory=list)


class PartialCalls:
    """The calls of a stream whose arguments are not complete yet."""

    def __init__(self) -> None:
        self._calls: dict[Any, _StreamedCall] = {}

    def add(self, fragments: list[Any]) -> list[Any]:
        """Add fragments and return those that are not parts of a call."""
        return [fragment for fragment in fragments if not self._add(fragment)]

    def _add(self, fragment: Any) -> bool:
        if not isinstance(fragment, dict) or not isinstance(fragment.get("function"), dict):
            return False
        function, index = fragment["function"], fragment.get("index", 0)
        if not isinstance(index, int) or not all(
            isinstance(value, str | None) for value in (function.get("name"), function.get("arguments"))
        ):
            return False
        if index not in self._calls and len(self._calls) >= _MAX_CALLS:
            return False
        call = self._calls.setdefault(index, _StreamedCall())
        call.id = call.id or (fragment["id"] if isinstance(fragment.get("id"), str) else "")
        call.name += function.get("name") or ""
        call.arguments.append(function.get("arguments") or "")
        return True

    def take(self) -> list[ZeroToolRequest]:
        """Return the complete calls and forget them."""
        calls, self._calls = self._calls, {}
        read = (
            read_request({"id": call.id, "function": {"name": call.name, "arguments": "".join(call.arguments)}})
            for call in calls.values()
        )
        return [request for request in read if request]
