"""Stream events of OpenAI-compatible servers as typed values, with a lenient fallback."""

from typing import Any

import msgspec

from ostler.models.loose_json import LooseJsonError, read_json, to_text


class FunctionDelta(msgspec.Struct, gc=False):
    """Name and arguments of a call, or fragments of them."""

    name: str | None = None
    arguments: str | None = None


class CallDelta(msgspec.Struct, gc=False):
    """A fragment of a tool call."""

    function: FunctionDelta
    index: int | None = None
    id: str | None = None


class ChatDelta(msgspec.Struct, gc=False):
    """A fragment of the reply."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[CallDelta] | None = None
    function_call: FunctionDelta | None = None


class ChatChoice(msgspec.Struct, gc=False):
    """A choice; requests ask for only one. Some servers omit the `index`."""

    delta: ChatDelta | None = None
    finish_reason: str | None = None
    message: Any = None
    index: int | None = None


class PromptTokensDetails(msgspec.Struct, gc=False):
    """How many of the prompt's tokens were cached."""

    cached_tokens: int | None = None


class ChatUsage(msgspec.Struct, gc=False):
    """Token counts of a reply."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptTokensDetails | None = None
    prompt_cache_hit_tokens: int | None = None


class PromptProgress(msgspec.Struct, gc=False):
    """How many tokens of the prompt llama.cpp has read."""

    total: int = 0
    processed: int = 0
    time_ms: float = 0.0


class ChatFrame(msgspec.Struct, gc=False):
    """One event of the stream, or a reply that was not streamed."""

    choices: list[ChatChoice] | None = None
    usage: ChatUsage | None = None
    error: Any = None
    prompt_progress: PromptProgress | None = None


# Keys of error objects that servers send without an `error` key.
_ERROR_KEYS = frozenset({"message", "detail", "code", "msg"})
_DECODER = msgspec.json.Decoder(ChatFrame)


def decode_frames(events: list[bytes]) -> list[ChatFrame] | None:
    """Decode the events of one read. Return None unless all of them have the usual shape."""
    try:
        frames = _DECODER.decode_lines(b"\n".join(events))
    except (ValueError, RecursionError):
        return None
    return None if None in [frame.choices for frame in frames] else frames


def decode_frame(event: bytes, *, is_complete: bool = False) -> ChatFrame:
    """Decode one event of any shape. Raises `LooseJsonError`.

    A truncated event is read up to its end, unless it is a complete reply (`is_complete`).
    """
    frames = decode_frames([event])
    if frames and len(frames) == 1:
        return frames[0]
    try:
        return frame_from_document(read_json(event))
    except LooseJsonError as error:
        if is_complete:
            raise
        from ostler.models.truncated_json import parse_truncated

        try:
            return frame_from_document(parse_truncated(event))
        except LooseJsonError:
            raise error from None


def delta_from_message(message: Any) -> ChatDelta:
    """Return a complete message as one delta."""
    return _convert_delta(message, True) if isinstance(message, dict) else ChatDelta()


def frame_from_document(document: Any) -> ChatFrame:
    """Convert any JSON object to a frame; an object without choices may be an error. Raises `LooseJsonError`."""
    if isinstance(document, list) and document:  # some servers wrap their errors in a list
        document = document[0]
    if not isinstance(document, dict):
        raise LooseJsonError("not a JSON object")
    usage = _convert_usage(document.get("usage"))
    choices = document.get("choices")
    if not isinstance(choices, list):
        error = document.get("error") or (document if _ERROR_KEYS & document.keys() else None)
        return ChatFrame([], usage, error)
    return ChatFrame(
        [_convert_choice(choice) for choice in choices if isinstance(choice, dict)], usage, document.get("error")
    )


def _convert_choice(choice: dict[str, Any]) -> ChatChoice:
    delta, text, reason = choice.get("delta"), choice.get("text"), choice.get("finish_reason")
    if isinstance(delta, dict) and delta:
        converted = _convert_delta(delta, False)
    elif isinstance(text, str):
        converted = ChatDelta(content=text)
    else:
        converted = delta_from_message(choice.get("message"))
    return ChatChoice(converted, reason if isinstance(reason, str) else None, index=_convert_index(choice.get("index")))


def _convert_delta(delta: dict[str, Any], is_complete: bool) -> ChatDelta:
    content, thought = _split_content(delta.get("content"))
    reasoning = next((delta[key] for key in ("reasoning_content", "reasoning", "thinking") if delta.get(key)), None)
    calls = delta.get("tool_calls")
    calls = [calls] if isinstance(calls, dict) else calls if isinstance(calls, list) else []
    function = delta.get("function_call")
    return ChatDelta(
        content=content,
        reasoning_content=thought or (_split_content(reasoning)[0] if reasoning else None),
        refusal=to_text(delta["refusal"]) if delta.get("refusal") else None,
        tool_calls=[
            _convert_call(call, position if is_complete else None)
            for position, call in enumerate(calls)
            if isinstance(call, dict)
        ],
        function_call=_convert_function(function) if isinstance(function, dict) else None,
    )


def _split_content(content: Any) -> tuple[str | None, str | None]:
    """Return answer and reasoning of a content, which may be a string, a list of parts, an object or another value."""
    if content is None or isinstance(content, str):
        return content, None
    if isinstance(content, list):
        pairs = [_split_content(part) for part in content]
        return "".join(text or "" for text, _ in pairs) or None, "".join(thought or "" for _, thought in pairs) or None
    if isinstance(content, dict):
        for key in ("thinking", "reasoning"):
            if content.get(key):
                return None, _split_content(content[key])[0]
        for key in ("text", "content", "value"):
            if key in content:
                return _split_content(content[key])
    return to_text(content), None


def _convert_call(call: dict[str, Any], position: int | None) -> CallDelta:
    index = _convert_index(call.get("index"))
    known = position if index is None else index
    function = call.get("function")
    call_id = call.get("id")
    return CallDelta(
        index=known if position is None else position,
        id=to_text(call_id) if call_id is not None else None,
        function=_convert_function(function if isinstance(function, dict) else call),
    )


def _convert_index(index: Any) -> int | None:
    if isinstance(index, str) and index.isdecimal() and len(index) < 6:
        return int(index)
    return index if isinstance(index, int) and not isinstance(index, bool) else None


def _convert_function(function: dict[str, Any]) -> FunctionDelta:
    name, arguments = function.get("name"), function.get("arguments", function.get("input"))
    return FunctionDelta(to_text(name) if name else None, to_text(arguments) if arguments is not None else None)


def _convert_usage(usage: Any) -> ChatUsage | None:
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
    return ChatUsage(
        valid_count(usage.get("prompt_tokens")),
        valid_count(usage.get("completion_tokens")),
        PromptTokensDetails(valid_count(cached)),
    )


def valid_count(value: Any) -> int:
    """Return `value` as a number of tokens; 0 if it is not plausible."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 16:
        value = int(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < 2**53 else 0
