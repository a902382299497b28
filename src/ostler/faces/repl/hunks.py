"""The hunks of a change, gone through one by one: which of them a person wants."""

from collections.abc import Iterator, Sequence

WISH = "Of this change only the following is wanted, exactly as it stands here. Make just that change:"


class Hunks:
    """Several diffs, hunk by hunk, each below the names of its file."""

    def __init__(self, diffs: Sequence[str]) -> None:
        self._hunks = [pair for diff in diffs for pair in _split(diff)]
        self._wanted: list[bool] = []

    def __len__(self) -> int:
        return len(self._hunks)

    @property
    def now(self) -> tuple[int, int, str]:
        """The number of the hunk that is to be chosen next, how many there are, and what it is."""
        head, hunk = self._hunks[len(self._wanted)]
        return len(self._wanted) + 1, len(self._hunks), head + hunk

    def choose(self, wanted: bool) -> bool:
        """Take it or leave it out; whether that was the last."""
        self._wanted.append(wanted)
        return len(self._wanted) == len(self._hunks)

    @property
    def taken(self) -> int:
        return sum(self._wanted)

    @property
    def all_taken(self) -> bool:
        return self.taken == len(self._hunks)

    @property
    def wish(self) -> str:
        """The wanted ones in words that a model can follow."""
        parts: list[str] = []
        last = ""
        for (head, hunk), wanted in zip(self._hunks, self._wanted, strict=True):
            if wanted:
                parts += [head if head != last else "", hunk]
                last = head
        return f"{WISH}\n\n```diff\n{''.join(parts)}```"


def _split(diff: str) -> Iterator[tuple[str, str]]:
    """Each hunk with the lines that name its file."""
    lines = diff.splitlines(keepends=True)
    starts = [at for at, line in enumerate(lines) if line.startswith("@@ ")]
    head = "".join(lines[: starts[0]]) if starts else ""
    for at, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        hunk = "".join(lines[at:end])
        yield head, hunk if hunk.endswith("\n") else f"{hunk}\n"
