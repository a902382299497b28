"""A backend without a model, for sessions in which only the user or a client calls tools."""

from ostler.core.errors import UsageError
from ostler.core.events import TurnEnded
from ostler.core.prompt import Prompt
from ostler.core.protocols import BackendContext
from ostler.core.sessions import SessionChange, SessionInfo, SessionStart


class NoBackend:
    """Runs no turns and accepts no changes."""

    async def open(self, start: SessionStart, context: BackendContext) -> SessionInfo:
        return SessionInfo("none")

    async def run_turn(self, prompt: Prompt | None) -> TurnEnded:
        raise UsageError("this session has no model, so it cannot answer prompts", hint="use the backend engine")

    async def apply(self, change: SessionChange) -> bool:
        return False

    async def aclose(self) -> None:
        """Do nothing."""
