"""Tool that finds files by name."""

import os
import re
from heapq import nsmallest
from typing import Annotated

import msgspec

from ostler.core.display import Display, DisplayText
from ostler.core.errors import PathError, ToolError
from ostler.core.permission import Permission
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.base_tool import BaseTool
from ostler.tools.path_needs import read_needs
from ostler.tools.search import list_files_named
from ostler.tools.search_globs import compile_globs, name_globs, plain_ending

_WILDCARDS = frozenset("*?[]{}\\!,")


class GlobParams(msgspec.Struct):
    pattern: str
    path: str = "."
    limit: Annotated[int, msgspec.Meta(ge=1, le=2000)] = 200

    def __post_init__(self) -> None:
        self.path = self.path or "."


class GlobTool(BaseTool[GlobParams]):
    name = "glob"
    params = GlobParams

    async def permission(self, params: GlobParams, workspace: Workspace) -> Permission:
        place, needs = read_needs("glob", params.path, workspace)
        return Permission(f"find {params.pattern} in {place.display_path}", needs)

    async def run(self, params: GlobParams, context: ToolContext) -> ToolResult:
        pattern = _relative_pattern(params, context.workspace)
        matches = await _find_matches(context.workspace, params.path, pattern)
        shown = nsmallest(params.limit, matches)
        more = len(matches) - len(shown)
        text = "\n".join(shown) + (f"\n[{more:,} more files; narrow the pattern]" if more else "")
        data = {"pattern": params.pattern, "matches": shown, "count": len(matches), "truncated": bool(more)}
        blocks = (DisplayText("\n".join(shown), "output"),) if shown else ()
        text = text or _explain_no_match(pattern, params.path, context.workspace)
        return ToolResult("", "ok", text, Display(f"{len(matches):,} files", blocks), data)


def _relative_pattern(params: GlobParams, workspace: Workspace) -> str:
    """Return the glob relative to the folder that is searched."""
    pattern = params.pattern.strip()
    if not pattern.strip("/"):
        raise ToolError("the pattern is empty; give a glob such as **/*.py", code="bad_pattern")
    for root in (workspace.resolve(params.path).absolute, workspace.root):
        if pattern.startswith(f"{root}/"):
            return pattern.removeprefix(root)
    return pattern


async def _find_matches(workspace: Workspace, path: str, pattern: str) -> list[str]:
    """Return the matching files as paths of the workspace."""
    test, ending = compile_globs([pattern]), plain_ending(pattern)
    folder = _literal_folder(pattern)
    hints = [] if ending.startswith(".") else name_globs([pattern])  # an extension is compared faster here
    try:
        relative_paths = await list_files_named(workspace, os.path.join(path, folder) if folder else path, hints)
    except PathError:
        if not folder:
            raise
        return []  # the glob starts with a folder that does not exist
    if not relative_paths:
        return []
    names = [f"{folder}/{name}" for name in relative_paths] if folder else relative_paths
    display_path = workspace.resolve(path).display_path
    base = "" if display_path == "." else f"{display_path}/"
    if ending:
        return [base + name for name in names if name.endswith(ending) or f"/{name}" == ending]
    return [base + name.decode() for name in test.findall("\n".join(names).encode())]


def _explain_no_match(pattern: str, path: str, workspace: Workspace) -> str:
    """Return why no file matches, if known. Raises `ToolError` if the pattern can never match."""
    if os.path.isfile(workspace.resolve(path).absolute):
        raise ToolError(f"{path} is a file; give a folder as path, or none", code="bad_arguments")
    folder = _literal_folder(pattern)
    folder_exists = workspace.resolve(os.path.join(path, folder)).exists
    if pattern.startswith("/") and not folder_exists:
        hint = "globs are relative to the workspace, as in src/*.py"
        raise ToolError(f"the glob {pattern!r} points outside the workspace", code="bad_pattern", hint=hint)
    if pattern.count("[") > pattern.count("]") or pattern.count("{") != pattern.count("}"):
        message = f"the glob {pattern!r} has an unbalanced bracket"
        raise ToolError(message, code="bad_pattern", hint="write it as **/*.{ts,tsx} or [a-z]*.py")
    if not folder_exists:
        return f"No files match: there is no folder {folder}."
    if pattern.startswith("!"):
        raise ToolError(f"the glob {pattern!r} only excludes files; give a glob of files to find", code="bad_pattern")
    place = workspace.resolve(os.path.join(path, pattern.strip("/")))
    if place.in_workspace and os.path.isdir(place.absolute):
        return f"No files match: {place.display_path} is a folder; use {place.display_path}/** for its files."
    if re.search(r"[,\s]", re.sub(r"\{[^}]*\}", "", pattern)):
        return "No files match. A pattern is one glob; combine several as **/*.{ts,tsx}."
    if "[" in pattern:
        return r"No files match. [] is a set of characters; for brackets write \[ and \]."
    return "No files match."


def _literal_folder(pattern: str) -> str:
    """Return the leading folders of a glob that have no wildcard."""
    parts = pattern.removeprefix("./").strip("/").split("/")[:-1]
    end = next((index for index, part in enumerate(parts) if _WILDCARDS & set(part)), len(parts))
    return "/".join(parts[:end])
