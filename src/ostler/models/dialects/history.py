"""Rewrites a history so that tool calls and results are plain text."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ostler.core.message import CallPart, Message, ThoughtPart
from ostler.core.prompt import ImageContent, TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.models.model_types import AssistantMessage, RequestMessage, ToolResultsMessage, UserMessage

WriteCalls = Callable[[Sequence[ToolCall]], str]
WriteResults = Callable[[Sequence[ToolResult], Mapping[str, ToolCall]], str]


def to_text_history(
    history: Sequence[RequestMessage], write_calls: WriteCalls, write_results: WriteResults
) -> tuple[RequestMessage, ...]:
    """Return the history with calls in the text of assistant messages and results as user messages."""
    messages: list[RequestMessage] = []
    calls: dict[str, ToolCall] = {}
    for entry in history:
        if isinstance(entry, AssistantMessage):
            calls = {call.id: call for call in entry.message.calls}
            messages.append(AssistantMessage(_to_text_message(entry.message, write_calls)))
        elif isinstance(entry, ToolResultsMessage):
            images = [image for result in entry.results for image in result.images]
            messages.append(UserMessage((TextContent(write_results(entry.results, calls)), *images)))
        else:
            messages.append(entry)
    return tuple(messages)


def _to_text_message(message: Message, write_calls: WriteCalls) -> Message:
    """Return the message with thoughts and images first, then all text and calls as one text."""
    other_parts = [part for part in message.parts if isinstance(part, ThoughtPart | ImageContent)]
    runs: list[str | list[ToolCall]] = []
    for part in message.parts:
        if isinstance(part, TextContent):
            runs.append(part.text)
        elif isinstance(part, CallPart) and runs and isinstance(runs[-1], list):
            runs[-1].append(part.call)
        elif isinstance(part, CallPart):
            runs.append([part.call])
    return msgspec.structs.replace(message, parts=(*other_parts, TextContent(_join_runs(runs, write_calls))))


def _join_runs(runs: Sequence[str | list[ToolCall]], write_calls: WriteCalls) -> str:
    """Join text and calls, with each run of calls on separate lines."""
    text = ""
    after_calls = False
    for run in runs:
        is_text = isinstance(run, str)
        needs_newline = after_calls if is_text else bool(text) and not text.endswith("\n")
        text += ("\n" if needs_newline else "") + (run if isinstance(run, str) else write_calls(run))
        after_calls = not is_text
    return text
