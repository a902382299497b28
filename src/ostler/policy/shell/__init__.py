"""What a command line would do: every command in it, what it overwrites, and whether a person must be asked."""

import os.path
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from ostler.policy.shell.record import Simple

__all__ = ["Analysis", "Simple", "analyse"]

LONGEST = 65536


class Analysis(msgspec.Struct, frozen=True):
    """The verdict on a command line, and what it rests on.

    `tame`: nothing dangerous was found in it; a verdict `confirm` is then for strangers alone.
    """

    verdict: Literal["deny", "confirm", "ordinary"]
    why: str
    commands: tuple[Simple, ...]
    parsed: bool
    writes: tuple[str, ...]
    tame: bool = False

    def danger(self, part: Simple) -> Literal["deny", "confirm", "stranger", "ordinary"]:
        """The guards' word on one of the commands: what is dangerous in one of them makes the whole line so."""
        if not self.tame:
            return self.verdict
        return "stranger" if part.stranger else "ordinary"


def analyse(
    line: str,
    *,
    cwd: str,
    exists: Callable[[str], bool] = os.path.lexists,
    danger_patterns: Sequence[str] = (),
    blacklist_patterns: Sequence[str] = (),
) -> Analysis:
    """Read a command line and judge it; never raises, and never calls ordinary what it could not read."""
    from ostler.policy.shell.examine import examine  # the tables are large, and most starts need none

    return examine(line, cwd, exists, tuple(danger_patterns), tuple(blacklist_patterns))
