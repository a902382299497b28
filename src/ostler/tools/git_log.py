"""Tool that shows the commits of the repository."""

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
            result = await repo.run("rev-list", "--count", commit, *repo.path_arguments(params.path))
            return self.make_result(f"{result.stdout.strip()} commits", "", {"count": int(result.stdout)})
        file_options = (
            ["--name-status", "--relative", "--diff-merges=first-parent"] if params.with_files else ["--no-patch"]
        )
        flags = ["-z", f"--max-count={params.limit}", f"--skip={params.skip}", *file_options]
        arguments = ("--no-mailmap", FORMAT, *flags, commit, *repo.path_arguments(params.path))
        result = await repo.run_raw("log", *SAFE_DIFF_OPTIONS, *arguments)
        if result.truncated:
            raise ToolError("the history is too long", code="too_large", hint="narrow it with limit or path")
        commits = parse_commits(result.stdout, repo.path_from_folder)
        text = "\n".join(_format_commit(commit, oneline=params.oneline) for commit in commits)
        return self.make_result(f"{len(commits)} commits", text, {"commits": commits})


async def _start_commit(ref: str, repo: Repo) -> str:
    """Return the commit to start at, or an empty string if the repository has no commits."""
    try:
        return await repo.resolve_commit(ref or "HEAD")
    except ToolError:
        if ref:
            raise
        return ""


def parse_commits(output: str, format_path: Callable[[str], str] = escape_path) -> list[dict[str, Any]]:
    """Parse commits printed with `FORMAT`, each followed by the files that `-z` lists."""
    fields = output.split("\0")
    commits: list[dict[str, Any]] = []
    index = 1
    while index + len(FIELDS) < len(fields):
        commit: dict[str, Any] = dict(zip(FIELDS, map(decode_legacy, fields[index:]), strict=False))
        commit["body"] = commit["body"].strip()[:_MAX_BODY_LENGTH]
        index, files = _parse_files(fields, index + len(FIELDS) + 1, format_path)
        commits.append({**commit, "files": files} if files else commit)
    return commits


def _parse_files(fields: list[str], index: int, format_path: Callable[[str], str]) -> tuple[int, list[dict[str, str]]]:
    """Parse the files from an index on. Return the index of the next commit, and the files."""
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
