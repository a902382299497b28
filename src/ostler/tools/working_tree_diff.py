"""Diff of the working tree against the last commit, using git safely."""

from collections.abc import Sequence

import msgspec

from ostler.core.display import Display
from ostler.core.errors import OstlerError, UsageError
from ostler.core.events import Event
from ostler.core.permission import Question, QuestionReply
from ostler.core.protocols import Workspace
from ostler.core.tools import ChildTask, ToolResult
from ostler.tools.git_diff import GitDiffParams, GitDiffTool

MAX_BYTES = 1_000_000


async def diff_working_tree(workspace: Workspace, path: str) -> str:
    """Return a unified diff of the working tree, or of one path in it."""
    try:
        params = GitDiffParams(path=path, from_ref="HEAD", max_bytes=MAX_BYTES)
        result = await GitDiffTool().run(params, _ReadOnlyToolContext(workspace))
    except OstlerError as error:
        raise UsageError(error.fault.message) from None  # the hint is written for models
    return str(result.data["data"]["diff"])


class _ReadOnlyToolContext(msgspec.Struct, frozen=True):
    """Tool context for a read-only tool outside a session."""

    workspace: Workspace
    call_id: str = "diff"
    read_only: bool = True

    def progress(self, display: Display) -> None:
        """Ignore it: there is no display."""

    def persist(self, event: Event) -> None:
        """Ignore it: there is no journal."""

    def events(self) -> Sequence[Event]:
        return ()

    async def ask(self, question: Question) -> QuestionReply:
        return QuestionReply("decline")

    def may_read(self, path: str) -> bool:
        return True

    async def spawn(self, task: ChildTask) -> ToolResult:
        raise NotImplementedError
