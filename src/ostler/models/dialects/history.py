"""A history in which calls and results are words, for models that are told of tools in words."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ostler.models.words import ModelSaid, Said, ToolsSaid, UserSaid
from ostler.vocabulary.message import Called, Message, Thought
from ostler.vocabulary.prompt import Image, Text
from ostler.vocabulary.tools import ToolCall, ToolResult

WriteCalls = Callable[[Sequence[ToolCall]], str]
WriteResults = Callable[[Sequence[ToolResult], Mapping[str, ToolCall]], str]


def in_words(history: Sequence[Said], write_calls: WriteCalls, write_results: WriteResults) -> tuple[Said, ...]:
    """The history with every message's calls in its text, and the results of a message as one of the user's."""
    told: list[Said] = []
    calls: dict[str, ToolCall] = {}
    for said in history:
        if isinstance(said, ModelSaid):
            calls = {call.id: call for call in said.message.calls}
            told.append(ModelSaid(_message(said.message, write_calls)))
        elif isinstance(said, ToolsSaid):
            images = [image for result in said.results for image in result.images]
            told.append(UserSaid((Text(write_results(said.results, calls)), *images)))
        else:
            told.append(said)
    return tuple(told)


def _message(message: Message, write_calls: WriteCalls) -> Message:
    """Reasoning as it was, then all words in their order; calls that follow each other are written together."""
    kept = [part for part in message.parts if isinstance(part, Thought | Image)]
    runs: list[str | list[ToolCall]] = []
    for part in message.parts:
        if isinstance(part, Text):
            runs.append(part.text)
        elif isinstance(part, Called) and runs and isinstance(runs[-1], list):
            runs[-1].append(part.call)
        elif isinstance(part, Called):
            runs.append([part.call])
    return msgspec.structs.replace(message, parts=(*kept, Text(_joined(runs, write_calls))))


def _joined(runs: Sequence[str | list[ToolCall]], write_calls: WriteCalls) -> str:
    """Words and calls as one text, each run of calls on lines of its own."""
    written = ""
    after_calls = False
    for run in runs:
        is_words = isinstance(run, str)
        apart = after_calls if is_words else bool(written) and not written.endswith("\n")
        written += ("\n" if apart else "") + (run if isinstance(run, str) else write_calls(run))
        after_calls = not is_words
    return written
