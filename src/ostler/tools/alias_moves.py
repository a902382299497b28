"""Deleting and renaming as other vocabularies ask for it, turned into the patch that does it, and asks for it, here."""

from typing import Any

from ostler.tools.aliases import take_out
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.seams import Ground

Given = dict[str, Any]
_FROM = (
    "source",
    "src",
    "from",
    "frompath",
    "oldpath",
    "oldname",
    "sourcepath",
    "path",
    "filepath",
    "file",
    "filename",
)
_TO = ("destination", "dest", "dst", "to", "topath", "newpath", "newname", "destinationpath", "target")


async def delete(given: Given, ground: Ground) -> tuple[str, Given]:
    """A file; a folder is refused by the patch itself."""
    path = _name(take_out(given, "path", "filepath", "filename", "file", "target", "targetfile"), "path")
    take_out(given, "recursive", "force")
    return "patch", {**given, "patch": f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n"}


async def move(given: Given, ground: Ground) -> tuple[str, Given]:
    to, path = _name(take_out(given, *_TO), "destination"), _name(take_out(given, *_FROM), "source")
    take_out(given, "recursive")
    return "patch", {
        **given,
        "patch": f"*** Begin Patch\n*** Update File: {path}\n*** Move to: {to}\n*** End Patch\n",
    }


def _name(value: Any, parameter: str) -> str:
    """A path that is one line of a patch and nothing more."""
    if not isinstance(value, str) or not value.strip():
        raise ToolFailure(f"{parameter} is missing; give the path of one file", code="bad_arguments")
    if not value.isprintable():
        raise ToolFailure(
            f"{parameter} holds a character that no line can show; spell it as list does", code="bad_arguments"
        )
    return value
