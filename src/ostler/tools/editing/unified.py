"""Unified diffs, as git, diff, svn and models write them, read into file patches."""

import re
from collections.abc import Callable

from ostler.tools.editing.hunk_reader import read_hunk
from ostler.tools.editing.names import NOTHING, bare_names, git_names, header_name, plain_name
from ostler.tools.editing.patches import FilePatch, Hunk, bad_patch

_MODE = re.compile(r"(?:100|0)?[0-7]{3}")


def read_unified(patch: str) -> list[FilePatch]:
    """The file patches of a diff; what stands around them is passed over."""
    reader = _Reader(patch.removesuffix("\n").split("\n"))
    reader.read()
    if not reader.sections:
        raise bad_patch(
            "it names no file; give a unified diff with --- a/path and +++ b/path lines before its @@ hunks, "
            "or the *** Begin Patch form"
        )
    return [section.patch() for section in reader.sections]


class _Section:
    """What the headers and hunks of one file say."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.old = self.new = ""
        self.git = ("", "")
        self.renamed = ["", ""]
        self.copied = ["", ""]
        self.created = self.deleted = False
        self.executable: bool | None = None
        self.hunks: list[Hunk] = []

    def patch(self) -> FilePatch:
        hunks = tuple(self.hunks)
        if all(self.renamed):
            return FilePatch("rename", self.renamed[0], self.renamed[1], hunks, self.executable)
        if all(self.copied):
            return FilePatch("copy", self.copied[0], self.copied[1], hunks, self.executable)
        raw_old, raw_new = (self.old, self.new) if self.old else self.git
        old, new = bare_names(raw_old, raw_new)
        if not old or not new or old == new == NOTHING:
            raise bad_patch("these headers name no file", self.line)
        if self.created or old == NOTHING:
            return FilePatch("create", new, hunks=hunks, executable=self.executable)
        if self.deleted or new == NOTHING:
            return FilePatch("delete", old, hunks=hunks, path_else=_other(old, raw_old))
        if not hunks and self.executable is None:
            raise bad_patch(f"nothing is said to be changed in {new}; a line @@ goes before its lines", self.line)
        before = old if old != new else ""
        return FilePatch("update", new, "", hunks, self.executable, _other(new, raw_new), before)


def _other(name: str, raw: str) -> str:
    """What a name may be if the prefix was part of it, or the other way round."""
    if raw != name:
        return raw
    head, _, rest = raw.partition("/")
    return rest if head in ("a", "b") else ""


class _Reader:
    """Goes through the lines of a diff."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self.sections: list[_Section] = []
        self._open = False  # whether the last section still awaits its --- and +++

    def read(self) -> None:
        at = 0
        while at < len(self._lines):
            at = self._step(at)

    def _step(self, at: int) -> int:
        line = self._lines[at].rstrip("\r")
        if line.startswith("diff --git "):
            self._begin(at, awaits_names=True).git = git_names(line[11:].strip(), at + 1)
        elif line.startswith("--- ") and at + 1 < len(self._lines) and self._lines[at + 1].startswith("+++ "):
            section = self.sections[-1] if self._open else self._begin(at)
            self._open = False
            section.old = header_name(line[4:], at + 1)
            section.new = header_name(self._lines[at + 1].rstrip("\r")[4:], at + 2)
            return at + 2
        elif line.startswith("@@"):
            if not self.sections:
                raise bad_patch("a hunk comes before any file; name the file with --- a/path and +++ b/path", at + 1)
            self._open = False
            hunk, behind = read_hunk(self._lines, at)
            self.sections[-1].hunks.append(hunk)
            return behind
        elif line.startswith("***************"):
            raise bad_patch("this is a context diff; give a unified diff", at + 1)
        elif line == "GIT binary patch" or (line.startswith(("Binary files ", "Files ")) and line.endswith(" differ")):
            raise bad_patch("it changes a binary file, which a patch cannot do here", at + 1)
        elif self._open:
            self._extended(line, at + 1)
        return at + 1

    def _begin(self, at: int, *, awaits_names: bool = False) -> _Section:
        self.sections.append(_Section(at + 1))
        self._open = awaits_names
        return self.sections[-1]

    def _extended(self, line: str, number: int) -> None:
        section = self.sections[-1]
        for start, take in _EXTENDED.items():
            if line.startswith(start):
                take(section, line[len(start) :].strip(), number)
                return


def _mode(section: _Section, said: str, line: int) -> None:
    if said.startswith(("120", "160")):
        what = "a symbolic link" if said.startswith("120") else "a submodule"
        raise bad_patch(f"it makes or changes {what}, which a patch cannot do here", line)
    if not _MODE.fullmatch(said):
        raise bad_patch(f"{said[:20]!r} is no mode a patch can give a file; give 100644, or 100755 to run it", line)
    section.executable = bool(int(said, 8) & 0o111)


def _created(section: _Section, said: str, line: int) -> None:
    section.created = True
    _mode(section, said, line)


def _deleted(section: _Section, said: str, line: int) -> None:
    section.deleted = True


def _rename_from(section: _Section, said: str, line: int) -> None:
    section.renamed[0] = plain_name(said, line)


def _rename_to(section: _Section, said: str, line: int) -> None:
    section.renamed[1] = plain_name(said, line)


def _copy_from(section: _Section, said: str, line: int) -> None:
    section.copied[0] = plain_name(said, line)


def _copy_to(section: _Section, said: str, line: int) -> None:
    section.copied[1] = plain_name(said, line)


_EXTENDED: dict[str, Callable[[_Section, str, int], None]] = {
    "new mode ": _mode,
    "new file mode ": _created,
    "deleted file mode ": _deleted,
    "rename from ": _rename_from,
    "rename to ": _rename_to,
    "copy from ": _copy_from,
    "copy to ": _copy_to,
}
