"""The place in a text that is most like some lines that are not in it, found in bounded time."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

CLIP = 400  # characters of a line that are compared
_MOST_LINES = 200_000  # different lines that are compared
_COMMON = 64  # a line that occurs more often says little of the place
_WINDOW = 60  # lines of a place that are compared
_LIKE = 50.0


class Near(msgspec.Struct, frozen=True):
    """A run of lines, by index, and how like it is, up to 100."""

    start: int
    size: int
    likeness: float


def nearest(contents: Sequence[str], wanted: Sequence[str]) -> Near | None:
    """The run of lines most like the wanted ones; None when nothing is like them."""
    asked = [line.strip()[:CLIP] for line in wanted]
    if not any(asked) or not contents:
        return None
    keys = [line.strip()[:CLIP] for line in contents]
    starts = _voted(keys, asked)
    best = _best(keys, asked, starts)
    if best is None or best.likeness < 80:
        best = _best(keys, asked, [*starts, *_alike(keys, asked)])
    enough = _LIKE / 2 if starts else _LIKE  # a line that is just as asked says much by itself
    return best if best and best.likeness >= enough else None


def _voted(keys: Sequence[str], asked: Sequence[str]) -> list[int]:
    """Starts for which the most lines stand where they should."""
    offsets: dict[str, list[int]] = {}
    for offset, key in enumerate(asked):
        if key and len(here := offsets.setdefault(key, [])) < 4:
            here.append(offset)
    places: dict[str, list[int]] = {key: [] for key in offsets}
    for index, key in enumerate(keys):
        if key in places:
            places[key].append(index)
    votes: Counter[int] = Counter()
    for key, found in places.items():
        if len(found) <= _COMMON:
            votes.update(index - offset for index in found for offset in offsets[key])
    return [start for start, _ in votes.most_common(8)]


def _alike(keys: Sequence[str], asked: Sequence[str]) -> Iterator[int]:
    """Starts at which one of the longest lines is nearly as it should be."""
    from rapidfuzz import fuzz, process

    places: dict[str, int] = {}
    for index, key in enumerate(keys):
        if key and len(places) < _MOST_LINES:
            places.setdefault(key, index)
    choices = list(places)
    longest = sorted(range(len(asked)), key=lambda offset: -len(asked[offset]))[:3]
    for offset in longest:
        for key, _, _ in process.extract(asked[offset], choices, scorer=fuzz.ratio, score_cutoff=_LIKE, limit=4):
            yield places[key] - offset
        if len(asked) == 1:  # perhaps a part of a line
            short = asked[0]
            for key, _, _ in process.extract(short, choices, scorer=fuzz.partial_ratio, score_cutoff=80, limit=2):
                yield places[key]


def _best(keys: Sequence[str], asked: Sequence[str], starts: Sequence[int]) -> Near | None:
    found = [Near(start, _size(keys, asked, start), _likeness(keys, asked, start)) for start in _within(keys, starts)]
    return max(found, key=lambda near: (near.likeness, -near.start), default=None)


def _within(keys: Sequence[str], starts: Sequence[int]) -> list[int]:
    return sorted({min(max(start, 0), len(keys) - 1) for start in starts})


def _size(keys: Sequence[str], asked: Sequence[str], start: int) -> int:
    return min(len(asked), len(keys) - start)


def _likeness(keys: Sequence[str], asked: Sequence[str], start: int) -> float:
    from rapidfuzz import fuzz

    if len(asked) == 1:
        return max(fuzz.ratio(asked[0], keys[start]), 0.9 * fuzz.partial_ratio(asked[0], keys[start]))
    total = weight = 0.0
    for offset, key in enumerate(asked[:_WINDOW]):
        there = keys[start + offset] if start + offset < len(keys) else ""
        heavy = len(key) + 1
        total += heavy * fuzz.ratio(key, there)
        weight += heavy
    return total / weight


def alike_part(line: str, part: str) -> tuple[int, int]:
    """From where to where a line is most like a part of one."""
    from rapidfuzz import fuzz

    found = fuzz.partial_ratio_alignment(part[:CLIP], line[: 4 * CLIP])
    if not found or len(part) >= len(line):
        return 0, len(line)
    size, near = found.dest_end - found.dest_start, range(max(found.dest_start - 3, 0), found.dest_start + 4)
    start = max(near, key=lambda at: (fuzz.ratio(part[:CLIP], line[at : at + size]), line[at : at + 2] == part[:2]))
    return start, start + size
