"""The tool that shows who last changed each line of a file."""

import time
from typing import Annotated, Any

import msgspec

from ostler.tools.git_repo import GitTool, Repo, RepoParams
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.tools import ToolResult

LIMIT = 300
_WIDTH = 500


class GitBlameParams(RepoParams, kw_only=True):
    path: str
    line: Annotated[int, msgspec.Meta(ge=1, description="first line, from 1")] = 1
    limit: Annotated[int, msgspec.Meta(ge=1, le=2000)] = LIMIT
    ref: str = ""


class GitBlame(GitTool[GitBlameParams]):
    name = "git_blame"
    params = GitBlameParams

    async def look(self, params: GitBlameParams, repo: Repo) -> ToolResult:
        if not params.path:
            raise ToolFailure("path is empty; name the file", code="bad_arguments")
        if repo.is_folder(params.path):
            raise ToolFailure(f"{params.path} is a folder; name a file in it", code="bad_arguments")
        ref = [await repo.commit(params.ref)] if params.ref else []
        lines = ["-L", f"{params.line},+{params.limit}", "--line-porcelain", "--no-textconv"]
        said = await repo.run("blame", *lines, *ref, *repo.narrowed(params.path))
        found = _lines(said.stdout)
        text = "\n".join(f"{o['short']} {o['author']} {o['date']} {o['line']}\t{o['text'][:_WIDTH]}" for o in found)
        return self.answer(f"{len(found)} lines of {params.path}", text, {"path": params.path, "lines": found})


def _lines(said: str) -> list[dict[str, Any]]:
    """The lines of `--line-porcelain`: a head with the hash and the number, fields, then the text after a tab."""
    found: list[dict[str, Any]] = []
    fields: dict[str, str] = {}
    head: list[str] = []
    for line in said.split("\n"):
        if line.startswith("\t") and len(head) >= 3:
            date = _date(fields.get("author-time", "0"))
            one = {"line": int(head[2]), "sha": head[0], "short": head[0][:8], "author": fields.get("author", "")}
            found.append({**one, "date": date, "summary": fields.get("summary", ""), "text": line[1:].rstrip("\r")})
            head, fields = [], {}
        elif not head:
            head = line.split(" ")
        else:
            name, _, value = line.partition(" ")
            fields[name] = value
    return found


def _date(seconds: str) -> str:
    """The day; nothing for a time that no calendar has, which a commit may claim."""
    try:
        return time.strftime("%Y-%m-%d", time.gmtime(int(seconds)))
    except (ValueError, OverflowError, OSError):
        return ""
