"""Tool that shows the working tree status."""

from collections.abc import Iterator
from typing import Any

from ostler.core.tools import ToolResult
from ostler.tools.git_repo import GitTool, Repo, RepoParams
from ostler.workspace.paths import escape_path

LIMIT = 500


class GitStatusTool(GitTool[RepoParams]):
    name = "git_status"
    params = RepoParams

    async def run_in_repo(self, params: RepoParams, repo: Repo) -> ToolResult:
        flags = ["--porcelain=v2", "--branch", "-z", "--untracked-files=normal", "--ignore-submodules=dirty"]
        result = await repo.run_raw("status", *flags, *repo.path_arguments(params.path))
        branch, files = _parse_status(result.stdout, repo)
        where = branch.get("head", "?") + "".join(f", {branch[key]}" for key in ("upstream", "ab") if key in branch)
        summary = f"{where}: {len(files)} changed" if files else f"{where}: no changes"
        lines = [f"{file['status']} {file['path']}" for file in files[:LIMIT]]
        more = [f"[{len(files) - LIMIT} more]"] if len(files) > LIMIT else []
        data = {"branch": branch.get("head"), "upstream": branch.get("upstream"), "clean": not files, "files": files}
        return self.make_result(summary, "\n".join([summary, *lines, *more]), data)


def _parse_status(output: str, repo: Repo) -> tuple[dict[str, str], list[dict[str, Any]]]:
    branch: dict[str, str] = {}
    files: list[dict[str, Any]] = []
    entries = iter(output.split("\0"))
    for entry in entries:
        if entry.startswith("# branch."):
            name, _, value = entry.removeprefix("# branch.").partition(" ")
            branch[name] = escape_path(value)
        elif file := _parse_entry(entry, entries, repo):
            files.append(file)
    return branch, files


def _parse_entry(entry: str, entries: Iterator[str], repo: Repo) -> dict[str, Any] | None:
    """Parse one entry: `1` changed, `2` renamed (its old path follows), `u` unmerged, `?` untracked."""
    parts = {"1": 8, "2": 9, "u": 10, "?": 1}.get(entry[:1])
    fields = entry.split(" ", parts) if parts else []
    if not parts or len(fields) != parts + 1:
        return None
    file: dict[str, Any] = {"status": "??" if parts == 1 else fields[1], "path": repo.path_from_top(fields[-1])}
    if entry[0] == "2":
        file["old_path"] = repo.path_from_top(next(entries, ""))
    return file
