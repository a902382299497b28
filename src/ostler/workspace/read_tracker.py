"""Remembers which version of each file the session last read or wrote."""

import os
from collections import OrderedDict

import msgspec

from ostler.core.errors import PathError
from ostler.core.protocols import TextFile

_MAX_TEXTS = 64
_MAX_TEXT_LENGTH = 256 * 1024


class ReadVersion(msgspec.Struct, frozen=True):
    """The version of a file that was last read or written; `stamp` detects changes without reading it."""

    version: str
    encoding: str = ""
    size: int = 0
    stamp: tuple[int, int, int] = (0, 0, 0)

    def is_same(self, version: str, stamp: tuple[int, int, int]) -> bool:
        """Compare versions if both are known, else the less reliable stamps."""
        return self.version == version if self.version and version else self.stamp == stamp


def stamp_of(found: os.stat_result) -> tuple[int, int, int]:
    """Return inode, size and modification time; they change when a file is written or replaced."""
    return found.st_ino, found.st_size, found.st_mtime_ns


class ReadTracker:
    """Versions of files by resolved path, with the texts of the latest ones, to show later what changed."""

    def __init__(self) -> None:
        self._versions: dict[str, ReadVersion] = {}
        self._texts: OrderedDict[str, str] = OrderedDict()

    def get(self, real_path: str) -> ReadVersion | None:
        return self._versions.get(real_path)

    def record(self, real_path: str, read_version: ReadVersion, text: str = "") -> None:
        """Store the current version of a file."""
        self._versions[real_path] = read_version
        self._texts.pop(real_path, None)
        if text and len(text) <= _MAX_TEXT_LENGTH:
            self._texts[real_path] = text
            if len(self._texts) > _MAX_TEXTS:
                self._texts.popitem(last=False)

    def forget(self, real_path: str) -> None:
        self._versions.pop(real_path, None)
        self._texts.pop(real_path, None)

    def rename(self, old: str, new: str) -> None:
        """Move the entries of a renamed file to the new path."""
        if old in self._versions:
            self.record(new, self._versions.pop(old), self._texts.pop(old, ""))

    def stale_error(self, real_path: str, path: str, current: TextFile | None, size: int) -> PathError:
        """Return the error for a file that was never read here or changed since it was last read."""
        last = self._versions.get(real_path)
        if last is None:
            hint = "read it before you write it"
            return PathError("changed_on_disk", path, "it exists and has not been read in this session", hint=hint)
        return PathError(
            "changed_on_disk",
            path,
            "it was changed on disk since it was last read",
            hint=self._hint(real_path, last, current, size),
        )

    def _hint(self, real_path: str, read_version: ReadVersion, current: TextFile | None, size: int) -> str:
        before = self._texts.get(real_path)
        if before is None or current is None:
            return f"read it again before you write it (it had {read_version.size:,} bytes and has {size:,} now)"
        from ostler.text.diff import unified_diff

        if before == current.text:
            return "another call of this session changed it; read it again before you write it"
        change = unified_diff(before, current.text, current.path, context=1, max_lines=40)
        lines = f"+{change.additions} -{change.deletions} lines"
        return f"read it again before you write it; since then it changed by {lines}:\n{change.text}"
