"""Find what two sequences have in common, in an effort that is bounded whatever they hold."""

from bisect import bisect_left
from collections.abc import Hashable, Sequence

# A run of equal items: where it starts on the left, on the right, and its length.
MatchingBlock = tuple[int, int, int]

_EFFORT_BUDGET = 600_000
_MAX_EDITS = 2000


def matching_blocks(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[MatchingBlock]:
    """Runs of equal items in rising order on both sides; what lies between them differs.

    Items that occur once on each side are anchors; the gaps between anchors are compared
    exactly until the effort is spent, then taken as wholly different.
    """
    start, left_end, right_end = _differing_range(left, right)
    budget = [_EFFORT_BUDGET]
    pairs: list[MatchingBlock] = [(0, 0, start)]
    at_left = at_right = start
    for anchor_left, anchor_right in [*_find_anchors(left, right, start, left_end, right_end), (left_end, right_end)]:
        if anchor_left < at_left or anchor_right < at_right:
            continue  # inside the run that the last anchor has already taken
        pairs += _match_gap(left, right, (at_left, anchor_left, at_right, anchor_right), budget)
        size = _run_length(left, right, anchor_left, anchor_right, left_end, right_end)
        pairs.append((anchor_left, anchor_right, size))
        at_left, at_right = anchor_left + size, anchor_right + size
    pairs.append((left_end, right_end, len(left) - left_end))
    return _merge_blocks(pairs)


def _differing_range(left: Sequence[Hashable], right: Sequence[Hashable]) -> tuple[int, int, int]:
    """Where the sequences begin to differ, and where each ends to differ."""
    start = _run_length(left, right, 0, 0, len(left), len(right))
    left_end, right_end = len(left), len(right)
    while left_end > start and right_end > start and left[left_end - 1] == right[right_end - 1]:
        left_end -= 1
        right_end -= 1
    return start, left_end, right_end


def _run_length(
    left: Sequence[Hashable],
    right: Sequence[Hashable],
    left_start: int,
    right_start: int,
    left_end: int,
    right_end: int,
) -> int:
    size = 0
    most = min(left_end - left_start, right_end - right_start)
    while size < most and left[left_start + size] == right[right_start + size]:
        size += 1
    return size


def _find_anchors(
    left: Sequence[Hashable], right: Sequence[Hashable], start: int, left_end: int, right_end: int
) -> list[tuple[int, int]]:
    """The longest rising chain of items that are unique on both sides."""
    if start in (left_end, right_end):
        return []
    places = _unique_positions(right, start, right_end)
    found = [(i, places[item]) for item, i in _unique_positions(left, start, left_end).items() if item in places]
    ends: list[int] = []  # the lowest right place that ends a chain of each length
    tops: list[int] = []  # the index in `found` of that end
    links: list[int] = []
    for index, (_, place) in enumerate(found):
        length = bisect_left(ends, place)
        links.append(tops[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        tops[length : length + 1] = [index]
    chain: list[tuple[int, int]] = []
    index = tops[-1] if tops else -1
    while index >= 0:
        chain.append(found[index])
        index = links[index]
    return chain[::-1]


def _unique_positions(items: Sequence[Hashable], start: int, end: int) -> dict[Hashable, int]:
    """The place of every item that occurs once, in order of place."""
    places: dict[Hashable, int] = {}
    for index in range(start, end):
        places[items[index]] = -1 if items[index] in places else index
    return {item: index for item, index in places.items() if index >= 0}


def _match_gap(
    left: Sequence[Hashable], right: Sequence[Hashable], gap: tuple[int, int, int, int], budget: list[int]
) -> list[MatchingBlock]:
    """Equal items inside a gap, one by one; none when the effort is spent."""
    low_left, high_left, low_right, high_right = gap
    shared = set(left[low_left:high_left]).intersection(right[low_right:high_right])
    if not shared:
        return []
    # Items that only one side has cannot match; without them the path is short.
    lefts = [index for index in range(low_left, high_left) if left[index] in shared]
    rights = [index for index in range(low_right, high_right) if right[index] in shared]
    path = _shortest_path([left[index] for index in lefts], [right[index] for index in rights], budget)
    return [(lefts[x], rights[y], 1) for x, y in path]


def _shortest_path(left: Sequence[Hashable], right: Sequence[Hashable], budget: list[int]) -> list[tuple[int, int]]:
    """The pairs of places on the shortest edit path (Myers' greedy search), or none beyond the budget."""
    wide, high = len(left), len(right)
    zero = min(wide + high, _MAX_EDITS) + 1  # the index of diagonal 0
    reach = [0] * (2 * zero + 1)  # the furthest left place on each diagonal
    history: list[list[int]] = []
    for edits in range(zero):
        budget[0] -= edits + 1
        if budget[0] < 0:
            return []
        history.append(reach[zero - edits - 1 : zero + edits + 2])
        for diagonal in range(-edits, edits + 1, 2):
            at = zero + diagonal
            x = reach[at + 1] if _goes_down(reach, at, diagonal, edits) else reach[at - 1] + 1
            size = _run_length(left, right, x, x - diagonal, wide, high)
            budget[0] -= size
            reach[at] = x + size
            if x + size >= wide and x + size - diagonal >= high:
                return _backtrack(history, wide, high)
    return []


def _goes_down(reach: list[int], index: int, diagonal: int, edits: int) -> bool:
    """Whether the best step onto a diagonal takes an item of the right side."""
    return diagonal == -edits or (diagonal != edits and reach[index - 1] < reach[index + 1])


def _backtrack(history: list[list[int]], x: int, y: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for edits in range(len(history) - 1, 0, -1):
        reach, diagonal = history[edits], x - y
        at = diagonal + edits + 1
        down = _goes_down(reach, at, diagonal, edits)
        start = reach[at + 1] if down else reach[at - 1] + 1
        while x > start:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = (x, y - 1) if down else (x - 1, y)
    pairs += [(place, place) for place in range(x - 1, -1, -1)]
    return pairs[::-1]


def _merge_blocks(blocks: list[MatchingBlock]) -> list[MatchingBlock]:
    """The blocks without empty ones, neighbours made one."""
    joined: list[MatchingBlock] = []
    for left, right, size in blocks:
        if joined and size and joined[-1][0] + joined[-1][2] == left and joined[-1][1] + joined[-1][2] == right:
            joined[-1] = (joined[-1][0], joined[-1][1], joined[-1][2] + size)
        elif size:
            joined.append((left, right, size))
    return joined
