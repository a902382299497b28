"""The tool that shows the commits of the repository."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from ostler.tools.foreign import readable
from ostler.tools.git_repo import NO_PROGRAMS, GitTool, Repo, RepoParams
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.tools import ToolResult
from ostler.workspace.paths import escaped

FORMAT = "--format=%x00%H%x00%h%x00%an%x00%ae%x00%aI%x00%s%x00%b%x00"
FIELDS = ("sha", "short", "author", "email", "date", "subject", "body")
_LONGEST_BODY = 2000


class GitLogParams(RepoParams):
    ref: str = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 10
    skip: Annotated[int, msgspec.Meta(ge=0)] = 0
    with_files: bool = False
    count: bool = False
    oneline: bool = True


class GitLog(GitTool[GitLogParams]):
    name = "git_log"
    params = GitLogParams
    unlisted = ("repo", "count", "oneline")

    async def look(self, params: GitLogParams, repo: Repo) -> ToolResult:
        commit = await _start(params.ref, repo)
        if not commit:
            return self.answer("there are no commits yet", "", {"commits": []})
        if params.count:
            said = await repo.run("rev-list", "--count", commit, *repo.narrowed(params.path))
            return self.answer(f"{said.stdout.strip()} commits", "", {"count": int(said.stdout)})
        listed = ["--name-status", "--relative", "--diff-merges=first-parent"] if params.with_files else ["--no-patch"]
        flags = ["-z", f"--max-count={params.limit}", f"--skip={params.skip}", *listed]
        asked = ("--no-mailmap", FORMAT, *flags, commit, *repo.narrowed(params.path))
        said = await repo.names("log", *NO_PROGRAMS, *asked)
        if said.cut:
            raise ToolFailure("that is too much of the history", code="too_large", hint="narrow it with limit or path")
        commits = commits_in(said.stdout, repo.from_here)
        text = "\n".join(_drawn(one, oneline=params.oneline) for one in commits)
        return self.answer(f"{len(commits)} commits", text, {"commits": commits})


async def _start(ref: str, repo: Repo) -> str:
    """The commit to begin at; nothing in a repository that has none yet."""
    try:
        return await repo.commit(ref or "HEAD")
    except ToolFailure:
        if ref:
            raise
        return ""


def commits_in(said: str, shown: Callable[[str], str] = escaped) -> list[dict[str, Any]]:
    """The commits of an output in our format, each with the files that `-z` lists behind it."""
    words = said.split("\0")
    commits: list[dict[str, Any]] = []
    at = 1
    while at + len(FIELDS) < len(words):
        one: dict[str, Any] = dict(zip(FIELDS, map(readable, words[at:]), strict=False))
        one["body"] = one["body"].strip()[:_LONGEST_BODY]
        at, files = _files(words, at + len(FIELDS) + 1, shown)
        commits.append({**one, "files": files} if files else one)
    return commits


def _files(words: list[str], at: int, shown: Callable[[str], str]) -> tuple[int, list[dict[str, str]]]:
    """The files listed from a word on, and where the next commit begins."""
    files: list[dict[str, str]] = []
    while at < len(words) and (status := words[at].strip("\n")):
        last = at + (2 if status[0] in "RC" else 1)
        files.append({"raw_status": status, "path": shown("".join(words[last : last + 1]))})
        at = last + 1
    return at + 1, files


def _drawn(one: dict[str, Any], *, oneline: bool) -> str:
    lines = [f"{one['short']} {one['date'][:10]} {one['author']}: {one['subject']}"]
    if not oneline and one["body"]:
        lines += [f"    {line}" for line in one["body"].splitlines()]
    return "\n".join([*lines, *(f"    {file['raw_status']} {file['path']}" for file in one.get("files", ()))])
