"""The tool that searches file contents."""

from typing import Annotated, Any, Literal

import msgspec

from ostler.text.regex import regex
from ostler.tools.declared import Declared
from ostler.tools.places import reading
from ostler.tools.search import LINE_WIDTH, Found, Line, Query, is_about_no_file, matching_files, matching_lines
from ostler.vocabulary.display import Display, Note
from ostler.vocabulary.errors import PathRefused, ToolFailure
from ostler.vocabulary.permission import Permission
from ostler.vocabulary.seams import Ground, ToolContext
from ostler.vocabulary.tools import ToolResult

MOST_CHARACTERS = 45_000
_LINE_END = regex(r"(?<!\\)(?:\\\\)*\\n")


class GrepParams(msgspec.Struct):
    pattern: str
    path: str = "."
    include: str = ""
    ignore_case: bool = False
    literal: Annotated[bool, msgspec.Meta(description="the pattern is plain text")] = False
    context: Annotated[int, msgspec.Meta(ge=0, le=20, description="lines around each hit")] = 0
    mode: Literal["lines", "files", "count"] = "lines"
    limit: Annotated[int, msgspec.Meta(ge=1, le=2000)] = 200
    type: str = ""

    def __post_init__(self) -> None:
        self.path = self.path or "."


class Grep(Declared[GrepParams]):
    name = "grep"
    kind = "search"
    effects = False
    unlisted = ("type",)
    params = GrepParams

    async def permission(self, params: GrepParams, ground: Ground) -> Permission:
        place, needs = reading("grep", params.path, ground)
        return Permission(f"search {place.shown} for {params.pattern}", needs)

    async def run(self, params: GrepParams, context: ToolContext) -> ToolResult:
        query = _query(params)
        search, told = (matching_lines, _lines) if params.mode == "lines" else (matching_files, _files)
        try:
            found = await search(context.ground, query)
        except PathRefused as refusal:
            raise _instead(params, refusal) from None
        result = told(params, found)
        if not found.hits and (params.include or params.type) and await is_about_no_file(context.ground, query):
            what = " and ".join(f"{name} {value!r}" for name in ("include", "type") if (value := getattr(params, name)))
            return msgspec.structs.replace(result, for_model=f"No matches: there is no file for {what}.")
        return result


def _instead(params: GrepParams, refusal: PathRefused) -> PathRefused:
    """The refusal, and what to give for a path that is a glob."""
    if refusal.fault.code != "not_found" or not any(sign in params.path for sign in "*?{"):
        return refusal
    return PathRefused("not_found", refusal.path, refusal.reason, hint="give a folder as path, and a glob as include")


def _query(params: GrepParams) -> Query:
    pattern = params.pattern.removesuffix("\n")
    if not pattern:
        raise ToolFailure("the pattern is empty; give what to search for", code="bad_pattern")
    if "\0" in pattern or "\n" in pattern or (not params.literal and _LINE_END.search(pattern)):
        raise ToolFailure("the pattern holds a line end or a NUL; search for one line at a time", code="bad_pattern")
    pattern = pattern.replace("\b", r"\b")  # the JSON escape of a backspace, where a word border was meant
    return Query(pattern, params.path, params.include, params.type, params.ignore_case, params.literal, params.context)


def _lines(params: GrepParams, found: Found) -> ToolResult:
    shown, hits = _within(found.lines, params.limit)
    text = "\n".join(_drawn(shown, params.context))
    matches = [{"path": line.path, "line": line.number, "text": _cut(line.text)} for line in shown if line.hit]
    more = found.hits - hits
    left = _left(f"{more:,} more hits; narrow the search" if more else "", found.stopped)
    data: dict[str, Any] = {"pattern": params.pattern, "count": found.hits, "matches": matches, "truncated": bool(left)}
    blocks = (Note(text, "output"),) if text else ()
    return ToolResult("", "ok", (text or "No matches.") + left, Display(_summary(found), blocks), data)


def _within(lines: list[Line], limit: int) -> tuple[list[Line], int]:
    """As many of the lines as the limit of hits and the budget hold, and how many hits are among them."""
    hits, room = 0, MOST_CHARACTERS
    for at, line in enumerate(lines):
        room -= min(len(line.text), LINE_WIDTH) + len(line.path) + 8
        if room < 0 or (line.hit and hits == limit):
            return lines[:at], hits
        hits += line.hit
    return lines, hits


def _drawn(lines: list[Line], context: int) -> list[str]:
    drawn: list[str] = []
    before: Line | None = None
    for line in lines:
        if context and before and (line.path != before.path or line.number != before.number + 1):
            drawn.append("--")
        mark = ":" if line.hit else "-"
        drawn.append(f"{line.path}{mark}{line.number}{mark}{_cut(line.text)}")
        before = line
    return drawn


def _files(params: GrepParams, found: Found) -> ToolResult:
    shown = list(found.counts.items())[: params.limit]
    text = "\n".join(f"{path}:{count}" if params.mode == "count" else path for path, count in shown)
    more = len(found.counts) - len(shown)
    left = _left(f"{more:,} more files; narrow the search" if more else "", found.stopped)
    files = [{"path": path, "count": count} for path, count in shown]
    data = {"pattern": params.pattern, "count": found.hits, "files": files, "truncated": bool(left)}
    return ToolResult("", "ok", (text or "No matches.") + left, Display(_summary(found)), data)


def _summary(found: Found) -> str:
    hits, files = found.hits, len(found.counts)
    return f"{hits:,} hit{'s' * (hits != 1)} in {files:,} file{'s' * (files != 1)}"


def _left(*reasons: str) -> str:
    said = "; ".join(reason for reason in reasons if reason)
    return f"\n[{said}]" if said else ""


def _cut(text: str) -> str:
    return text if len(text) <= LINE_WIDTH else f"{text[:LINE_WIDTH]}… [line cut]"
