"""Translates delete and rename calls of other agents' tools into a patch."""

from typing import Any

from ostler.core.errors import ToolError
from ostler.core.protocols import Workspace
from ostler.tools.aliases import pop_argument

Arguments = dict[str, Any]
_SOURCE_NAMES = (
    *("source", "src", "from", "frompath", "oldpath", "oldname", "sourcepath"),
    *("path", "filepath", "file", "filename"),
)
_DESTINATION_NAMES = ("destination", "dest", "dst", "to", "topath", "newpath", "newname", "destinationpath", "target")


async def translate_delete(arguments: Arguments, workspace: Workspace) -> tuple[str, Arguments]:
    """Translate deleting a file; the patch tool rejects folders."""
    path = _check_path(pop_argument(arguments, "path", "filepath", "filename", "file", "target", "targetfile"), "path")
    pop_argument(arguments, "recursive", "force")
    return "patch", {**arguments, "patch": f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n"}


async def translate_move(arguments: Arguments, workspace: Workspace) -> tuple[str, Arguments]:
    destination = _check_path(pop_argument(arguments, *_DESTINATION_NAMES), "destination")
    source = _check_path(pop_argument(arguments, *_SOURCE_NAMES), "source")
    pop_argument(arguments, "recursive")
    patch = f"*** Begin Patch\n*** Update File: {source}\n*** Move to: {destination}\n*** End Patch\n"
    return "patch", {**arguments, "patch": patch}


def _check_path(value: Any, parameter: str) -> str:
    """Return the path if it fits on one line of a patch. Raises `ToolError`."""
    if not isinstance(value, str) or not value.strip():
        raise ToolError(f"{parameter} is missing; give the path of one file", code="bad_arguments")
    if not value.isprintable():
        raise ToolError(
            f"{parameter} contains an unprintable character; write the path as list shows it", code="bad_arguments"
        )
    return value
