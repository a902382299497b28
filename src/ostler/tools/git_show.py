"""The tool that shows one commit."""

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
        # The message comes from a call of its own: a path narrows what `show` tells of the commit, too.
        about = await repo.run("show", *SAFE_DIFF_OPTIONS, "--no-mailmap", FORMAT, "--no-patch", commit)
        said = await repo.run(
            "show", *SAFE_DIFF_OPTIONS, "--format=", *flags, commit, *repo.path_arguments(params.path)
        )
        (one,) = parse_commits(about.stdout)
        head = f"commit {one['sha']}\nAuthor: {one['author']} <{one['email']}>\nDate:   {one['date']}"
        message = "\n".join(f"    {line}" for line in f"{one['subject']}\n\n{one['body']}".strip().splitlines())
        diff, was_cut = truncate(said.stdout.strip("\n"), params.max_bytes)
        data = {"commit": one, "diff": diff, "truncated": was_cut or said.truncated}
        return self.make_result(f"{one['short']} {one['subject']}", f"{head}\n\n{message}\n\n{diff}".rstrip(), data)
