"""Tool that searches file contents."""

from typing import Annotated, Any, Literal

import msgspec

from ostler.core.display import Display, DisplayText
from ostler.core.errors import PathError, ToolError
from ostler.core.permission import Permission
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.text.lazy_regex import lazy_regex
from ostler.tools.base_tool import BaseTool
from ostler.tools.path_needs import read_needs
from ostler.tools.search import (
    LINE_WIDTH,
    SearchLine,
    SearchQuery,
    SearchResult,
    has_no_candidate_files,
    list_files,
    resolve_root,
    search_contents,
)
from ostler.tools.search_globs import FileFilter

MAX_CHARACTERS = 45_000
MAX_CHECKED_FILES = 10_000
_LINE_END = lazy_regex(r"(?<!\\)(?:\\\\)*\\n")


class GrepParams(msgspec.Struct):
    pattern: str
    path: str = "."
    include: str = ""
    ignore_case: bool = False
    literal: Annotated[bool, msgspec.Meta(description="the pattern is plain text")] = False
    context: Annotated[int, msgspec.Meta(ge=0, le=20, description="lines around each match")] = 0
    mode: Literal["lines", "files", "count"] = "lines"
    limit: Annotated[int, msgspec.Meta(ge=1, le=2000)] = 200
    type: str = ""

    def __post_init__(self) -> None:
        self.path = self.path or "."


class GrepTool(BaseTool[GrepParams]):
    name = "grep"
    unlisted = ("type",)
    params = GrepParams

    async def permission(self, params: GrepParams, workspace: Workspace) -> Permission:
        place, needs = read_needs("grep", params.path, workspace)
        return Permission(f"search {place.display_path} for {params.pattern}", needs)

    async def run(self, params: GrepParams, context: ToolContext) -> ToolResult:
        query = _make_query(params)
        counts_only = params.mode != "lines"
        try:
            found = await search_contents(context.workspace, query, count_only=counts_only)
        except PathError as error:
            raise _with_glob_hint(params, error) from None
        _drop_unreadable(found, context)
        result = (_files_result if counts_only else _lines_result)(params, found)
        if skipped := await _count_unreadable(params, context):
            files = f"{skipped} file{'s' * (skipped != 1)}"
            note = f"[{files} not searched, which a permission rule for read does not allow]"
            return msgspec.structs.replace(result, for_model=f"{result.for_model}\n{note}")
        if (
            not found.match_count
            and (params.include or params.type)
            and await has_no_candidate_files(context.workspace, query)
        ):
            filters = " and ".join(
                f"{name} {value!r}" for name in ("include", "type") if (value := getattr(params, name))
            )
            return msgspec.structs.replace(result, for_model=f"No matches: no file matches {filters}.")
        return result


async def _count_unreadable(params: GrepParams, context: ToolContext) -> int:
    """Return how many files rules do not let the call read. Whether they match would show their content."""
    root, files = await resolve_root(context.workspace, params.path), FileFilter(params.include, params.type)
    if root.is_file:
        return int(not context.may_read(root.display_path))
    if context.may_read(""):  # the usual case, in which no file has to be checked
        return 0
    paths = (await list_files(context.workspace, params.path))[:MAX_CHECKED_FILES]
    chosen = [root.display_path_of(path) for path in paths if files.matches(root.display_path_of(path), path)]
    return sum(not context.may_read(path) for path in chosen)


def _drop_unreadable(found: SearchResult, context: ToolContext) -> None:
    """Remove the matches in files that rules do not let the call read."""
    hidden = {path for path in {*found.counts, *(line.path for line in found.lines)} if not context.may_read(path)}
    if hidden:
        found.lines = [line for line in found.lines if line.path not in hidden]
        found.counts = {path: count for path, count in found.counts.items() if path not in hidden}


def _with_glob_hint(params: GrepParams, error: PathError) -> PathError:
    """Return the error, with a hint if the path is a glob."""
    if error.fault.code != "not_found" or not any(sign in params.path for sign in "*?{"):
        return error
    return PathError("not_found", error.path, error.reason, hint="give a folder as path, and a glob as include")


def _make_query(params: GrepParams) -> SearchQuery:
    pattern = params.pattern.removesuffix("\n")
    if not pattern:
        raise ToolError("the pattern is empty; give what to search for", code="bad_pattern")
    if "\0" in pattern or "\n" in pattern or (not params.literal and _LINE_END.search(pattern)):
        raise ToolError("the pattern contains a line break or NUL; search for one line at a time", code="bad_pattern")
    pattern = pattern.replace("\b", r"\b")  # a JSON backspace escape was probably meant as a word boundary
    return SearchQuery(
        pattern, params.path, params.include, params.type, params.ignore_case, params.literal, params.context
    )


def _lines_result(params: GrepParams, found: SearchResult) -> ToolResult:
    shown, hits = _fit_lines(found.lines, params.limit)
    text = "\n".join(_format_lines(shown, params.context))
    matches = [
        {"path": line.path, "line": line.number, "text": _truncate_line(line.text)} for line in shown if line.is_match
    ]
    more = found.match_count - hits
    note = _omitted_note(f"{more:,} more matches; narrow the search" if more else "", found.stop_reason)
    data: dict[str, Any] = {
        "pattern": params.pattern,
        "count": found.match_count,
        "matches": matches,
        "truncated": bool(note),
    }
    blocks = (DisplayText(text, "output"),) if text else ()
    return ToolResult("", "ok", (text or "No matches.") + note, Display(_summary(found), blocks), data)


def _fit_lines(lines: list[SearchLine], limit: int) -> tuple[list[SearchLine], int]:
    """Return the lines that fit the match limit and the character budget, and the number of matches in them."""
    hits, budget = 0, MAX_CHARACTERS
    for index, line in enumerate(lines):
        budget -= min(len(line.text), LINE_WIDTH) + len(line.path) + 8
        if budget < 0 or (line.is_match and hits == limit):
            return lines[:index], hits
        hits += line.is_match
    return lines, hits


def _format_lines(lines: list[SearchLine], context: int) -> list[str]:
    formatted: list[str] = []
    previous: SearchLine | None = None
    for line in lines:
        if context and previous and (line.path != previous.path or line.number != previous.number + 1):
            formatted.append("--")
        mark = ":" if line.is_match else "-"
        formatted.append(f"{line.path}{mark}{line.number}{mark}{_truncate_line(line.text)}")
        previous = line
    return formatted


def _files_result(params: GrepParams, found: SearchResult) -> ToolResult:
    shown = list(found.counts.items())[: params.limit]
    text = "\n".join(f"{path}:{count}" if params.mode == "count" else path for path, count in shown)
    more = len(found.counts) - len(shown)
    note = _omitted_note(f"{more:,} more files; narrow the search" if more else "", found.stop_reason)
    files = [{"path": path, "count": count} for path, count in shown]
    data = {"pattern": params.pattern, "count": found.match_count, "files": files, "truncated": bool(note)}
    return ToolResult("", "ok", (text or "No matches.") + note, Display(_summary(found)), data)


def _summary(found: SearchResult) -> str:
    hits, files = found.match_count, len(found.counts)
    return f"{hits:,} hit{'s' * (hits != 1)} in {files:,} file{'s' * (files != 1)}"


def _omitted_note(*reasons: str) -> str:
    text = "; ".join(reason for reason in reasons if reason)
    return f"\n[{text}]" if text else ""


def _truncate_line(text: str) -> str:
    return text if len(text) <= LINE_WIDTH else f"{text[:LINE_WIDTH]}… [line truncated]"
