"""What differs from the last commit: git's own diff, asked so that no repository can make it run a program."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ostler.app.run_options import RunOptions
from ostler.app.session_workspace import make_workspace
from ostler.core.display import Display
from ostler.core.errors import OstlerError, UsageError
from ostler.core.events import Event
from ostler.core.permission import Question, QuestionReply
from ostler.core.protocols import Workspace
from ostler.core.tools import ChildTask, ToolResult
from ostler.settings.effective import Settings
from ostler.tools.git_diff import GitDiffParams, GitDiffTool

MAX_BYTES = 1_000_000


async def diff_working_tree(cwd: Path, settings: Settings, options: RunOptions, path: str) -> str:
    """A unified diff of the work tree, or of one path in it."""
    workspace = make_workspace(cwd, settings, options, interactive=False)
    try:
        asked = GitDiffParams(path=path, from_ref="HEAD", max_bytes=MAX_BYTES)
        result = await GitDiffTool().run(asked, _ReadOnlyToolContext(workspace))
    except OstlerError as error:
        raise UsageError(error.fault.message) from None  # its hint is for a model
    finally:
        await workspace.aclose()
    return str(result.data["data"]["diff"])


class _ReadOnlyToolContext(msgspec.Struct, frozen=True):
    """All that a tool needs which only looks."""

    workspace: Workspace
    call_id: str = "diff"

    def progress(self, display: Display) -> None:
        """Nobody watches."""

    def persist(self, event: Event) -> None:
        """Nothing happens that would have to be kept."""

    def events(self) -> Sequence[Event]:
        return ()

    async def ask(self, question: Question) -> QuestionReply:
        return QuestionReply("decline")

    async def spawn(self, task: ChildTask) -> ToolResult:
        raise NotImplementedError
