"""The place in a text that is most like some lines that are not in it, found in bounded time."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

MAX_COMPARED_LENGTH = 400  # characters of a line that are compared
_MAX_LINES = 200_000  # different lines that are compared
_MAX_OCCURRENCES = 64  # a line that occurs more often says little of the place
_MAX_COMPARED_LINES = 60  # lines of a place that are compared
_MIN_SIMILARITY = 50.0


class ClosestLines(msgspec.Struct, frozen=True):
    """A run of lines, by index, and how like it is, up to 100."""

    start: int
    size: int
    similarity: float


def closest_lines(contents: Sequence[str], expected: Sequence[str]) -> ClosestLines | None:
    """The run of lines most like the wanted ones; None when nothing is like them."""
    asked = [line.strip()[:MAX_COMPARED_LENGTH] for line in expected]
    if not any(asked) or not contents:
        return None
    keys = [line.strip()[:MAX_COMPARED_LENGTH] for line in contents]
    starts = _starts_by_votes(keys, asked)
    best = _best_run(keys, asked, starts)
    if best is None or best.similarity < 80:
        best = _best_run(keys, asked, [*starts, *_starts_by_similarity(keys, asked)])
    enough = _MIN_SIMILARITY / 2 if starts else _MIN_SIMILARITY  # a line that is just as asked says much by itself
    return best if best and best.similarity >= enough else None


def _starts_by_votes(keys: Sequence[str], expected: Sequence[str]) -> list[int]:
    """Starts for which the most lines stand where they should."""
    offsets: dict[str, list[int]] = {}
    for offset, key in enumerate(expected):
        if key and len(here := offsets.setdefault(key, [])) < 4:
            here.append(offset)
    places: dict[str, list[int]] = {key: [] for key in offsets}
    for index, key in enumerate(keys):
        if key in places:
            places[key].append(index)
    votes: Counter[int] = Counter()
    for key, found in places.items():
        if len(found) <= _MAX_OCCURRENCES:
            votes.update(index - offset for index in found for offset in offsets[key])
    return [start for start, _ in votes.most_common(8)]


def _starts_by_similarity(keys: Sequence[str], expected: Sequence[str]) -> Iterator[int]:
    """Starts at which one of the longest lines is nearly as it should be."""
    from rapidfuzz import fuzz, process

    places: dict[str, int] = {}
    for index, key in enumerate(keys):
        if key and len(places) < _MAX_LINES:
            places.setdefault(key, index)
    choices = list(places)
    longest = sorted(range(len(expected)), key=lambda offset: -len(expected[offset]))[:3]
    for offset in longest:
        for key, _, _ in process.extract(
            expected[offset], choices, scorer=fuzz.ratio, score_cutoff=_MIN_SIMILARITY, limit=4
        ):
            yield places[key] - offset
        if len(expected) == 1:  # perhaps a part of a line
            short = expected[0]
            for key, _, _ in process.extract(short, choices, scorer=fuzz.partial_ratio, score_cutoff=80, limit=2):
                yield places[key]


def _best_run(keys: Sequence[str], expected: Sequence[str], starts: Sequence[int]) -> ClosestLines | None:
    found = [
        ClosestLines(start, _run_size(keys, expected, start), _similarity(keys, expected, start))
        for start in _clamp_starts(keys, starts)
    ]
    return max(found, key=lambda near: (near.similarity, -near.start), default=None)


def _clamp_starts(keys: Sequence[str], starts: Sequence[int]) -> list[int]:
    return sorted({min(max(start, 0), len(keys) - 1) for start in starts})


def _run_size(keys: Sequence[str], expected: Sequence[str], start: int) -> int:
    return min(len(expected), len(keys) - start)


def _similarity(keys: Sequence[str], expected: Sequence[str], start: int) -> float:
    from rapidfuzz import fuzz

    if len(expected) == 1:
        return max(fuzz.ratio(expected[0], keys[start]), 0.9 * fuzz.partial_ratio(expected[0], keys[start]))
    total = weight = 0.0
    for offset, key in enumerate(expected[:_MAX_COMPARED_LINES]):
        there = keys[start + offset] if start + offset < len(keys) else ""
        heavy = len(key) + 1
        total += heavy * fuzz.ratio(key, there)
        weight += heavy
    return total / weight


def most_similar_part(line: str, part: str) -> tuple[int, int]:
    """From where to where a line is most like a part of one."""
    from rapidfuzz import fuzz

    found = fuzz.partial_ratio_alignment(part[:MAX_COMPARED_LENGTH], line[: 4 * MAX_COMPARED_LENGTH])
    if not found or len(part) >= len(line):
        return 0, len(line)
    size, near = found.dest_end - found.dest_start, range(max(found.dest_start - 3, 0), found.dest_start + 4)
    start = max(
        near,
        key=lambda at: (fuzz.ratio(part[:MAX_COMPARED_LENGTH], line[at : at + size]), line[at : at + 2] == part[:2]),
    )
    return start, start + size
