"""Tool that shows changes as a diff."""

from typing import Annotated, Any

import msgspec

from ostler.core.tools import ToolResult
from ostler.tools.git_repo import SAFE_DIFF_OPTIONS, GitTool, Repo, RepoParams, truncate

STATUS_NAMES = {
    "A": "added",
    "C": "copied",
    "D": "deleted",
    "M": "modified",
    "R": "renamed",
    "T": "type changed",
    "U": "unmerged",
}


class GitDiffParams(RepoParams):
    from_ref: str = ""
    to_ref: str = ""
    staged: bool = False
    name_only: bool = False
    stat: bool = False
    context_lines: Annotated[int, msgspec.Meta(ge=0, le=20)] = 3
    max_bytes: Annotated[int, msgspec.Meta(ge=1024, le=2_000_000)] = 48_000


class GitDiffTool(GitTool[GitDiffParams]):
    name = "git_diff"
    params = GitDiffParams
    unlisted = ("repo", "max_bytes", "context_lines")

    async def run_in_repo(self, params: GitDiffParams, repo: Repo) -> ToolResult:
        refs = [await repo.resolve_commit(ref) for ref in (params.from_ref, params.to_ref) if ref]
        arguments = ["--relative", *(["--cached"] if params.staged else []), *refs, *repo.path_arguments(params.path)]
        if params.name_only:
            result = await repo.run_raw("diff", *SAFE_DIFF_OPTIONS, "--name-status", "-z", *arguments)
            return self._names_result(parse_name_status(result.stdout, repo))
        form = ["--stat=120"] if params.stat else [f"--unified={params.context_lines}"]
        result = await repo.run("diff", *SAFE_DIFF_OPTIONS, *form, *arguments)
        text, truncated = truncate(result.stdout, params.max_bytes)
        file_count = result.stdout.count("\ndiff --git ") + result.stdout.startswith("diff --git ")
        summary = (
            "no changes" if not text else "counts of changed lines" if params.stat else f"{file_count} files changed"
        )
        return self.make_result(summary, text, {"diff": text, "truncated": truncated or result.truncated})

    def _names_result(self, files: list[dict[str, Any]]) -> ToolResult:
        text = "\n".join(f"{file['raw_status']}\t{file['path']}" for file in files)
        return self.make_result(f"{len(files)} files changed" if files else "no changes", text, {"files": files})


def parse_name_status(output: str, repo: Repo) -> list[dict[str, Any]]:
    """Parse the output of `--name-status -z`, whose paths are relative to the folder."""
    files: list[dict[str, Any]] = []
    fields = iter(output.split("\0"))
    for raw in fields:
        path = next(fields, "")
        if raw[:1] not in STATUS_NAMES or not path:
            continue
        file: dict[str, Any] = {"status": STATUS_NAMES[raw[0]], "raw_status": raw}
        if raw[0] in "RC":
            file["old_path"] = repo.path_from_folder(path)
            path = next(fields, "")
        files.append({**file, "path": repo.path_from_folder(path)})
    return files
