"""Diff of the working tree against the last commit, using git safely."""

from ostler.core.errors import OstlerError, UsageError
from ostler.core.protocols import Workspace
from ostler.tools.git_diff import GitDiffParams, GitDiffTool
from ostler.tools.git_repo import open_repo

MAX_BYTES = 1_000_000


async def diff_working_tree(workspace: Workspace, path: str) -> str:
    """Return a unified diff of the working tree, or of one path in it."""
    try:
        params = GitDiffParams(path=path, from_ref="HEAD", max_bytes=MAX_BYTES)
        result = await GitDiffTool().run_in_repo(params, await open_repo(workspace, params.repo))
    except OstlerError as error:
        raise UsageError(error.fault.message) from None  # the hint is written for models
    return str(result.data["data"]["diff"])
