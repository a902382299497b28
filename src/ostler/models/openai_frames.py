"""Stream events of OpenAI-compatible servers as typed frames: quickly in the usual shape, patiently in any other."""

from typing import Any

import msgspec

from ostler.models.loose_json import NotJson, compact, read_json


class Function(msgspec.Struct, gc=False):
    """What is called."""

    name: str | None = None
    arguments: str | None = None


class CallDelta(msgspec.Struct, gc=False):
    """A piece of a call."""

    function: Function
    index: int | None = None
    id: str | None = None


class Delta(msgspec.Struct, gc=False):
    """A piece of the reply."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[CallDelta] | None = None
    function_call: Function | None = None


class Choice(msgspec.Struct, gc=False):
    """The only choice we ask for."""

    delta: Delta | None = None
    finish_reason: str | None = None
    message: Any = None


class CachedTokens(msgspec.Struct, gc=False):
    """Of the prompt's tokens, those that were not computed again."""

    cached_tokens: int | None = None


class Counts(msgspec.Struct, gc=False):
    """What the server counted."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: CachedTokens | None = None
    prompt_cache_hit_tokens: int | None = None


class Frame(msgspec.Struct, gc=False):
    """One event of the stream, or a reply that came whole."""

    choices: list[Choice] | None = None
    usage: Counts | None = None
    error: Any = None


# What servers say that something is wrong with, where they do not say it in an `error`.
_COMPLAINTS = frozenset({"message", "detail", "code", "msg"})
_FRAME = msgspec.json.Decoder(Frame)


def read_frames(events: list[bytes]) -> list[Frame] | None:
    """All events of one read, if each of them has the usual shape."""
    try:
        frames = _FRAME.decode_lines(b"\n".join(events))
    except (ValueError, RecursionError):
        return None
    return None if None in [frame.choices for frame in frames] else frames


def read_frame(event: bytes, *, whole: bool = False) -> Frame:
    """One event of any shape; `NotJson` when it is none. What has no choices is an error if it complains.

    An event that was torn off is read as far as it goes, unless it is the `whole` reply.
    """
    frames = read_frames([event])
    if frames and len(frames) == 1:
        return frames[0]
    try:
        return loose_frame(read_json(event))
    except NotJson as error:
        if whole:
            raise
        from ostler.models.torn_json import read_torn

        try:
            return loose_frame(read_torn(event))
        except NotJson:
            raise error from None


def whole_delta(message: Any) -> Delta:
    """A message that came whole, as if it were a piece."""
    return _delta(message, True) if isinstance(message, dict) else Delta()


def loose_frame(document: Any) -> Frame:
    """A frame out of whatever a server takes for one."""
    if isinstance(document, list) and document:  # as some servers wrap their errors
        document = document[0]
    if not isinstance(document, dict):
        raise NotJson("it is no object")
    usage = _counts(document.get("usage"))
    choices = document.get("choices")
    if not isinstance(choices, list):
        told = document.get("error") or (document if _COMPLAINTS & document.keys() else None)
        return Frame([], usage, told)
    return Frame([_choice(choice) for choice in choices if isinstance(choice, dict)], usage, document.get("error"))


def _choice(choice: dict[str, Any]) -> Choice:
    delta, text, reason = choice.get("delta"), choice.get("text"), choice.get("finish_reason")
    if isinstance(delta, dict) and delta:
        piece = _delta(delta, False)
    elif isinstance(text, str):
        piece = Delta(content=text)
    else:
        piece = whole_delta(choice.get("message"))
    return Choice(piece, reason if isinstance(reason, str) else None)


def _delta(delta: dict[str, Any], whole: bool) -> Delta:
    content, thought = _content(delta.get("content"))
    told = next((delta[key] for key in ("reasoning_content", "reasoning", "thinking") if delta.get(key)), None)
    calls = delta.get("tool_calls")
    calls = [calls] if isinstance(calls, dict) else calls if isinstance(calls, list) else []
    function = delta.get("function_call")
    return Delta(
        content=content,
        reasoning_content=thought or (_content(told)[0] if told else None),
        refusal=compact(delta["refusal"]) if delta.get("refusal") else None,
        tool_calls=[_call(call, at if whole else None) for at, call in enumerate(calls) if isinstance(call, dict)],
        function_call=_function(function) if isinstance(function, dict) else None,
    )


def _content(content: Any) -> tuple[str | None, str | None]:
    """Answer and reasoning in a content that may be a string, a list of parts, an object or something else."""
    if content is None or isinstance(content, str):
        return content, None
    if isinstance(content, list):
        pairs = [_content(part) for part in content]
        return "".join(text or "" for text, _ in pairs) or None, "".join(thought or "" for _, thought in pairs) or None
    if isinstance(content, dict):
        for key in ("thinking", "reasoning"):
            if content.get(key):
                return None, _content(content[key])[0]
        for key in ("text", "content", "value"):
            if key in content:
                return _content(content[key])
    return compact(content), None


def _call(call: dict[str, Any], place: int | None) -> CallDelta:
    index = call.get("index")
    if isinstance(index, str) and index.isdecimal() and len(index) < 6:
        index = int(index)
    known = index if isinstance(index, int) and not isinstance(index, bool) else place
    function = call.get("function")
    call_id = call.get("id")
    return CallDelta(
        index=known if place is None else place,
        id=compact(call_id) if call_id is not None else None,
        function=_function(function if isinstance(function, dict) else call),
    )


def _function(function: dict[str, Any]) -> Function:
    name, arguments = function.get("name"), function.get("arguments", function.get("input"))
    return Function(compact(name) if name else None, compact(arguments) if arguments is not None else None)


def _counts(usage: Any) -> Counts | None:
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
    return Counts(
        sane_count(usage.get("prompt_tokens")),
        sane_count(usage.get("completion_tokens")),
        CachedTokens(sane_count(cached)),
    )


def sane_count(value: Any) -> int:
    """A number of tokens that can be one."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 16:
        value = int(value)
    counts = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if counts and 0 <= value < 2**53 else 0
