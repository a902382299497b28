"""The tool that shows the commits of the repository."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from ostler.core.errors import ToolError
from ostler.core.tools import ToolResult
from ostler.tools.git_repo import SAFE_DIFF_OPTIONS, GitTool, Repo, RepoParams
from ostler.tools.legacy_encodings import decode_legacy
from ostler.workspace.paths import escape_path

FORMAT = "--format=%x00%H%x00%h%x00%an%x00%ae%x00%aI%x00%s%x00%b%x00"
FIELDS = ("sha", "short", "author", "email", "date", "subject", "body")
_MAX_BODY_LENGTH = 2000


class GitLogParams(RepoParams):
    ref: str = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 10
    skip: Annotated[int, msgspec.Meta(ge=0)] = 0
    with_files: bool = False
    count: bool = False
    oneline: bool = True


class GitLogTool(GitTool[GitLogParams]):
    name = "git_log"
    params = GitLogParams
    unlisted = ("repo", "count", "oneline")

    async def run_in_repo(self, params: GitLogParams, repo: Repo) -> ToolResult:
        commit = await _start_commit(params.ref, repo)
        if not commit:
            return self.make_result("there are no commits yet", "", {"commits": []})
        if params.count:
            said = await repo.run("rev-list", "--count", commit, *repo.path_arguments(params.path))
            return self.make_result(f"{said.stdout.strip()} commits", "", {"count": int(said.stdout)})
        listed = ["--name-status", "--relative", "--diff-merges=first-parent"] if params.with_files else ["--no-patch"]
        flags = ["-z", f"--max-count={params.limit}", f"--skip={params.skip}", *listed]
        asked = ("--no-mailmap", FORMAT, *flags, commit, *repo.path_arguments(params.path))
        said = await repo.run_raw("log", *SAFE_DIFF_OPTIONS, *asked)
        if said.truncated:
            raise ToolError("that is too much of the history", code="too_large", hint="narrow it with limit or path")
        commits = parse_commits(said.stdout, repo.path_from_folder)
        text = "\n".join(_format_commit(one, oneline=params.oneline) for one in commits)
        return self.make_result(f"{len(commits)} commits", text, {"commits": commits})


async def _start_commit(ref: str, repo: Repo) -> str:
    """The commit to begin at; nothing in a repository that has none yet."""
    try:
        return await repo.resolve_commit(ref or "HEAD")
    except ToolError:
        if ref:
            raise
        return ""


def parse_commits(output: str, format_path: Callable[[str], str] = escape_path) -> list[dict[str, Any]]:
    """The commits of an output in our format, each with the files that `-z` lists behind it."""
    words = output.split("\0")
    commits: list[dict[str, Any]] = []
    at = 1
    while at + len(FIELDS) < len(words):
        one: dict[str, Any] = dict(zip(FIELDS, map(decode_legacy, words[at:]), strict=False))
        one["body"] = one["body"].strip()[:_MAX_BODY_LENGTH]
        at, files = _parse_files(words, at + len(FIELDS) + 1, format_path)
        commits.append({**one, "files": files} if files else one)
    return commits


def _parse_files(fields: list[str], index: int, format_path: Callable[[str], str]) -> tuple[int, list[dict[str, str]]]:
    """The files listed from a word on, and where the next commit begins."""
    files: list[dict[str, str]] = []
    while index < len(fields) and (status := fields[index].strip("\n")):
        last = index + (2 if status[0] in "RC" else 1)
        files.append({"raw_status": status, "path": format_path("".join(fields[last : last + 1]))})
        index = last + 1
    return index + 1, files


def _format_commit(commit: dict[str, Any], *, oneline: bool) -> str:
    lines = [f"{commit['short']} {commit['date'][:10]} {commit['author']}: {commit['subject']}"]
    if not oneline and commit["body"]:
        lines += [f"    {line}" for line in commit["body"].splitlines()]
    return "\n".join([*lines, *(f"    {file['raw_status']} {file['path']}" for file in commit.get("files", ()))])
