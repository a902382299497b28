"""Finds the lines of a text that are most similar to given lines, in bounded time."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

MAX_COMPARED_LENGTH = 400  # characters of a line that are compared
_MAX_LINES = 200_000  # different lines that are compared
_MAX_OCCURRENCES = 64  # more frequent lines do not identify a place
_MAX_COMPARED_LINES = 60  # lines of a place that are compared
_MIN_SIMILARITY = 50.0


class ClosestLines(msgspec.Struct, frozen=True):
    """A range of lines, and its similarity from 0 to 100."""

    start: int
    size: int
    similarity: float


def closest_lines(contents: Sequence[str], expected: Sequence[str]) -> ClosestLines | None:
    """Return the lines most similar to the expected ones, or None if nothing is similar."""
    expected_keys = [line.strip()[:MAX_COMPARED_LENGTH] for line in expected]
    if not any(expected_keys) or not contents:
        return None
    keys = [line.strip()[:MAX_COMPARED_LENGTH] for line in contents]
    starts = _starts_by_votes(keys, expected_keys)
    best = _best_run(keys, expected_keys, starts)
    if best is None or best.similarity < 80:
        best = _best_run(keys, expected_keys, [*starts, *_starts_by_similarity(keys, expected_keys)])
    threshold = _MIN_SIMILARITY / 2 if starts else _MIN_SIMILARITY  # an identical line is strong evidence
    return best if best and best.similarity >= threshold else None


def _starts_by_votes(keys: Sequence[str], expected: Sequence[str]) -> list[int]:
    """Return the starts with the most identical lines at their expected offset."""
    offsets: dict[str, list[int]] = {}
    for offset, key in enumerate(expected):
        if key and len(key_offsets := offsets.setdefault(key, [])) < 4:
            key_offsets.append(offset)
    places: dict[str, list[int]] = {key: [] for key in offsets}
    for index, key in enumerate(keys):
        if key in places:
            places[key].append(index)
    votes: Counter[int] = Counter()
    for key, indexes in places.items():
        if len(indexes) <= _MAX_OCCURRENCES:
            votes.update(index - offset for index in indexes for offset in offsets[key])
    return [start for start, _ in votes.most_common(8)]


def _starts_by_similarity(keys: Sequence[str], expected: Sequence[str]) -> Iterator[int]:
    """Yield starts where one of the longest lines is similar to the expected one."""
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
        if len(expected) == 1:  # it may be a part of a line
            short = expected[0]
            for key, _, _ in process.extract(short, choices, scorer=fuzz.partial_ratio, score_cutoff=80, limit=2):
                yield places[key]


def _best_run(keys: Sequence[str], expected: Sequence[str], starts: Sequence[int]) -> ClosestLines | None:
    clamped = sorted({min(max(start, 0), len(keys) - 1) for start in starts})
    candidates = [
        ClosestLines(start, min(len(expected), len(keys) - start), _similarity(keys, expected, start))
        for start in clamped
    ]
    return max(candidates, key=lambda candidate: (candidate.similarity, -candidate.start), default=None)


def _similarity(keys: Sequence[str], expected: Sequence[str], start: int) -> float:
    from rapidfuzz import fuzz

    if len(expected) == 1:
        return max(fuzz.ratio(expected[0], keys[start]), 0.9 * fuzz.partial_ratio(expected[0], keys[start]))
    total = total_weight = 0.0
    for offset, key in enumerate(expected[:_MAX_COMPARED_LINES]):
        actual = keys[start + offset] if start + offset < len(keys) else ""
        weight = len(key) + 1
        total += weight * fuzz.ratio(key, actual)
        total_weight += weight
    return total / total_weight


def most_similar_part(line: str, part: str) -> tuple[int, int]:
    """Return the start and end of the part of a line that is most similar to `part`."""
    from rapidfuzz import fuzz

    alignment = fuzz.partial_ratio_alignment(part[:MAX_COMPARED_LENGTH], line[: 4 * MAX_COMPARED_LENGTH])
    if not alignment or len(part) >= len(line):
        return 0, len(line)
    size = alignment.dest_end - alignment.dest_start
    starts = range(max(alignment.dest_start - 3, 0), alignment.dest_start + 4)
    start = max(
        starts,
        key=lambda i: (fuzz.ratio(part[:MAX_COMPARED_LENGTH], line[i : i + size]), line[i : i + 2] == part[:2]),
    )
    return start, start + size
