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
    from rapidfuzz.distance import OSA  # imported late: most runs mistype nothing

    best: tuple[int, str] | None = None
    max_distance = min((len(folded) + 2) // 3, 4)
    for name in islice(names, _MAX_NAMES):
        candidate = name.casefold()
        if not candidate or abs(len(candidate) - len(folded)) > max_distance:
            continue
        distance = OSA.distance(folded, candidate, score_cutoff=max_distance)
        if distance <= max_distance and distance < max(len(folded), len(candidate)):
            best = min(best, (distance, name)) if best else (distance, name)
    return best[1] if best else None
