"""Reads untrusted files safely: regular files only, size-limited, text, never outside the project."""

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
    """The text of a file with its display path, its full size and its identity (device and inode)."""

    __slots__ = ("display_path", "identity", "size", "text")

    def __init__(self, display_path: str, text: str, size: int, identity: FileIdentity) -> None:
        self.display_path = display_path
        self.text = text
        self.size = size
        self.identity = identity


class SourceFolder:
    """A folder of the user or of a project; no symlink leads out of a project folder.

    Problems are added to `notes`; nothing is raised.
    """

    def __init__(self, root: str, scope: Scope, notes: list[Problem], *, label: str = "") -> None:
        self.root = root
        self.scope = scope
        self.notes = notes
        self._label = label
        self._jail = Jail(root) if scope == "project" else None

    def display_path(self, relative: str) -> str:
        """Return the form of a path that is shown to the user and to the model."""
        return printable_path(os.path.normpath(relative if relative.startswith("/") else self._label + relative))

    def note(self, relative: str, message: str, line: int = 0) -> None:
        """Add a warning about a file to the notes."""
        self.notes.append(Problem(self.display_path(relative), line, 0, "", message, "warning"))

    def relative_path(self, path: str) -> str | None:
        """Return an absolute path relative to a project folder, or None if it is outside. User paths stay absolute."""
        return self._jail.relative_path(path) if self._jail else path

    def read(self, relative: str, limit: int = MAX_BYTES) -> SourceText | None:
        """Return the text of a file up to `limit` bytes, or None if there is no usable file."""
        found = self._read_file(relative, limit + 1)
        if found is None:
            return None
        raw, state = found
        text = _decode_text(raw, limit)
        if text is None:
            self.note(relative, "ignored: this is not a text file")
            return None
        return SourceText(self.display_path(relative), text, state.st_size, (state.st_dev, state.st_ino))

    def read_bytes(self, relative: str, limit: int) -> bytes:
        """Return the first `limit` bytes of a regular file, or b"" if it cannot be read."""
        found = self._read_file(relative, limit)
        return found[0] if found else b""

    def _read_file(self, relative: str, limit: int) -> tuple[bytes, os.stat_result] | None:
        """Return the first bytes of a regular file and its state, or None if it cannot be read."""
        fd = self._open(relative, READ_FLAGS)
        if fd is None:
            return None
        try:
            state = os.fstat(fd)
            if not stat.S_ISREG(state.st_mode):
                self.note(relative, "ignored: this is not a regular file")
                return None
            return read_up_to(fd, limit), state
        except OSError as error:
            self.note(relative, f"this file cannot be read: {error_text(error)}")
            return None
        finally:
            os.close(fd)

    def kind(self, relative: str) -> Literal["", "file", "directory", "other"]:
        """Return the type of a path, following symlinks; empty if it does not exist or cannot be accessed."""
        fd = self._open(relative, STAT_FLAGS, quiet=True)
        if fd is None:
            return ""
        try:
            mode = os.fstat(fd).st_mode
        finally:
            os.close(fd)
        return "file" if stat.S_ISREG(mode) else "directory" if stat.S_ISDIR(mode) else "other"

    def list_names(self, relative: str) -> list[tuple[str, bool]]:
        """Return the sorted names in a directory, each with whether it is a directory; empty if it cannot be read."""
        fd = self._open(relative, DIRECTORY_FLAGS)
        if fd is None:
            return []
        found: list[tuple[str, bool]] = []
        try:
            with os.scandir(fd) as scan:
                for entry in scan:
                    if len(found) == MAX_ENTRIES:
                        self.note(relative, f"this folder has more than {MAX_ENTRIES} entries; the others are ignored")
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
        except ValueError:  # a NUL or a lone surrogate, which file names cannot contain
            return None
        except OSError as error:
            if error.errno not in _ABSENT_ERRNOS and not quiet:
                outside = error.errno == errno.EXDEV
                self.note(
                    relative,
                    "ignored: it points outside of this folder" if outside else f"not readable: {error_text(error)}",
                )
            return None


def _decode_text(raw: bytes, limit: int) -> str | None:
    """Decode bytes and remove invisible characters. Return None if they are not text."""
    if len(raw) > limit:
        raw = raw[: raw.rfind(b"\n", 0, limit) + 1 or limit]
    encoding = detect(raw)
    if encoding is None:
        return None
    from ostler.text.sanitise import sanitise  # invisible text in a rules file could steer the model

    return sanitise(decode(raw, encoding))
