"""Tool results the model has not seen yet, and how much of each fits."""

from collections.abc import Sequence

from ostler.backends.engine.history import HistoryEntry, is_manual_result
from ostler.backends.engine.token_estimate import FRAME_BYTES, byte_size
from ostler.core.tools import ToolResult
from ostler.models.model_types import AssistantMessage, ToolResultsMessage

# Enough for a head, a tail and the note about what is missing.
MIN_RESULT_LENGTH = 200


def find_unseen(entries: Sequence[HistoryEntry]) -> HistoryEntry | None:
    """Return the tool results after the model's last message, or None."""
    for entry in reversed(entries):
        if isinstance(entry.message, ToolResultsMessage):
            return entry
        if isinstance(entry.message, AssistantMessage) and not is_manual_result(entry.message):
            return None
    return None


def chars_per_result(results: Sequence[ToolResult], max_bytes: int) -> int:
    """Return how many characters of each result fit into `max_bytes`; short results leave more for the others."""
    lengths = sorted(len(result.for_model) for result in results)
    size = sum(byte_size(result.for_model) for result in results)
    left = (max_bytes - 2 * FRAME_BYTES * len(lengths)) * sum(lengths) // max(size, 1)
    for index, length in enumerate(lengths):
        share = left // (len(lengths) - index)
        if length > share:
            return max(share, MIN_RESULT_LENGTH)
        left -= length
    return max(lengths[-1], MIN_RESULT_LENGTH)
