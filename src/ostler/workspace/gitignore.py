"""What git leaves out of a tree: the rules of its .gitignore files, the deepest with a say first."""

import os
import re
import stat
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ostler.workspace.file_reading import READ_FLAGS, read_up_to

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_MAX_FILE_BYTES = 256 * 1024


GITIGNORE = ".gitignore"
NamedEntry = tuple[str, bool, bool]  # the name of an entry, whether it is a directory, whether it is a file


class _IgnoreFile:
    """The rules of one file, and the directory that states them ("" or "path/", from the root)."""

    __slots__ = ("_any_pattern", "_spec", "directory")

    def __init__(self, directory: str, lines: list[str]) -> None:
        self.directory = directory
        self._spec = _compile(lines)
        self._any_pattern = _compile_any(self._spec)

    def may_match(self, paths: str) -> bool:
        """Whether any rule may be about one of the lines: most folders are settled by this one look."""
        return self._any_pattern is None or self._any_pattern.search(paths) is not None

    def ignores(self, path: str) -> bool | None:
        """Whether to leave a path out, as far as these rules tell."""
        return self._spec.check_file(path).include if self.may_match(path) or "\n" in path else None


class IgnoreRules:
    """The rules in force in one directory."""

    __slots__ = ("_files",)

    def __init__(self, files: tuple[_IgnoreFile, ...] = ()) -> None:
        self._files = files

    def for_subfolder(self, directory: int, path: str) -> "IgnoreRules":
        """The rules in force in a directory further down, which may state its own."""
        lines = _read_lines(directory)
        return IgnoreRules((*self._files, _IgnoreFile(path, lines))) if lines else self

    def is_ignored(self, path: str, *, is_directory: bool) -> bool:
        """Whether git would leave out a path (from the root)."""
        path = _replace_invalid(path)
        for stated in reversed(self._files):
            said = stated.ignores(path[len(stated.directory) :] + ("/" if is_directory else ""))
            if said is not None:
                return said
        return False

    def without_ignored(self, folder: str, entries: Sequence[NamedEntry]) -> Sequence[NamedEntry]:
        """Those of a directory's entries that git would not leave out; `here` is the directory with a slash, or ""."""
        names = [f"{name}/" if is_directory else name for name, is_directory, _ in entries]
        if not any(self._may_match(stated, folder, names) for stated in self._files):
            return entries
        return [entry for entry in entries if not self.is_ignored(folder + entry[0], is_directory=entry[1])]

    def _may_match(self, file: _IgnoreFile, folder: str, names: list[str]) -> bool:
        base = folder[len(file.directory) :]
        lines = base + f"\n{base}".join(names)
        return lines.count("\n") >= len(names) or file.may_match(_replace_invalid(lines))


def _replace_invalid(path: str) -> str:
    """A path without bytes that are no UTF-8, which the rules cannot be asked of."""
    return path if path.isascii() else path.encode("utf-8", "replace").decode()


def _read_lines(directory: int) -> list[str]:
    try:
        fd = os.open(GITIGNORE, READ_FLAGS | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return []
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return []
        lines = read_up_to(fd, _MAX_FILE_BYTES).decode("utf-8", "replace").splitlines()
        return [line for line in lines if line.strip() and line[0] != "#"]
    except OSError:
        return []
    finally:
        os.close(fd)


def _compile(lines: list[str]) -> "GitIgnoreSpec":
    """Matched by RE2, whose time is linear whatever a stranger's repository says; lines git would skip are skipped."""
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines, backend="re2")
    except (ValueError, re.error):
        return GitIgnoreSpec.from_lines([line for line in lines if _is_valid_line(line)], backend="re2")


def _compile_any(spec: "GitIgnoreSpec") -> Any:
    """One expression that finds a line whenever a rule matches it; None when there is no such expression."""
    import re2

    said = [str(regex.pattern) for pattern in spec.patterns if (regex := getattr(pattern, "regex", None)) is not None]
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile("(?m)" + "|".join(re.sub(r"\(\?P<\w+>", "(?:", each) for each in said), options)
    except re2.error:
        return None


def _is_valid_line(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line], backend="re2")
    except (ValueError, re.error):
        return False
    return True
