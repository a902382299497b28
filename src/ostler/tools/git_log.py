"""The tool that shows the commits of the repository."""

from typing import Annotated, Any

import msgspec

from ostler.tools.git_repo import NO_PROGRAMS, GitTool, Repo, RepoParams
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.tools import ToolResult

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
        files = ["--name-status", "--relative"] if params.with_files else []
        flags = [f"--max-count={params.limit}", f"--skip={params.skip}", "--diff-merges=first-parent", *files]
        said = await repo.run("log", *NO_PROGRAMS, "--no-mailmap", FORMAT, *flags, commit, *repo.narrowed(params.path))
        commits = commits_in(said.stdout)
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


def commits_in(said: str) -> list[dict[str, Any]]:
    """The commits of an output in our format, each with the files listed behind it."""
    words = said.split("\0")
    commits: list[dict[str, Any]] = []
    for at in range(1, len(words) - len(FIELDS), len(FIELDS) + 1):
        one: dict[str, Any] = dict(zip(FIELDS, words[at:], strict=False))
        one["body"] = one["body"].strip()[:_LONGEST_BODY]
        files = [line.split("\t") for line in words[at + len(FIELDS)].splitlines() if "\t" in line]
        if files:
            one["files"] = [{"raw_status": parts[0], "path": parts[-1]} for parts in files]
        commits.append(one)
    return commits


def _drawn(one: dict[str, Any], *, oneline: bool) -> str:
    lines = [f"{one['short']} {one['date'][:10]} {one['author']}: {one['subject']}"]
    if not oneline and one["body"]:
        lines += [f"    {line}" for line in one["body"].splitlines()]
    return "\n".join([*lines, *(f"    {file['raw_status']} {file['path']}" for file in one.get("files", ()))])
