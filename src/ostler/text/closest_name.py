"""Suggests the known name that is closest to a mistyped word."""

from collections.abc import Iterable
from itertools import islice

_MAX_WORD_LENGTH = 40
_MAX_NAMES = 2000


def closest_name(word: str, names: Iterable[str]) -> str | None:
    """Return the closest known name, or None if none is close enough."""
    folded = word.casefold()
    if not folded or len(folded) > _MAX_WORD_LENGTH:
        return None
    best: tuple[int, str] | None = None
    max_distance = min((len(folded) + 2) // 3, 4)
    for name in islice(names, _MAX_NAMES):
        candidate = name.casefold()
        if not candidate or abs(len(candidate) - len(folded)) > max_distance:
            continue
        distance = _edit_distance(folded, candidate, max_distance)
        if distance <= max_distance and distance < max(len(folded), len(candidate)):
            best = min(best, (distance, name)) if best else (distance, name)
    return best[1] if best else None


def _edit_distance(left: str, right: str, limit: int) -> int:
    """Return the number of added, removed, changed or swapped letters between two words.

    The result is exact up to `limit`; above that it is only known to be greater.
    """
    before_last: list[int] = []
    last = list(range(len(right) + 1))
    for row, char in enumerate(left, 1):
        current = [row]
        for column, other in enumerate(right, 1):
            cost = min(last[column] + 1, current[column - 1] + 1, last[column - 1] + (char != other))
            if row > 1 and column > 1 and char == right[column - 2] and left[row - 2] == other:
                cost = min(cost, before_last[column - 2] + 1)
            current.append(cost)
        if min(current) > limit:
            return limit + 1
        before_last, last = last, current
    return last[-1]
