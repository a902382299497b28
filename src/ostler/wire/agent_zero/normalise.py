"""Converts the parsed values of an answer to events, in a fixed order of known shapes."""

from collections.abc import Iterator
from typing import Any

import msgspec

from ostler.wire.agent_zero.loose_values import NOT_JSON, MemberReader, parse_object_text, to_json
from ostler.wire.agent_zero.tool_requests import read_request, split_requests
from ostler.wire.agent_zero.zero_events import ZeroEvent, ZeroToolRequest

CONTEXT_ID_NAMES = ("context_id", "contextId", "conversation_id", "conversationId")
_MAX_DEPTH = 40
_MAX_ID_LENGTH = 200
_REQUEST_TYPES = ("tool_request", "tool_call", "tool")
_ANSWER_TYPES = ("final_response", "message", "answer", "text")
_TYPES = {"thought": "thinking", "tool_result": "tool_output"}
_PLAIN_KINDS = ("status", "thinking", "tool_output")
_CONTENT = ("content", "message", "text")
_OUTPUT = ("content", "output", "message", "text", "result")
_ANSWERS = ("response", "message", "content", "text", "choices", "events")
_REASONING = ("reasoning_content", "reasoning", "thinking")
_KNOWN_MEMBERS = frozenset(
    ("choices", "tool_calls", "tool_call", "type", "delta", "events", "tool_request", "response", "message")
).union(CONTEXT_ID_NAMES)

Members = dict[str, Any]
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


class Normaliser:
    """Converts values to events and stores the id of the conversation. Never raises; every value is in some event."""

    def __init__(self) -> None:
        self.context_id = ""
        self._calls = PartialCalls()

    def events(self, value: Any) -> list[ZeroEvent]:
        """Return the events of one value of an answer."""
        try:
            return list(self._value(value, 0))
        except RecursionError:
            return [ZeroEvent("final_response", to_json(value))]

    def finish(self) -> list[ZeroEvent]:
        """Return the calls of a stream that ended without a finish reason."""
        return [
            ZeroEvent("tool_request", request=request)
            if (request := read_request(call))
            else ZeroEvent("other", extra=call)
            for call in self._calls.take()
        ]

    def _value(self, value: Any, depth: int) -> Iterator[ZeroEvent]:
        if depth > _MAX_DEPTH:
            yield ZeroEvent("final_response", to_json(value))
        elif isinstance(value, str):
            yield from self._text(value) if depth == 0 else _answer_events(value)
        elif isinstance(value, list):
            for item in value:
                yield from self._value(item, depth + 1)
        elif isinstance(value, dict):
            yield from self._members(value, depth)
        elif value is not None:
            yield ZeroEvent("final_response", to_json(value))

    def _text(self, text: str) -> Iterator[ZeroEvent]:
        """Yield the events of a whole answer that is a text; inside of an answer, JSON in a text is only text."""
        parsed = parse_object_text(text)
        if parsed is not NOT_JSON and _has_known_member(parsed):
            yield from self._value(parsed, 1)
        elif text:
            yield from _answer_events(text)

    def _members(self, members: Members, depth: int) -> Iterator[ZeroEvent]:
        members = self._take_context_id(members)
        if not members:
            return
        events = self._known_shape(members, depth)
        if events is None:
            events = iter([ZeroEvent("final_response", to_json(members))])
        yield from events

    def _take_context_id(self, members: Members) -> Members:
        """Store the id of the conversation and return the other members."""
        found = {
            name: str(members[name])
            for name in CONTEXT_ID_NAMES
            if isinstance(members.get(name), str | int)
            and not isinstance(members.get(name), bool)
            and 0 < len(str(members[name])) <= _MAX_ID_LENGTH
        }
        if not found:
            return members
        self.context_id = next(iter(found.values()))
        return {key: value for key, value in members.items() if found.get(key) != self.context_id}

    def _known_shape(self, members: Members, depth: int) -> Iterator[ZeroEvent] | None:
        """Return the events of the first shape that fits, or None."""
        for name, read in (("choices", self._choices), ("tool_calls", self._tool_calls), ("tool_call", self._wrapped)):
            if members.get(name):
                return read(members, name, depth)
        if members.get("type") == "tool_use" and read_request(members):
            return _request_events(members)
        delta = members.get("delta")
        if isinstance(delta, dict) and isinstance(delta.get("content"), str):
            return self._delta(members, delta)
        if isinstance(members.get("events"), list) and members["events"]:
            return self._inner(members, "events", depth)
        if members.get("tool_request"):
            return self._wrapped(members, "tool_request", depth)
        events = self._by_type(members, depth)
        if events is not None:
            return events
        for name in ("response", "message"):
            if members.get(name) not in (None, "", [], {}):
                return self._inner(members, name, depth)
        return _error_events(members) or _without_content(members)

    def _choices(self, members: Members, name: str, depth: int) -> Iterator[ZeroEvent]:
        choices = members[name] if isinstance(members[name], list) else [members[name]]
        for choice in choices:
            if isinstance(choice, dict):
                yield from self._choice(choice, depth)
            else:
                yield from self._value(choice, depth + 1)
        yield from _extra_event(members, name)

    def _choice(self, choice: Members, depth: int) -> Iterator[ZeroEvent]:
        rest = dict(choice)
        delta, message = rest.pop("delta", None), rest.pop("message", None)
        if isinstance(delta, dict):
            yield from self._delta({}, delta)
        elif delta:
            yield from self._value(delta, depth + 1)
        if isinstance(message, dict):
            yield from self._tool_calls(message, "tool_calls", depth)
        elif message:
            yield from self._value(message, depth + 1)
        if isinstance(rest.get("text"), str) and rest["text"]:
            yield from _answer_events(rest.pop("text"))
        if rest.get("finish_reason"):
            yield from self.finish()
        yield from _extra_event(rest)

    def _delta(self, members: Members, delta: Members) -> Iterator[ZeroEvent]:
        rest = dict(delta)
        for name in _REASONING:
            if isinstance(rest.get(name), str) and rest[name]:
                yield ZeroEvent("thinking", rest.pop(name))
        if isinstance(rest.get("content"), str) and (text := rest.pop("content")):
            yield ZeroEvent("piece", text)
        if isinstance(rest.get("tool_calls"), list):
            rest["tool_calls"] = self._calls.add(rest["tool_calls"])
        yield from _extra_event(rest)
        yield from _extra_event(members, "delta")

    def _tool_calls(self, members: Members, name: str, depth: int) -> Iterator[ZeroEvent]:
        """Yield the content of a message, then its calls."""
        rest = dict(members)
        calls, content = rest.pop(name, None), rest.pop("content", None)
        for reasoning in _REASONING:
            if isinstance(rest.get(reasoning), str) and rest[reasoning]:
                yield ZeroEvent("thinking", rest.pop(reasoning))
        yield from self._value(content, depth + 1)
        for call in calls if isinstance(calls, list) else [calls]:
            yield from self._request(call, depth)
        yield from _extra_event(rest)

    def _wrapped(self, members: Members, name: str, depth: int) -> Iterator[ZeroEvent]:
        yield from self._request(members[name], depth)
        yield from _extra_event(members, name)

    def _inner(self, members: Members, name: str, depth: int) -> Iterator[ZeroEvent]:
        yield from self._value(members[name], depth + 1)
        yield from _extra_event(members, name)

    def _request(self, value: Any, depth: int) -> Iterator[ZeroEvent]:
        if isinstance(value, dict) and read_request(value):
            yield from _request_events(value)
        else:
            yield from self._value(value, depth + 1)

    def _by_type(self, members: Members, depth: int) -> Iterator[ZeroEvent] | None:
        kind = members.get("type")
        if not isinstance(kind, str) or not kind:
            return None
        if kind in _REQUEST_TYPES:
            return _request_events(members) if read_request(members) else None
        if kind in _ANSWER_TYPES:
            name = next((name for name in _CONTENT if members.get(name) not in (None, "", [], {})), "")
            return self._inner({key: members[key] for key in members if key != "type"}, name, depth) if name else None
        kind = _TYPES.get(kind, kind)
        names = _OUTPUT if kind == "tool_output" else _CONTENT
        return _typed_events(members, kind, names)


