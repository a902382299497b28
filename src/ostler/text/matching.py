"""Finds the common parts of two sequences with bounded effort."""

from bisect import bisect_left
from collections.abc import Hashable, Sequence

# A run of equal items: start on the left, start on the right, length.
MatchingBlock = tuple[int, int, int]

_EFFORT_BUDGET = 600_000
_MAX_EDITS = 2000


def matching_blocks(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[MatchingBlock]:
    """Return runs of equal items, in ascending order on both sides; everything between them differs.

    Items that occur once on each side are anchors. The gaps between anchors are compared exactly until the effort
    budget is used up; after that they are treated as completely different.
    """
    start, left_end, right_end = _differing_range(left, right)
    budget = [_EFFORT_BUDGET]
    pairs: list[MatchingBlock] = [(0, 0, start)]
    left_pos = right_pos = start
    for anchor_left, anchor_right in [*_find_anchors(left, right, start, left_end, right_end), (left_end, right_end)]:
        if anchor_left < left_pos or anchor_right < right_pos:
            continue  # inside the run of the previous anchor
        pairs += _match_gap(left, right, (left_pos, anchor_left, right_pos, anchor_right), budget)
        size = _run_length(left, right, anchor_left, anchor_right, left_end, right_end)
        pairs.append((anchor_left, anchor_right, size))
        left_pos, right_pos = anchor_left + size, anchor_right + size
    pairs.append((left_end, right_end, len(left) - left_end))
    return _merge_blocks(pairs)


def _differing_range(left: Sequence[Hashable], right: Sequence[Hashable]) -> tuple[int, int, int]:
    """Return the length of the common start, and the end of the differing part on each side."""
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
    limit = min(left_end - left_start, right_end - right_start)
    while size < limit and left[left_start + size] == right[right_start + size]:
        size += 1
    return size


def _find_anchors(
    left: Sequence[Hashable], right: Sequence[Hashable], start: int, left_end: int, right_end: int
) -> list[tuple[int, int]]:
    """Return the longest ascending chain of items that are unique on both sides."""
    if start in (left_end, right_end):
        return []
    positions = _unique_positions(right, start, right_end)
    pairs = [(i, positions[item]) for item, i in _unique_positions(left, start, left_end).items() if item in positions]
    ends: list[int] = []  # the lowest right position that ends a chain of each length
    tails: list[int] = []  # the index in `pairs` of that end
    links: list[int] = []
    for index, (_, position) in enumerate(pairs):
        length = bisect_left(ends, position)
        links.append(tails[length - 1] if length else -1)
        ends[length : length + 1] = [position]
        tails[length : length + 1] = [index]
    chain: list[tuple[int, int]] = []
    index = tails[-1] if tails else -1
    while index >= 0:
        chain.append(pairs[index])
        index = links[index]
    return chain[::-1]


def _unique_positions(items: Sequence[Hashable], start: int, end: int) -> dict[Hashable, int]:
    """Return the position of every item that occurs once, in order."""
    positions: dict[Hashable, int] = {}
    for index in range(start, end):
        positions[items[index]] = -1 if items[index] in positions else index
    return {item: index for item, index in positions.items() if index >= 0}


def _match_gap(
    left: Sequence[Hashable], right: Sequence[Hashable], gap: tuple[int, int, int, int], budget: list[int]
) -> list[MatchingBlock]:
    """Return the equal items in a gap, or an empty list if the budget is used up."""
    low_left, high_left, low_right, high_right = gap
    shared = set(left[low_left:high_left]).intersection(right[low_right:high_right])
    if not shared:
        return []
    # Items of only one side cannot match; without them the path is short.
    lefts = [index for index in range(low_left, high_left) if left[index] in shared]
    rights = [index for index in range(low_right, high_right) if right[index] in shared]
    path = _shortest_path([left[index] for index in lefts], [right[index] for index in rights], budget)
    return [(lefts[x], rights[y], 1) for x, y in path]


def _shortest_path(left: Sequence[Hashable], right: Sequence[Hashable], budget: list[int]) -> list[tuple[int, int]]:
    """Return the matching positions on the shortest edit path (Myers); empty if the budget is used up."""
    left_size, right_size = len(left), len(right)
    zero = min(left_size + right_size, _MAX_EDITS) + 1  # the index of diagonal 0
    reach = [0] * (2 * zero + 1)  # the furthest left position on each diagonal
    history: list[list[int]] = []
    for edits in range(zero):
        budget[0] -= edits + 1
        if budget[0] < 0:
            return []
        history.append(reach[zero - edits - 1 : zero + edits + 2])
        for diagonal in range(-edits, edits + 1, 2):
            index = zero + diagonal
            x = reach[index + 1] if _goes_down(reach, index, diagonal, edits) else reach[index - 1] + 1
            size = _run_length(left, right, x, x - diagonal, left_size, right_size)
            budget[0] -= size
            reach[index] = x + size
            if x + size >= left_size and x + size - diagonal >= right_size:
                return _backtrack(history, left_size, right_size)
    return []


def _goes_down(reach: list[int], index: int, diagonal: int, edits: int) -> bool:
    """Return whether the best step to a diagonal consumes an item of the right side."""
    return diagonal == -edits or (diagonal != edits and reach[index - 1] < reach[index + 1])


def _backtrack(history: list[list[int]], x: int, y: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for edits in range(len(history) - 1, 0, -1):
        reach, diagonal = history[edits], x - y
        index = diagonal + edits + 1
        down = _goes_down(reach, index, diagonal, edits)
        start = reach[index + 1] if down else reach[index - 1] + 1
        while x > start:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = (x, y - 1) if down else (x - 1, y)
    pairs += [(position, position) for position in range(x - 1, -1, -1)]
    return pairs[::-1]


def _merge_blocks(blocks: list[MatchingBlock]) -> list[MatchingBlock]:
    """Drop empty blocks and merge adjacent ones."""
    merged: list[MatchingBlock] = []
    for left, right, size in blocks:
        if merged and size and merged[-1][0] + merged[-1][2] == left and merged[-1][1] + merged[-1][2] == right:
            merged[-1] = (merged[-1][0], merged[-1][1], merged[-1][2] + size)
        elif size:
            merged.append((left, right, size))
    return merged
