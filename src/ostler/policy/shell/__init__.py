"""What a command line would do: every command in it, what it overwrites, and whether a person must be asked."""

import os.path
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from ostler.policy.shell.simple_command import SimpleCommand

__all__ = ["Analysis", "SimpleCommand", "analyse"]

MAX_LINE_LENGTH = 65536


class Analysis(msgspec.Struct, frozen=True):
    """The verdict on a command line, and what it rests on.

    `tame`: nothing dangerous was found in it; a verdict `confirm` is then for strangers alone.
    """

    verdict: Literal["deny", "confirm", "ordinary"]
    reason: str
    commands: tuple[SimpleCommand, ...]
    parsed: bool
    written_paths: tuple[str, ...]
    no_danger_found: bool = False

    def command_danger(self, command: SimpleCommand) -> Literal["deny", "confirm", "stranger", "ordinary"]:
        """The guards' word on one of the commands: what is dangerous in one of them makes the whole line so."""
        if not self.no_danger_found:
            return self.verdict
        return "stranger" if command.unknown_reason else "ordinary"


def analyse(
    line: str,
    *,
    cwd: str,
    exists: Callable[[str], bool] = os.path.lexists,
    danger_patterns: Sequence[str] = (),
    blacklist_patterns: Sequence[str] = (),
) -> Analysis:
    """Read a command line and judge it; never raises, and never calls ordinary what it could not read."""
    from ostler.policy.shell.analysis import analyse_line  # the tables are large, and most starts need none

    return analyse_line(line, cwd, exists, tuple(danger_patterns), tuple(blacklist_patterns))
