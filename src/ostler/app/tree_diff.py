"""What differs from the last commit: git's own diff, asked so that no repository can make it run a program."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ostler.app.grounds import make_ground
from ostler.app.options import RunOptions
from ostler.settings.effective import Settings
from ostler.tools.git_diff import GitDiff, GitDiffParams
from ostler.vocabulary.display import Display
from ostler.vocabulary.errors import OstlerError, UsageError
from ostler.vocabulary.events import Event
from ostler.vocabulary.permission import Question, Reply
from ostler.vocabulary.seams import Ground
from ostler.vocabulary.tools import ChildTask, ToolResult

MOST_BYTES = 1_000_000


async def tree_diff(cwd: Path, settings: Settings, options: RunOptions, path: str) -> str:
    """A unified diff of the work tree, or of one path in it."""
    ground = make_ground(cwd, settings, options, attended=False)
    try:
        asked = GitDiffParams(path=path, from_ref="HEAD", max_bytes=MOST_BYTES)
        result = await GitDiff().run(asked, _Looking(ground))
    except OstlerError as error:
        raise UsageError(error.fault.message) from None  # its hint is for a model
    finally:
        await ground.aclose()
    return str(result.data["data"]["diff"])


class _Looking(msgspec.Struct, frozen=True):
    """All that a tool needs which only looks."""

    ground: Ground
    call_id: str = "diff"

    def progress(self, display: Display) -> None:
        """Nobody watches."""

    def keep(self, event: Event) -> None:
        """Nothing happens that would have to be kept."""

    def past(self) -> Sequence[Event]:
        return ()

    async def ask(self, question: Question) -> Reply:
        return Reply("decline")

    async def spawn(self, task: ChildTask) -> ToolResult:
        raise NotImplementedError
