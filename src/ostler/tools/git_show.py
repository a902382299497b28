"""The tool that shows one commit."""

from typing import Annotated

import msgspec

from ostler.tools.git_log import FORMAT, commits_in
from ostler.tools.git_repo import NO_PROGRAMS, GitTool, Repo, RepoParams, cut
from ostler.vocabulary.tools import ToolResult


class GitShowParams(RepoParams):
    sha: str = "HEAD"
    patch: bool = True
    stat: bool = True
    context_lines: Annotated[int, msgspec.Meta(ge=0, le=20)] = 3
    max_bytes: Annotated[int, msgspec.Meta(ge=1024, le=2_000_000)] = 48_000


class GitShow(GitTool[GitShowParams]):
    name = "git_show"
    params = GitShowParams
    unlisted = ("repo", "max_bytes", "context_lines", "stat")

    async def look(self, params: GitShowParams, repo: Repo) -> ToolResult:
        commit = await repo.commit(params.sha)
        flags = ["--diff-merges=first-parent", "--relative"]
        flags += ["--stat=120"] if params.stat else []
        flags += ["--patch", f"--unified={params.context_lines}"] if params.patch else []
        flags += [] if params.patch or params.stat else ["--no-patch"]
        # The message comes from a call of its own: a path narrows what `show` tells of the commit, too.
        about = await repo.run("show", *NO_PROGRAMS, "--no-mailmap", FORMAT, "--no-patch", commit)
        said = await repo.run("show", *NO_PROGRAMS, "--format=", *flags, commit, *repo.narrowed(params.path))
        (one,) = commits_in(about.stdout)
        head = f"commit {one['sha']}\nAuthor: {one['author']} <{one['email']}>\nDate:   {one['date']}"
        message = "\n".join(f"    {line}" for line in f"{one['subject']}\n\n{one['body']}".strip().splitlines())
        diff, was_cut = cut(said.stdout.strip("\n"), params.max_bytes)
        data = {"commit": one, "diff": diff, "truncated": was_cut or said.cut}
        return self.answer(f"{one['short']} {one['subject']}", f"{head}\n\n{message}\n\n{diff}".rstrip(), data)
