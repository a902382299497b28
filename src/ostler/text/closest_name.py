"""Find the known name that a mistyped word most likely meant."""

from collections.abc import Iterable
from itertools import islice

_MAX_WORD_LENGTH = 40
_MAX_NAMES = 2000


def closest_name(word: str, names: Iterable[str]) -> str | None:
    """The closest known name, or None when none is close enough to be worth asking about."""
    wanted = word.casefold()
    if not wanted or len(wanted) > _MAX_WORD_LENGTH:
        return None
    best: tuple[int, str] | None = None
    allowed = min((len(wanted) + 2) // 3, 4)
    for name in islice(names, _MAX_NAMES):
        candidate = name.casefold()
        if not candidate or abs(len(candidate) - len(wanted)) > allowed:
            continue
        distance = _edit_distance(wanted, candidate, allowed)
        if distance <= allowed and distance < max(len(wanted), len(candidate)):
            best = min(best, (distance, name)) if best else (distance, name)
    return best[1] if best else None


def _edit_distance(left: str, right: str, limit: int) -> int:
    """Edits from one word to the other: letters added, dropped, changed, or neighbours swapped.

    Beyond `most` the answer is only known to be greater.
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
