"""A backend that plays written acts: for tests, demonstrations and replays, with nobody thinking."""

from collections.abc import Awaitable, Callable, Iterable

from ostler.core.errors import BackendError
from ostler.core.events import TurnEnded
from ostler.core.prompt import Prompt
from ostler.core.protocols import BackendContext
from ostler.core.sessions import SessionChange, SessionInfo, SessionStart

TurnScript = Callable[[BackendContext, Prompt | None], Awaitable[TurnEnded | None]]


class ScriptedBackend:
    """One act per turn; an act uses the stage as any backend may. Strict about leftovers."""

    def __init__(self, turns: Iterable[TurnScript], info: SessionInfo | None = None) -> None:
        self.changes: list[SessionChange] = []
        self.info = info or SessionInfo("scripted", can_steer=True)
        self._turns = list(turns)
        self._turns_run = 0
        self.context: BackendContext

    async def open(self, start: SessionStart, context: BackendContext) -> SessionInfo:
        self.context = context
        return self.info

    async def run_turn(self, prompt: Prompt | None) -> TurnEnded:
        if self._turns_run >= len(self._turns):
            raise BackendError(f"the script has {len(self._turns)} acts and was asked for one more")
        act = self._turns[self._turns_run]
        self._turns_run += 1
        return await act(self.context, prompt) or TurnEnded("", "done")

    async def apply(self, change: SessionChange) -> bool:
        self.changes.append(change)
        return True

    async def aclose(self) -> None:
        """Nothing to give back; leftovers are `finish`'s to find."""

    def finish(self) -> None:
        """Raise if acts were left over."""
        if self._turns_run < len(self._turns):
            raise AssertionError(f"{len(self._turns) - self._turns_run} of {len(self._turns)} acts were not played")
