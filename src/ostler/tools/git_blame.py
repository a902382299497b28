"""Tool that shows who last changed each line of a file."""

import time
from typing import Annotated, Any

import msgspec

from ostler.core.errors import ToolError
from ostler.core.tools import ToolResult
from ostler.tools.git_repo import GitTool, Repo, RepoParams

LIMIT = 300
_MAX_LINE_WIDTH = 500


class GitBlameParams(RepoParams, kw_only=True):
    path: str
    line: Annotated[int, msgspec.Meta(ge=1, description="first line, from 1")] = 1
    limit: Annotated[int, msgspec.Meta(ge=1, le=2000)] = LIMIT
    ref: str = ""


class GitBlameTool(GitTool[GitBlameParams]):
    name = "git_blame"
    params = GitBlameParams

    async def run_in_repo(self, params: GitBlameParams, repo: Repo) -> ToolResult:
        if not params.path:
            raise ToolError("path is empty; name the file", code="bad_arguments")
        if repo.is_folder(params.path):
            raise ToolError(f"{params.path} is a folder; name a file in it", code="bad_arguments")
        ref = [await repo.resolve_commit(params.ref)] if params.ref else []
        options = ["-L", f"{params.line},+{params.limit}", "--line-porcelain", "--no-textconv"]
        result = await repo.run("blame", *options, *ref, *repo.path_arguments(params.path))
        lines = _parse_blame(result.stdout)
        text = "\n".join(
            f"{line['short']} {line['author']} {line['date']} {line['line']}\t{line['text'][:_MAX_LINE_WIDTH]}"
            for line in lines
        )
        return self.make_result(f"{len(lines)} lines of {params.path}", text, {"path": params.path, "lines": lines})


def _parse_blame(output: str) -> list[dict[str, Any]]:
    """Parse `--line-porcelain`: a head with hash and number, fields, then the text after a tab."""
    lines: list[dict[str, Any]] = []
    fields: dict[str, str] = {}
    head: list[str] = []
    for line in output.split("\n"):
        if line.startswith("\t") and len(head) >= 3:
            date = _format_date(fields.get("author-time", "0"))
            entry = {"line": int(head[2]), "sha": head[0], "short": head[0][:8], "author": fields.get("author", "")}
            lines.append({**entry, "date": date, "summary": fields.get("summary", ""), "text": line[1:].rstrip("\r")})
            head, fields = [], {}
        elif not head:
            head = line.split(" ")
        else:
            name, _, value = line.partition(" ")
            fields[name] = value
    return lines


def _format_date(seconds: str) -> str:
    """Return the date, or an empty string for an invalid timestamp."""
    try:
        return time.strftime("%Y-%m-%d", time.gmtime(int(seconds)))
    except (ValueError, OverflowError, OSError):
        return ""
