"""Recognizes calls that the model only repeats from what it was shown, and tells it so."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec

from ostler.core.tools import QUOTED_CALL, ToolResult
from ostler.models.model_types import AssistantMessage, RequestMessage, ToolResultsMessage, UserMessage

QUOTED_CALL_ERROR = (
    "Nothing ran: your answer ended with a call that is also in a text you were shown, so it was read as a quotation. "
    "If you want to make this call, use the tool interface, or write it between <tool_call> and </tool_call>."
)

_FENCE_LINE = re.compile(r"^\s*(?:`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_LINE_PREFIX = re.compile(r"^[ \t]*(?:[0-9]{1,7}(?:\t|→|\||:)|>|\+)[ \t]?", re.MULTILINE)
_IGNORED = re.compile(r"[\s\\\"'`]+")


class ShownTexts:
    """The prompts and tool results in a conversation, which a model can quote."""

    def __init__(self, history: Sequence[RequestMessage]) -> None:
        self._history = history

    def contains(self, source: str) -> bool:
        """Return whether a call is in a text that was shown; spaces, quotes and line numbers make no difference."""
        wanted = _normalize(_FENCE_LINE.sub("", source)).strip("[]")
        return wanted != "" and any(wanted in text for text in self._normalized)

    @cached_property
    def _normalized(self) -> list[str]:
        texts = list(_shown_texts(self._history))
        return [_normalize(text) for text in texts] + [_normalize(_LINE_PREFIX.sub("", text)) for text in texts]


def _normalize(text: str) -> str:
    return _IGNORED.sub("", text)


def _shown_texts(history: Sequence[RequestMessage]) -> Iterator[str]:
    for entry in history:
        if isinstance(entry, ToolResultsMessage):
            yield from (result.for_model for result in entry.results)
        elif isinstance(entry, UserMessage):
            yield from (text for block in entry.blocks if (text := getattr(block, "text", "")))


def explain_quoted_calls(history: Sequence[RequestMessage]) -> tuple[RequestMessage, ...]:
    """Return the history with an explanation as the result of each quoted call."""
    replies = (entry.message for entry in history if isinstance(entry, AssistantMessage))
    quoted = {call.id for reply in replies for call in reply.calls if call.tool == QUOTED_CALL}
    if not quoted:
        return tuple(history)

    def explain(result: ToolResult) -> ToolResult:
        is_quoted = result.call_id in quoted
        return msgspec.structs.replace(result, for_model=QUOTED_CALL_ERROR) if is_quoted else result

    return tuple(
        ToolResultsMessage(tuple(map(explain, entry.results))) if isinstance(entry, ToolResultsMessage) else entry
        for entry in history
    )
