"""What git leaves out of a tree: the rules of its .gitignore files, the deepest with a say first."""

import os
import re
import stat
from typing import TYPE_CHECKING

from ostler.workspace.files import READ, read_up_to

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_LARGEST = 256 * 1024


class Ignores:
    """The rules in force in one directory, each with the directory that states it ("" or "path/", from the root)."""

    __slots__ = ("_rules",)

    def __init__(self, rules: "tuple[tuple[str, GitIgnoreSpec], ...]" = ()) -> None:
        self._rules = rules

    def below(self, directory: int, path: str) -> "Ignores":
        """The rules in force in a directory further down, which may state its own."""
        lines = _lines(directory)
        return Ignores((*self._rules, (path, _compiled(lines)))) if lines else self

    def leave_out(self, path: str, *, is_directory: bool) -> bool:
        """Whether git would leave out a path (from the root)."""
        path = path.encode("utf-8", "replace").decode()
        for stated_in, spec in reversed(self._rules):
            said = spec.check_file(path[len(stated_in) :] + ("/" if is_directory else "")).include
            if said is not None:
                return said
        return False


def _lines(directory: int) -> list[str]:
    try:
        fd = os.open(".gitignore", READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return []
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return []
        return read_up_to(fd, _LARGEST).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    finally:
        os.close(fd)


def _compiled(lines: list[str]) -> "GitIgnoreSpec":
    """Matched by RE2, whose time is linear whatever a stranger's repository says; lines git would skip are skipped."""
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines, backend="re2")
    except (ValueError, re.error):
        return GitIgnoreSpec.from_lines([line for line in lines if _makes_sense(line)], backend="re2")


def _makes_sense(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line], backend="re2")
    except (ValueError, re.error):
        return False
    return True
