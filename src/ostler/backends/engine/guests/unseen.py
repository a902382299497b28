"""The results that the model has not seen yet, and how much of each fits: they may be cut, never left out."""

from collections.abc import Sequence

from ostler.backends.engine.history import Entry, by_hand
from ostler.backends.engine.measure import FRAME, byte_size
from ostler.models.words import ModelSaid, ToolsSaid
from ostler.vocabulary.tools import ToolResult

# Enough for a head, a tail and the word on what is missing.
LEAST = 200


def unseen(entries: Sequence[Entry]) -> Entry | None:
    """The results that no message of the model has followed."""
    for entry in reversed(entries):
        if isinstance(entry.said, ToolsSaid):
            return entry
        if isinstance(entry.said, ModelSaid) and not by_hand(entry.said):
            return None
    return None


def share_of(results: Sequence[ToolResult], most: int) -> int:
    """How many characters each may keep to have about `most` bytes together; what short ones leave is the others'."""
    lengths = sorted(len(result.for_model) for result in results)
    size = sum(byte_size(result.for_model) for result in results)
    left = (most - 2 * FRAME * len(lengths)) * sum(lengths) // max(size, 1)
    for place, length in enumerate(lengths):
        share = left // (len(lengths) - place)
        if length > share:
            return max(share, LEAST)
        left -= length
    return max(lengths[-1], LEAST)
