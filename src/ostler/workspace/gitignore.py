"""Evaluates .gitignore rules of a directory tree."""

import os
import re
import stat
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ostler.workspace.file_reading import READ_FLAGS, read_up_to
from ostler.workspace.jail import DIRECTORY_FLAGS, EntryHandle, Jail, closing_fd

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_MAX_FILE_BYTES = 256 * 1024


GITIGNORE = ".gitignore"
NamedEntry = tuple[str, bool, bool]  # name, is a directory, is a file


class _IgnoreFile:
    """The rules of one .gitignore file, and its directory relative to the root ("" or "path/")."""

    __slots__ = ("_any_pattern", "_spec", "directory")

    def __init__(self, directory: str, lines: list[str]) -> None:
        self.directory = directory
        self._spec = _compile(lines)
        self._any_pattern = _compile_any(self._spec)

    def may_match(self, paths: str) -> bool:
        """Return whether a rule may match one of the paths (one per line); a quick check that decides most folders."""
        return self._any_pattern is None or self._any_pattern.search(paths) is not None

    def ignores(self, path: str) -> bool | None:
        """Return whether these rules ignore a path, or None if no rule matches."""
        return self._spec.check_file(path).include if self.may_match(path) or "\n" in path else None


class IgnoreRules:
    """The ignore rules that apply in one directory."""

    __slots__ = ("_files",)

    def __init__(self, files: tuple[_IgnoreFile, ...] = ()) -> None:
        self._files = files

    def for_subfolder(self, directory: int, path: str) -> "IgnoreRules":
        """Return the rules for a subfolder, with its own .gitignore if it has one."""
        lines = _read_lines(directory)
        return IgnoreRules((*self._files, _IgnoreFile(path, lines))) if lines else self

    def is_ignored(self, path: str, *, is_directory: bool) -> bool:
        """Return whether git ignores a path (relative to the root)."""
        path = _replace_invalid(path)
        for file in reversed(self._files):  # the deepest file with a matching rule decides
            ignored = file.ignores(path[len(file.directory) :] + ("/" if is_directory else ""))
            if ignored is not None:
                return ignored
        return False

    def without_ignored(self, folder: str, entries: Sequence[NamedEntry]) -> Sequence[NamedEntry]:
        """Return the entries of a folder that git does not ignore; `folder` is "" or ends with a slash."""
        names = [f"{name}/" if is_directory else name for name, is_directory, _ in entries]
        if not any(self._may_match(file, folder, names) for file in self._files):
            return entries
        return [entry for entry in entries if not self.is_ignored(folder + entry[0], is_directory=entry[1])]

    def _may_match(self, file: _IgnoreFile, folder: str, names: list[str]) -> bool:
        base = folder[len(file.directory) :]
        lines = base + f"\n{base}".join(names)
        return lines.count("\n") >= len(names) or file.may_match(_replace_invalid(lines))


class FolderRules:
    """The ignore rules of the folders below a root, each read once; folders are "" or end with a slash."""

    def __init__(self, jail: Jail) -> None:
        self._jail = jail
        self._rules: dict[str, IgnoreRules] = {}

    def of(self, folder: str) -> IgnoreRules:
        """Return the rules of a folder, including those from its parents."""
        if folder not in self._rules:
            above = self.of(folder[: folder.rfind("/", 0, -1) + 1]) if folder else IgnoreRules()
            try:
                with closing_fd(self._jail.open_without_links(folder or ".", DIRECTORY_FLAGS)) as fd:
                    self._rules[folder] = above.for_subfolder(fd, folder)
            except OSError:
                return above
        return self._rules[folder]


def _replace_invalid(path: str) -> str:
    """Replace bytes that are not valid UTF-8, because the rules cannot match them."""
    return path if path.isascii() else path.encode("utf-8", "replace").decode()


def _read_lines(directory: int) -> list[str]:
    try:
        with EntryHandle(directory, GITIGNORE, GITIGNORE).open(READ_FLAGS) as fd:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return []
            lines = read_up_to(fd, _MAX_FILE_BYTES).decode("utf-8", "replace").splitlines()
            return [line for line in lines if line.strip() and line[0] != "#"]
    except OSError:
        return []


def _compile(lines: list[str]) -> "GitIgnoreSpec":
    """Compile the rules with RE2, whose run time is linear even for hostile patterns; invalid lines are skipped."""
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines, backend="re2")
    except (ValueError, re.error):
        return GitIgnoreSpec.from_lines([line for line in lines if _is_valid_line(line)], backend="re2")


def _compile_any(spec: "GitIgnoreSpec") -> Any:
    """Return one expression that matches whenever any rule does, or None if it cannot be compiled."""
    import re2

    patterns = [
        str(regex.pattern) for pattern in spec.patterns if (regex := getattr(pattern, "regex", None)) is not None
    ]
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile("(?m)" + "|".join(re.sub(r"\(\?P<\w+>", "(?:", pattern) for pattern in patterns), options)
    except re2.error:
        return None


def _is_valid_line(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line], backend="re2")
    except (ValueError, re.error):
        return False
    return True
