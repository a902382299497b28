"""A history in which calls and results are words, for models that are told of tools in words."""

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
    """The history with every message's calls in its text, and the results of a message as one of the user's."""
    told: list[RequestMessage] = []
    calls: dict[str, ToolCall] = {}
    for said in history:
        if isinstance(said, AssistantMessage):
            calls = {call.id: call for call in said.message.calls}
            told.append(AssistantMessage(_to_text_message(said.message, write_calls)))
        elif isinstance(said, ToolResultsMessage):
            images = [image for result in said.results for image in result.images]
            told.append(UserMessage((TextContent(write_results(said.results, calls)), *images)))
        else:
            told.append(said)
    return tuple(told)


def _to_text_message(message: Message, write_calls: WriteCalls) -> Message:
    """Reasoning as it was, then all words in their order; calls that follow each other are written together."""
    kept = [part for part in message.parts if isinstance(part, ThoughtPart | ImageContent)]
    runs: list[str | list[ToolCall]] = []
    for part in message.parts:
        if isinstance(part, TextContent):
            runs.append(part.text)
        elif isinstance(part, CallPart) and runs and isinstance(runs[-1], list):
            runs[-1].append(part.call)
        elif isinstance(part, CallPart):
            runs.append([part.call])
    return msgspec.structs.replace(message, parts=(*kept, TextContent(_join_runs(runs, write_calls))))


def _join_runs(runs: Sequence[str | list[ToolCall]], write_calls: WriteCalls) -> str:
    """Words and calls as one text, each run of calls on lines of its own."""
    written = ""
    after_calls = False
    for run in runs:
        is_words = isinstance(run, str)
        apart = after_calls if is_words else bool(written) and not written.endswith("\n")
        written += ("\n" if apart else "") + (run if isinstance(run, str) else write_calls(run))
        after_calls = not is_words
    return written
