"""What git leaves out of a tree: the rules of its .gitignore files, the deepest with a say first."""

import os
import re
import stat
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ostler.workspace.files import READ, read_up_to

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_LARGEST = 256 * 1024


FILE = ".gitignore"
Named = tuple[str, bool, bool]  # the name of an entry, whether it is a directory, whether it is a file


class _Stated:
    """The rules of one file, and the directory that states them ("" or "path/", from the root)."""

    __slots__ = ("_any", "_spec", "directory")

    def __init__(self, directory: str, lines: list[str]) -> None:
        self.directory = directory
        self._spec = _compiled(lines)
        self._any = _any_of(self._spec)

    def may_speak_of(self, paths: str) -> bool:
        """Whether any rule may be about one of the lines: most folders are settled by this one look."""
        return self._any is None or self._any.search(paths) is not None

    def says(self, path: str) -> bool | None:
        """Whether to leave a path out, as far as these rules tell."""
        return self._spec.check_file(path).include if self.may_speak_of(path) or "\n" in path else None


class Ignores:
    """The rules in force in one directory."""

    __slots__ = ("_rules",)

    def __init__(self, rules: tuple[_Stated, ...] = ()) -> None:
        self._rules = rules

    def below(self, directory: int, path: str) -> "Ignores":
        """The rules in force in a directory further down, which may state its own."""
        lines = _lines(directory)
        return Ignores((*self._rules, _Stated(path, lines))) if lines else self

    def leave_out(self, path: str, *, is_directory: bool) -> bool:
        """Whether git would leave out a path (from the root)."""
        path = _plain(path)
        for stated in reversed(self._rules):
            said = stated.says(path[len(stated.directory) :] + ("/" if is_directory else ""))
            if said is not None:
                return said
        return False

    def kept(self, here: str, entries: Sequence[Named]) -> Sequence[Named]:
        """Those of a directory's entries that git would not leave out; `here` is the directory with a slash, or ""."""
        names = [f"{name}/" if is_directory else name for name, is_directory, _ in entries]
        if not any(self._may_speak_of(stated, here, names) for stated in self._rules):
            return entries
        return [entry for entry in entries if not self.leave_out(here + entry[0], is_directory=entry[1])]

    def _may_speak_of(self, stated: _Stated, here: str, names: list[str]) -> bool:
        base = here[len(stated.directory) :]
        lines = base + f"\n{base}".join(names)
        return lines.count("\n") >= len(names) or stated.may_speak_of(_plain(lines))


def _plain(path: str) -> str:
    """A path without bytes that are no UTF-8, which the rules cannot be asked of."""
    return path if path.isascii() else path.encode("utf-8", "replace").decode()


def _lines(directory: int) -> list[str]:
    try:
        fd = os.open(FILE, READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return []
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return []
        lines = read_up_to(fd, _LARGEST).decode("utf-8", "replace").splitlines()
        return [line for line in lines if line.strip() and line[0] != "#"]
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


def _any_of(spec: "GitIgnoreSpec") -> Any:
    """One expression that finds a line whenever a rule matches it; None when there is no such expression."""
    import re2

    said = [str(regex.pattern) for pattern in spec.patterns if (regex := getattr(pattern, "regex", None)) is not None]
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile("(?m)" + "|".join(re.sub(r"\(\?P<\w+>", "(?:", each) for each in said), options)
    except re2.error:
        return None


def _makes_sense(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line], backend="re2")
    except (ValueError, re.error):
        return False
    return True