def _has_known_member(value: Any) -> bool:
    """Return whether JSON in a text describes events; other JSON is the answer itself and stays unchanged."""
    if isinstance(value, list):
        return any(isinstance(item, dict) and _has_known_member(item) for item in value)
    return isinstance(value, dict) and not _KNOWN_MEMBERS.isdisjoint(value)


def _typed_events(members: Members, kind: str, names: tuple[str, ...]) -> Iterator[ZeroEvent] | None:
    """Return the event of an object with a type and a content, or None if it has no content."""
    reader = MemberReader(members)
    content = reader.content(*names)
    if content is None:
        return None
    reader.text("type")
    text = content if isinstance(content, str) else to_json(content)
    if kind == "tool_output":
        call_id, name, ok = reader.id("tool_call_id", "id"), reader.text("tool_name"), reader.flag("ok")
        return iter([ZeroEvent("tool_output", text, name, None, call_id, ok is not False, reader.rest())])
    if kind in _PLAIN_KINDS:
        return iter([ZeroEvent(kind, text, extra=reader.rest())])  # type: ignore[arg-type]  # one of the kinds
    return iter([ZeroEvent("other", text, kind, extra=reader.rest())])


def _error_events(members: Members) -> Iterator[ZeroEvent] | None:
    """Return the event of an error without a type, or None."""
    reader = MemberReader(members)
    error = reader.content("error")
    if "type" in members or not isinstance(error, str | dict) or not error:
        return None
    inner = MemberReader(error if isinstance(error, dict) else {"message": error})
    text, rest = inner.text("message", "detail"), inner.rest()
    extra = {**reader.rest(), **({"error": rest} if rest and text else {})}
    return iter([ZeroEvent("other", text or to_json(error), "error", extra=extra)])


def _without_content(members: Members) -> Iterator[ZeroEvent] | None:
    """Return the event of an object with a type that is not an answer, or of an empty answer; None for others."""
    kind = members.get("type")
    if isinstance(kind, str) and kind and kind not in (*_REQUEST_TYPES, *_ANSWER_TYPES):
        rest = {key: value for key, value in members.items() if key != "type" and value not in (None, "", [], {})}
        return iter([ZeroEvent("other", to_json(rest) if rest else "", _TYPES.get(kind, kind))])
    answers = [members[name] for name in _ANSWERS if name in members]
    is_empty = bool(answers) and all(value in (None, "", [], {}) for value in answers)
    return _extra_event(members) if is_empty else None


def _request_events(members: Members) -> Iterator[ZeroEvent]:
    request = read_request(members)
    assert request is not None
    yield ZeroEvent("tool_request", request=request)


def _answer_events(text: str) -> Iterator[ZeroEvent]:
    """Yield the text of an answer and the tool requests in it."""
    for part in split_requests(text):
        if isinstance(part, ZeroToolRequest):
            yield ZeroEvent("tool_request", request=part)
        else:
            yield ZeroEvent("final_response", part)


def _extra_event(members: Members, *names: str) -> Iterator[ZeroEvent]:
    """Yield an event without text for the members that are not shown, if there are any."""
    extra = {key: value for key, value in members.items() if key not in names and value not in (None, "", [], {})}
    if extra:
        yield ZeroEvent("other", extra=extra)
