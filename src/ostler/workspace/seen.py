"""What this ground last read or wrote, so that nobody else's change is overwritten unseen."""

import os
from collections import OrderedDict

import msgspec

from ostler.vocabulary.errors import PathRefused
from ostler.vocabulary.seams import TextFile

_TEXTS = 64
_LONGEST = 256 * 1024


class Sight(msgspec.Struct, frozen=True):
    """One file as it was last seen; `stamp` tells an untouched file without reading it."""

    version: str
    encoding: str = ""
    size: int = 0
    stamp: tuple[int, int, int] = (0, 0, 0)


def stamp_of(found: os.stat_result) -> tuple[int, int, int]:
    """What changes when a file is written or replaced."""
    return found.st_ino, found.st_size, found.st_mtime_ns


class Seen:
    """A memory of files by where they really are; the latest texts too, to tell later what changed."""

    def __init__(self) -> None:
        self._sights: dict[str, Sight] = {}
        self._texts: OrderedDict[str, str] = OrderedDict()

    def get(self, where: str) -> Sight | None:
        return self._sights.get(where)

    def note(self, where: str, sight: Sight, text: str = "") -> None:
        """Remember a file as it is now."""
        self._sights[where] = sight
        self._texts.pop(where, None)
        if text and len(text) <= _LONGEST:
            self._texts[where] = text
            if len(self._texts) > _TEXTS:
                self._texts.popitem(last=False)

    def forget(self, where: str) -> None:
        self._sights.pop(where, None)
        self._texts.pop(where, None)

    def moved(self, old: str, new: str) -> None:
        """A file or a whole directory has another name now."""
        for where in [where for where in self._sights if where == old or where.startswith(f"{old}/")]:
            sight = self._sights.pop(where)
            self.note(new + where[len(old) :], sight, self._texts.pop(where, ""))

    def stale(self, where: str, path: str, now: TextFile | None, size: int) -> PathRefused:
        """The refusal to overwrite a file that is not as it was seen."""
        sight = self._sights.get(where)
        if sight is None:
            hint = "read it first; then write what should stand there"
            return PathRefused("changed_on_disk", path, "it exists and has not been read in this session", hint=hint)
        return PathRefused(
            "changed_on_disk",
            path,
            "it was changed on disk since it was last read",
            hint=self._hint(where, sight, now, size),
        )

    def _hint(self, where: str, sight: Sight, now: TextFile | None, size: int) -> str:
        before = self._texts.get(where)
        if before is None or now is None:
            return f"read it again before you write it (it had {sight.size:,} bytes and has {size:,} now)"
        from ostler.text.diff import unified

        if before == now.text:
            return "another call of this session wrote it meanwhile; read it again and build on that"
        change = unified(before, now.text, now.path, context=1, max_lines=40)
        lines = f"+{change.additions} -{change.deletions} lines"
        return f"read it again before you write it; since then it changed by {lines}:\n{change.text}"
