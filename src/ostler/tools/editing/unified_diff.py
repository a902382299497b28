"""Parses unified diffs as git, diff, svn and models write them."""

import re

from ostler.tools.editing.diff_paths import DEV_NULL, git_names, header_name, plain_name, strip_prefixes
from ostler.tools.editing.hunk_parser import parse_hunk
from ostler.tools.editing.patch_types import FilePatch, Hunk, bad_patch_error

_NAME_HEADERS = ("rename from", "rename to", "copy from", "copy to")
_EXTENDED_HEADERS = ("new mode", "new file mode", "deleted file mode", *_NAME_HEADERS)
_MODE = re.compile(r"(?:100|0)?[0-7]{3}")


def parse_unified(patch: str) -> list[FilePatch]:
    """Parse the file patches of a diff; other text is ignored. Raises `ToolError`."""
    parser = _UnifiedDiffParser(patch.removesuffix("\n").split("\n"))
    parser.parse()
    if not parser.sections:
        raise bad_patch_error(
            "it names no file; give a unified diff with --- a/path and +++ b/path lines before its @@ hunks, "
            "or the *** Begin Patch form"
        )
    return [section.to_patch() for section in parser.sections]


class _FileSection:
    """The headers and hunks of one file."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.old = self.new = ""
        self.git = ("", "")
        self.names: dict[str, str] = {}  # by header, such as `rename from`
        self.created = self.deleted = False
        self.executable: bool | None = None
        self.hunks: list[Hunk] = []

    def to_patch(self) -> FilePatch:
        hunks = tuple(self.hunks)
        for operation in ("rename", "copy"):
            source, target = (self.names.get(f"{operation} {side}") for side in ("from", "to"))
            if source and target:
                return FilePatch(operation, source, target, hunks, self.executable)
        raw_old, raw_new = (self.old, self.new) if self.old else self.git
        old, new = strip_prefixes(raw_old, raw_new)
        if not old or not new or old == new == DEV_NULL:
            raise bad_patch_error("these headers name no file", self.line)
        if self.created or old == DEV_NULL:
            return FilePatch("create", new, hunks=hunks, executable=self.executable)
        if self.deleted or new == DEV_NULL:
            return FilePatch("delete", old, hunks=hunks, alternative_path=_alternative_name(old, raw_old))
        if not hunks and self.executable is None:
            raise bad_patch_error(f"it changes nothing in {new}; put a line @@ before its lines", self.line)
        old_path = old if old != new else ""
        return FilePatch("update", new, "", hunks, self.executable, _alternative_name(new, raw_new), old_path)


def _alternative_name(name: str, raw: str) -> str:
    """Return the name with its prefix if that was removed, or without it if it was kept."""
    if raw != name:
        return raw
    head, _, rest = raw.partition("/")
    return rest if head in ("a", "b") else ""


class _UnifiedDiffParser:
    """Parses the lines of a diff into sections."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self.sections: list[_FileSection] = []
        self._awaits_names = False  # the last section has no --- and +++ lines yet

    def parse(self) -> None:
        index = 0
        while index < len(self._lines):
            index = self._step(index)

    def _step(self, index: int) -> int:
        line = self._lines[index].rstrip("\r")
        if line.startswith("diff --git "):
            self._start_section(index, awaits_names=True).git = git_names(line[11:].strip(), index + 1)
        elif line.startswith("--- ") and index + 1 < len(self._lines) and self._lines[index + 1].startswith("+++ "):
            section = self.sections[-1] if self._awaits_names else self._start_section(index)
            self._awaits_names = False
            section.old = header_name(line[4:], index + 1)
            section.new = header_name(self._lines[index + 1].rstrip("\r")[4:], index + 2)
            return index + 2
        elif line.startswith("@@"):
            if not self.sections:
                raise bad_patch_error(
                    "a hunk comes before any file; name the file with --- a/path and +++ b/path", index + 1
                )
            self._awaits_names = False
            hunk, end = parse_hunk(self._lines, index)
            self.sections[-1].hunks.append(hunk)
            return end
        elif line.startswith("***************"):
            raise bad_patch_error("this is a context diff; give a unified diff", index + 1)
        elif line == "GIT binary patch" or (line.startswith(("Binary files ", "Files ")) and line.endswith(" differ")):
            raise bad_patch_error("it changes a binary file, which is not supported", index + 1)
        elif self._awaits_names:
            self._parse_extended_header(line, index + 1)
        return index + 1

    def _start_section(self, index: int, *, awaits_names: bool = False) -> _FileSection:
        self.sections.append(_FileSection(index + 1))
        self._awaits_names = awaits_names
        return self.sections[-1]

    def _parse_extended_header(self, line: str, number: int) -> None:
        section = self.sections[-1]
        header = next((header for header in _EXTENDED_HEADERS if line.startswith(f"{header} ")), "")
        value = line[len(header) :].strip()
        if header in _NAME_HEADERS:
            section.names[header] = plain_name(value, number)
        elif header == "deleted file mode":
            section.deleted = True
        elif header:
            section.created = section.created or header == "new file mode"
            _set_mode(section, value, number)


def _set_mode(section: _FileSection, value: str, line: int) -> None:
    if value.startswith(("120", "160")):
        kind = "a symbolic link" if value.startswith("120") else "a submodule"
        raise bad_patch_error(f"it creates or changes {kind}, which is not supported", line)
    if not _MODE.fullmatch(value):
        raise bad_patch_error(f"{value[:20]!r} is not a supported mode; use 100644, or 100755 for an executable", line)
    section.executable = bool(int(value, 8) & 0o111)
