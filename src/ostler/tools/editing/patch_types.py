"""A patch as values, whatever form it was written in: files, hunks and lines."""

from typing import Literal

import msgspec

from ostler.core.errors import ToolError

PatchOperation = Literal["update", "create", "delete", "rename", "copy"]


class PatchLine(msgspec.Struct, frozen=True):
    """One line of a hunk; `end` is empty for a last line without a line end."""

    sign: Literal[" ", "-", "+"]
    text: str
    end: str = "\n"


class Hunk(msgspec.Struct, frozen=True):
    """One change with its surroundings.

    `start` is the line it says it begins at, from 1, None when it does not say; `anchors` are lines that come before
    it somewhere; `at_end` says that it ends the file.
    """

    title: str
    lines: tuple[PatchLine, ...]
    start: int | None = None
    anchors: tuple[str, ...] = ()
    at_end: bool = False

    @property
    def old_lines(self) -> list[PatchLine]:
        return [line for line in self.lines if line.sign != "+"]

    @property
    def new_lines(self) -> list[PatchLine]:
        return [line for line in self.lines if line.sign != "-"]


class FilePatch(msgspec.Struct, frozen=True):
    """What a patch does to one file.

    `to` is the new name of a rename or copy. `path_else` is what the path may be if there is no file at `path`;
    `before` is another name the patch gives the old file. `unseen` is a deletion that does not show the content.
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
    """A patch that cannot be understood, told with the line of the patch."""
    where = f"line {line} of the patch: " if line else ""
    return ToolError(f"{where}{message}", code="bad_patch")
