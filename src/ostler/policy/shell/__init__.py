"""Analyses a shell command line: its commands, the files it overwrites, and whether it needs approval."""

import os.path
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from ostler.core.permission import UNKNOWN_PROGRAM, Danger
from ostler.policy.shell.simple_command import SimpleCommand

__all__ = ["Analysis", "SimpleCommand", "analyse"]

MAX_LINE_LENGTH = 65536


class Analysis(msgspec.Struct, frozen=True):
    """The result of analysing a command line.

    With `no_danger_found`, a verdict of `confirm` is only due to unknown programs. `parsed` is False if the line could
    not be parsed completely. `redirected_paths` are the files that redirections write, `input_paths` those that they
    read, `script_paths` those that the commands of scripts name, `temporary_paths` those written below `$TMPDIR`, which
    is the session's own folder only in the sandbox. `source` is the row of a
    table or the function that the reason is from.
    """

    verdict: Literal["deny", "confirm", "ordinary"]
    reason: str
    commands: tuple[SimpleCommand, ...]
    parsed: bool
    written_paths: tuple[str, ...]
    no_danger_found: bool = False
    redirected_paths: tuple[str, ...] = ()
    input_paths: tuple[str, ...] = ()
    script_paths: tuple[str, ...] = ()
    temporary_paths: tuple[str, ...] = ()
    source: str = ""

    def command_danger(self, command: SimpleCommand) -> Danger:
        """Return the danger level of one of the commands. If one command is dangerous, all of them are."""
        if not self.no_danger_found:
            return self.verdict
        return UNKNOWN_PROGRAM if command.unknown_reason else "ordinary"


def analyse(
    line: str,
    *,
    cwd: str,
    exists: Callable[[str], bool] = os.path.lexists,
    read_script: Callable[[str], str | None] | None = None,
    danger_patterns: Sequence[str] = (),
    blacklist_patterns: Sequence[str] = (),
) -> Analysis:
    """Analyse a command line. Never raises; a line that cannot be parsed is never `ordinary`."""
    from ostler.policy.shell.analysis import analyse_line  # the tables are large, and most runs do not need them
    from ostler.policy.shell.script_files import read_script as read_from_disk

    return analyse_line(
        line, cwd, exists, read_script or read_from_disk, tuple(danger_patterns), tuple(blacklist_patterns)
    )
