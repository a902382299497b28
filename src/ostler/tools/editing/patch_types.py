"""Value types of a patch: files, hunks and lines."""

from typing import Literal

import msgspec

from ostler.core.errors import ToolError

PatchOperation = Literal["update", "create", "delete", "rename", "copy"]


class PatchLine(msgspec.Struct, frozen=True):
    """One line of a hunk; `end` is empty for a last line without a newline."""

    sign: Literal[" ", "-", "+"]
    text: str
    end: str = "\n"


class Hunk(msgspec.Struct, frozen=True):
    """One change with its context.

    `start` is its stated line from 1, or None; `anchors` are lines somewhere before it; `at_end` means that it ends
    the file.
    """

    title: str
    lines: tuple[PatchLine, ...]
    start: int | None = None
    anchors: tuple[str, ...] = ()
    at_end: bool = False

    @property
    def old_lines(self) -> list[PatchLine]:
        return [line for line in self.lines if line.sign != "+"]


class FilePatch(msgspec.Struct, frozen=True):
    """The changes of a patch to one file.

    `new_path` is the target of a rename or copy. `alternative_path` is tried if there is no file at `path`; `old_path`
    is the name in the old header if it differs. `without_content` is a deletion that does not list the lines.
    """

    operation: PatchOperation
    path: str
    new_path: str = ""
    hunks: tuple[Hunk, ...] = ()
    executable: bool | None = None
    alternative_path: str = ""
    old_path: str = ""
    without_content: bool = False


def bad_patch_error(message: str, line: int = 0) -> ToolError:
    """Return the error for an invalid patch, with the line of the patch."""
    location = f"line {line} of the patch: " if line else ""
    return ToolError(f"{location}{message}", code="bad_patch")
