"""A backend that plays written acts: for tests, demonstrations and replays, with nobody thinking."""

from collections.abc import Awaitable, Callable, Iterable

from ostler.vocabulary.errors import BackendError
from ostler.vocabulary.events import TurnEnded
from ostler.vocabulary.prompt import Prompt
from ostler.vocabulary.seams import Stage
from ostler.vocabulary.sessions import Change, SessionInfo, SessionStart

Act = Callable[[Stage, Prompt | None], Awaitable[TurnEnded | None]]


class ScriptedBackend:
    """One act per turn; an act uses the stage as any backend may. Strict about leftovers."""

    def __init__(self, acts: Iterable[Act], info: SessionInfo | None = None) -> None:
        self.changes: list[Change] = []
        self.info = info or SessionInfo("scripted", can_steer=True)
        self._acts = list(acts)
        self._played = 0
        self.stage: Stage

    async def open(self, start: SessionStart, stage: Stage) -> SessionInfo:
        self.stage = stage
        return self.info

    async def run_turn(self, prompt: Prompt | None) -> TurnEnded:
        if self._played >= len(self._acts):
            raise BackendError(f"the script has {len(self._acts)} acts and was asked for one more")
        act = self._acts[self._played]
        self._played += 1
        return await act(self.stage, prompt) or TurnEnded("", "done")

    async def apply(self, change: Change) -> bool:
        self.changes.append(change)
        return True

    async def aclose(self) -> None:
        """Nothing to give back; leftovers are `finish`'s to find."""

    def finish(self) -> None:
        """Raise if acts were left over."""
        if self._played < len(self._acts):
            raise AssertionError(f"{len(self._acts) - self._played} of {len(self._acts)} acts were not played")
