"""The tool that finds files by their names."""

import os
import re
from heapq import nsmallest
from typing import Annotated

import msgspec

from ostler.tools.declared import Declared
from ostler.tools.places import reading
from ostler.tools.search import files_named
from ostler.tools.search_globs import compiled, last_names, plain_ending
from ostler.vocabulary.display import Display, Note
from ostler.vocabulary.errors import PathRefused, ToolFailure
from ostler.vocabulary.permission import Permission
from ostler.vocabulary.seams import Ground, ToolContext
from ostler.vocabulary.tools import ToolResult

_WILD = frozenset("*?[]{}\\!,")


class GlobParams(msgspec.Struct):
    pattern: str
    path: str = "."
    limit: Annotated[int, msgspec.Meta(ge=1, le=2000)] = 200

    def __post_init__(self) -> None:
        self.path = self.path or "."


class Glob(Declared[GlobParams]):
    name = "glob"
    kind = "search"
    effects = False
    params = GlobParams

    async def permission(self, params: GlobParams, ground: Ground) -> Permission:
        place, needs = reading("glob", params.path, ground)
        return Permission(f"find {params.pattern} in {place.shown}", needs)

    async def run(self, params: GlobParams, context: ToolContext) -> ToolResult:
        pattern = _from_path(params, context.ground)
        found = await _matching(context.ground, params.path, pattern)
        shown = nsmallest(params.limit, found)
        more = len(found) - len(shown)
        text = "\n".join(shown) + (f"\n[{more:,} more files; narrow the pattern]" if more else "")
        data = {"pattern": params.pattern, "matches": shown, "count": len(found), "truncated": bool(more)}
        blocks = (Note("\n".join(shown), "output"),) if shown else ()
        told = text or _nothing(pattern, params.path, context.ground)
        return ToolResult("", "ok", told, Display(f"{len(found):,} files", blocks), data)


def _from_path(params: GlobParams, ground: Ground) -> str:
    """The glob as it reads from the folder that is searched."""
    pattern = params.pattern.strip()
    if not pattern.strip("/"):
        raise ToolFailure("the pattern is empty; give a glob such as **/*.py", code="bad_pattern")
    for root in (ground.place(params.path).absolute, ground.root):
        if pattern.startswith(f"{root}/"):
            return pattern.removeprefix(root)
    return pattern


async def _matching(ground: Ground, path: str, pattern: str) -> list[str]:
    """The files that match, as paths of the workspace."""
    test, ending = compiled([pattern]), plain_ending(pattern)
    folder = _plain_folder(pattern)
    hints = [] if ending.startswith(".") else last_names([pattern])  # to tell kinds apart takes us less than a search
    try:
        below = await files_named(ground, os.path.join(path, folder) if folder else path, hints)
    except PathRefused:
        if not folder:
            raise
        return []  # the glob names a folder that is not there
    if not below:
        return []
    names = [f"{folder}/{name}" for name in below] if folder else below
    shown = ground.place(path).shown
    base = "" if shown == "." else f"{shown}/"
    if ending:
        return [base + name for name in names if name.endswith(ending) or f"/{name}" == ending]
    return [base + name.decode() for name in test.findall("\n".join(names).encode())]


def _nothing(pattern: str, path: str, ground: Ground) -> str:
    """Why no file matches, where that can be told; refused when none could."""
    if os.path.isfile(ground.place(path).absolute):
        raise ToolFailure(f"{path} is a file; give a folder as path, or none", code="bad_arguments")
    folder = _plain_folder(pattern)
    there = ground.place(os.path.join(path, folder)).exists
    if pattern.startswith("/") and not there:
        hint = "globs begin at the workspace's folder, as in src/*.py"
        raise ToolFailure(f"the glob {pattern!r} leads outside the workspace", code="bad_pattern", hint=hint)
    if pattern.count("[") > pattern.count("]") or pattern.count("{") != pattern.count("}"):
        said = f"the glob {pattern!r} has a bracket without its other half, and no file is named so"
        raise ToolFailure(said, code="bad_pattern", hint="write it as **/*.{ts,tsx} or [a-z]*.py")
    if not there:
        return f"No files match: there is no folder {folder}."
    if pattern.startswith("!"):
        raise ToolFailure(f"the glob {pattern!r} says what is not wanted; give what is", code="bad_pattern")
    place = ground.place(os.path.join(path, pattern.strip("/")))
    if place.inside and os.path.isdir(place.absolute):
        return f"No files match: {place.shown} is a folder; {place.shown}/** are its files."
    if re.search(r"[,\s]", re.sub(r"\{[^}]*\}", "", pattern)):
        return "No files match. A pattern is one glob; several are written as **/*.{ts,tsx}."
    if "[" in pattern:
        return r"No files match. [] is a set of characters; for the signs themselves write \[ and \]."
    return "No files match."


def _plain_folder(pattern: str) -> str:
    """The folders a glob begins with that hold no wildcard: the only place where its files can be."""
    parts = pattern.removeprefix("./").strip("/").split("/")[:-1]
    wild = next((at for at, part in enumerate(parts) if _WILD & set(part)), len(parts))
    return "/".join(parts[:wild])
