"""Backend that runs scripted turns, for tests and calls without a model."""

from collections.abc import Awaitable, Callable, Iterable

from ostler.core.errors import BackendError
from ostler.core.events import TurnEnded
from ostler.core.prompt import Prompt
from ostler.core.protocols import BackendContext
from ostler.core.sessions import SessionChange, SessionInfo, SessionOption, SessionStart, SetOption

TurnScript = Callable[[BackendContext, Prompt | None], Awaitable[TurnEnded | None]]


class ScriptedBackend:
    """Runs one script per turn; a script uses the context like any backend."""

    def __init__(self, turns: Iterable[TurnScript], info: SessionInfo | None = None) -> None:
        self.changes: list[SessionChange] = []
        self.info = info or SessionInfo("scripted", (SessionOption("model", ""),), can_steer=True, can_take_over=True)
        self._turns = list(turns)
        self._turns_run = 0
        self.context: BackendContext

    async def open(self, start: SessionStart, context: BackendContext) -> SessionInfo:
        self.context = context
        return self.info

    async def run_turn(self, prompt: Prompt | None) -> TurnEnded:
        if self._turns_run >= len(self._turns):
            raise BackendError(f"all {len(self._turns)} scripted turns were already run")
        script = self._turns[self._turns_run]
        self._turns_run += 1
        return await script(self.context, prompt) or TurnEnded("", "done")

    async def apply(self, change: SessionChange) -> bool:
        self.changes.append(change)
        return not isinstance(change, SetOption) or any(option.id == change.id for option in self.info.options)

    async def aclose(self) -> None:
        """Do nothing; `finish` reports scripts that were not run."""

    def finish(self) -> None:
        """Raise `AssertionError` if some scripts were not run."""
        if self._turns_run < len(self._turns):
            raise AssertionError(
                f"{len(self._turns) - self._turns_run} of {len(self._turns)} scripted turns were not run"
            )
