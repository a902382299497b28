"""Tool that shows one commit."""

from typing import Annotated

import msgspec

from ostler.core.tools import ToolResult
from ostler.tools.git_log import FORMAT, parse_commits
from ostler.tools.git_repo import SAFE_DIFF_OPTIONS, GitTool, Repo, RepoParams, truncate


class GitShowParams(RepoParams):
    sha: str = "HEAD"
    patch: bool = True
    stat: bool = True
    context_lines: Annotated[int, msgspec.Meta(ge=0, le=20)] = 3
    max_bytes: Annotated[int, msgspec.Meta(ge=1024, le=2_000_000)] = 48_000


class GitShowTool(GitTool[GitShowParams]):
    name = "git_show"
    params = GitShowParams
    unlisted = ("repo", "max_bytes", "context_lines", "stat")

    async def run_in_repo(self, params: GitShowParams, repo: Repo) -> ToolResult:
        commit = await repo.resolve_commit(params.sha)
        flags = ["--diff-merges=first-parent", "--relative"]
        flags += ["--stat=120"] if params.stat else []
        flags += ["--patch", f"--unified={params.context_lines}"] if params.patch else []
        flags += [] if params.patch or params.stat else ["--no-patch"]
        # The message needs a separate call, because with a path `show` prints only matching commits.
        header = await repo.run("show", *SAFE_DIFF_OPTIONS, "--no-mailmap", FORMAT, "--no-patch", commit)
        changes = await repo.run(
            "show", *SAFE_DIFF_OPTIONS, "--format=", *flags, commit, *repo.path_arguments(params.path)
        )
        (commit_data,) = parse_commits(header.stdout)
        head = "commit {sha}\nAuthor: {author} <{email}>\nDate:   {date}".format_map(commit_data)
        body = f"{commit_data['subject']}\n\n{commit_data['body']}".strip()
        message = "\n".join(f"    {line}" for line in body.splitlines())
        diff, truncated = truncate(changes.stdout.strip("\n"), params.max_bytes)
        data = {"commit": commit_data, "diff": diff, "truncated": truncated or changes.truncated}
        summary = f"{commit_data['short']} {commit_data['subject']}"
        return self.make_result(summary, f"{head}\n\n{message}\n\n{diff}".rstrip(), data)
