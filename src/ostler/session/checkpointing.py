"""Takes a workspace checkpoint per turn or standalone call, before its first side effect."""

import asyncio
from collections.abc import Callable, Sequence

from ostler.core.undo import Undo

PROGRESS_SECONDS = 1.0  # seconds between progress reports of a checkpoint that takes long

OnProgress = Callable[[float, str], None]


def _ignore_progress(seconds: float, progress: str) -> None:
    pass


class Checkpointer:
    """Creates the checkpoint of each unit of work: a turn or a standalone call. Does nothing without `undo`."""

    def __init__(self, undo: Undo | None, prefix: str) -> None:
        self._undo = undo
        self._prefix = prefix
        self._reported: set[str] = set()

    def start(self, work_id: str) -> "WorkCheckpoint":
        """Return the checkpoint of a unit of work; it is taken when it is first needed."""
        return WorkCheckpoint(self._undo, self._prefix + work_id, self._reported)


class WorkCheckpoint:
    """The checkpoint of one unit of work; several can be open at the same time."""

    def __init__(self, undo: Undo | None, work_id: str, reported: set[str]) -> None:
        """`reported` is the session's set of paths that were already reported as not restorable."""
        self._undo = undo
        self._id = work_id
        self._reported = reported
        self._required = False
        self._ended = False
        self._files_only = True
        self._task: asyncio.Task[Sequence[str]] | None = None

    def begin(self, *, files_only: bool = False) -> None:
        """Start taking the checkpoint, unless this has been done. It is taken again if `files_only` is not enough."""
        if self._undo and not self._ended and (self._task is None or (self._files_only and not files_only)):
            self._files_only = files_only
            self._task = asyncio.create_task(self._undo.begin(self._id, files_only=files_only), name="checkpoint")

    async def wait_ready(
        self, *, files_only: bool = False, on_progress: OnProgress = _ignore_progress
    ) -> Sequence[str]:
        """Wait until the checkpoint is taken. Return the paths that undo cannot restore, except reported ones."""
        self.begin(files_only=files_only)
        task = self._task
        if task is None or self._undo is None:
            return ()
        await self._wait(self._undo, task, on_progress)
        if task.cancelled():  # the unit of work ended in the meantime
            return ()
        self.require()
        return self._unreported(task.result())

    def require(self) -> None:
        """Keep the checkpoint: there are side effects, so `finish` must not drop it."""
        self._required = True
        self.heartbeat()

    def heartbeat(self) -> None:
        """Mark that a side effect is about to happen or has happened."""
        if self._undo and self._required:
            self._undo.heartbeat(self._id)

    def mark_idle(self) -> None:
        """Mark that no side effect is running."""
        if self._undo and self._required:
            self._undo.mark_idle(self._id)

    async def finish(self, on_progress: OnProgress = _ignore_progress) -> Sequence[str]:
        """Save what the work changed, or drop an unneeded checkpoint. Return what undo cannot restore, with reasons."""
        self._ended = True
        task, self._task = self._task, None
        if task is None or self._undo is None:
            return ()
        task.cancel()  # nothing waits for it any more
        await asyncio.wait([task])
        try:
            if self._required:
                finishing = asyncio.ensure_future(self._undo.finish(self._id))
                try:
                    await self._wait(self._undo, finishing, on_progress)
                except asyncio.CancelledError:
                    finishing.cancel()
                    await asyncio.wait([finishing])
                    raise
                return self._unreported(await finishing or ())
            await self._undo.discard(self._id)
        except Exception as error:  # a failed checkpoint must not keep the turn from ending
            return (f"this turn ({error})",)
        return ()

    @staticmethod
    async def _wait(undo: Undo, task: "asyncio.Future[Sequence[str]]", on_progress: OnProgress) -> None:
        """Wait until a task is done, and report its progress."""
        waited = 0.0
        while not (await asyncio.wait([task], timeout=PROGRESS_SECONDS))[0]:
            waited += PROGRESS_SECONDS
            on_progress(waited, undo.progress())

    def _unreported(self, paths: Sequence[str]) -> list[str]:
        new = [path for path in paths if path not in self._reported]
        self._reported.update(new)
        return new
