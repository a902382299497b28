"""Reads files that anyone may have put there: regular, bounded, text; a project's never from outside it."""

import errno
import os
import stat
from typing import Literal

from ostler.settings.home import error_text
from ostler.settings.problems import Problem
from ostler.workspace.encodings import decode, detect
from ostler.workspace.file_reading import READ_FLAGS, STAT_FLAGS, read_up_to
from ostler.workspace.jail import DIRECTORY_FLAGS, Jail
from ostler.workspace.paths import printable_path

Scope = Literal["user", "project"]
FileIdentity = tuple[int, int]

MAX_BYTES = 256 * 1024
MAX_ENTRIES = 2000
_ABSENT_ERRNOS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EILSEQ})


class SourceText:
    """A text that was found: how its path is shown, the text, the file's size, and which file it really is."""

    __slots__ = ("display_path", "identity", "size", "text")

    def __init__(self, display_path: str, text: str, size: int, identity: FileIdentity) -> None:
        self.display_path = display_path
        self.text = text
        self.size = size
        self.identity = identity


class SourceFolder:
    """A directory of the person's, or a project's, which no link leaves. What cannot be used is noted, never raised."""

    def __init__(self, root: str, scope: Scope, notes: list[Problem], *, label: str = "") -> None:
        self.root = root
        self.scope = scope
        self.notes = notes
        self._label = label
        self._jail = Jail(root) if scope == "project" else None

    def display_path(self, relative: str) -> str:
        """A path as it is told to a person and to the model."""
        return printable_path(os.path.normpath(relative if relative.startswith("/") else self._label + relative))

    def note(self, relative: str, message: str, line: int = 0) -> None:
        """Remember what is wrong with a file."""
        self.notes.append(Problem(self.display_path(relative), line, 0, "", message, "warning"))

    def relative_path(self, path: str) -> str | None:
        """How an absolute path reads from here; nothing when a project does not hold it."""
        return self._jail.relative_path(path) if self._jail else path

    def read(self, relative: str, limit: int = MAX_BYTES) -> SourceText | None:
        """The text of a file, or of as much as fits the limit; nothing when there is no file that can be used."""
        fd = self._open(relative, READ_FLAGS)
        if fd is None:
            return None
        try:
            state = os.fstat(fd)
            if not stat.S_ISREG(state.st_mode):
                self.note(relative, "this is not a regular file; it is left out")
                return None
            raw = read_up_to(fd, limit + 1)
        except OSError as error:
            self.note(relative, f"this file cannot be read: {error_text(error)}")
            return None
        finally:
            os.close(fd)
        text = _decode_text(raw, limit)
        if text is None:
            self.note(relative, "this is not text; it is left out")
            return None
        return SourceText(self.display_path(relative), text, state.st_size, (state.st_dev, state.st_ino))

    def read_bytes(self, relative: str, limit: int) -> bytes:
        """The beginning of a regular file as it is; nothing when it cannot be had."""
        fd = self._open(relative, READ_FLAGS)
        if fd is None:
            return b""
        try:
            return read_up_to(fd, limit) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
        except OSError as error:
            self.note(relative, f"this file cannot be read: {error_text(error)}")
            return b""
        finally:
            os.close(fd)

    def kind(self, relative: str) -> Literal["", "file", "directory", "other"]:
        """What stands at a path, links followed; nothing when there is nothing to be had."""
        fd = self._open(relative, STAT_FLAGS, quiet=True)
        if fd is None:
            return ""
        try:
            mode = os.fstat(fd).st_mode
        finally:
            os.close(fd)
        return "file" if stat.S_ISREG(mode) else "directory" if stat.S_ISDIR(mode) else "other"

    def list_names(self, relative: str) -> list[tuple[str, bool]]:
        """The names in a directory with whether each is a directory, sorted; nothing when there is none."""
        fd = self._open(relative, DIRECTORY_FLAGS)
        if fd is None:
            return []
        found: list[tuple[str, bool]] = []
        try:
            with os.scandir(fd) as scan:
                for entry in scan:
                    if len(found) == MAX_ENTRIES:
                        self.note(relative, f"only the first {MAX_ENTRIES} entries of this folder are looked at")
                        break
                    if entry.name.isprintable():
                        found.append((entry.name, self._is_directory(relative, entry)))
        except OSError as error:
            self.note(relative, f"this folder cannot be read: {error_text(error)}")
        finally:
            os.close(fd)
        return sorted(found)

    def _is_directory(self, relative: str, entry: "os.DirEntry[str]") -> bool:
        if entry.is_symlink():
            return self.kind(f"{relative}/{entry.name}") == "directory"
        return entry.is_dir(follow_symlinks=False)

    def _open(self, relative: str, flags: int, *, quiet: bool = False) -> int | None:
        try:
            if self._jail:
                return self._jail.open(relative, flags)
            return os.open(os.path.join(self.root, relative), flags | os.O_CLOEXEC)
        except ValueError:  # a NUL or half a character: no file has such a name
            return None
        except OSError as error:
            if error.errno not in _ABSENT_ERRNOS and not quiet:
                away = error.errno == errno.EXDEV
                self.note(relative, "it leads out of this folder" if away else f"not readable: {error_text(error)}")
            return None


def _decode_text(raw: bytes, limit: int) -> str | None:
    """The text of bytes, without anything in it that a reader could not see; nothing when they are no text."""
    if len(raw) > limit:
        raw = raw[: raw.rfind(b"\n", 0, limit) + 1 or limit]
    form = detect(raw)
    if form is None:
        return None
    from ostler.text.sanitise import sanitise  # what hides in a rules file steers the model unseen

    return sanitise(decode(raw, form))
