"""Joins the fragments of tool calls in an OpenAI-shaped stream."""

from typing import Any

import msgspec

from ostler.wire.agent_zero.loose_values import MemberReader

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
        """Add fragments and return what is not part of a call: whole fragments, or the unknown members of one."""
        rests = (self._add(fragment) for fragment in fragments)
        return [rest for rest in rests if rest not in (None, {})]

    def _add(self, fragment: Any) -> Any:
        if not isinstance(fragment, dict) or not isinstance(fragment.get("function"), dict):
            return fragment
        function, index = fragment["function"], fragment.get("index", 0)
        if not isinstance(index, int) or not all(
            isinstance(value, str | None) for value in (function.get("name"), function.get("arguments"))
        ):
            return fragment
        if index not in self._calls and len(self._calls) >= _MAX_CALLS:
            return fragment
        call = self._calls.setdefault(index, _StreamedCall())
        reader, function_reader = MemberReader(fragment), MemberReader(function)
        if not call.id or fragment.get("id") == call.id:
            call.id = reader.id("id") or call.id
        call.name += function_reader.text("name")
        call.arguments.append(function_reader.text("arguments"))
        reader.value("function")
        reader.value("index")
        if fragment.get("type") == "function":
            reader.text("type")
        unread = function_reader.rest()
        return {**reader.rest(), **({"function": unread} if unread else {})}

    def take(self) -> list[dict[str, Any]]:
        """Return the complete calls, in the form of a call that is not streamed, and forget them."""
        calls, self._calls = self._calls, {}
        return [
            {"id": call.id, "function": {"name": call.name, "arguments": "".join(call.arguments)}}
            for call in calls.values()
        ]
