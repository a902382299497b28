"""What both interactive clients need, without importing either of them."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ostler.app.backend_kinds import backend_kind
from ostler.core.protocols import Session, ToolRunner, Workspace
from ostler.core.sessions import OpenSessionRequest, SessionQuery, SessionSummary
from ostler.settings.run_options import RunOptions

if TYPE_CHECKING:
    from ostler.app.session_manager import LocalSessionManager


def keeps_prompts(options: RunOptions) -> bool:
    """Return whether prompts may be stored on this machine; with a server they are stored there."""
    return not options.ephemeral and not backend_kind(options.backend).is_elsewhere


class LazySessionManager:
    """A session manager created on first use, so that the prompt appears without waiting for its imports."""

    def __init__(self, options: RunOptions, notify: Callable[[str], None], *, keeps_prompts: bool = True) -> None:
        """`keeps_prompts` is whether prompts may be stored on this machine before the first session is open."""
        self.keeps_prompts = keeps_prompts
        self._options = options
        self._notify = notify

    @cached_property
    def _manager(self) -> "LocalSessionManager":
        from ostler.app.session_manager import LocalSessionManager

        return LocalSessionManager(self._options, self._notify)

    async def open(
        self, request: OpenSessionRequest, *, tools: ToolRunner | None = None, workspace: Workspace | None = None
    ) -> Session:
        session = await self._manager.open(request, tools=tools, workspace=workspace)
        self.keeps_prompts = not backend_kind(session.info.backend).is_elsewhere
        return session

    async def list(self, query: SessionQuery) -> Sequence[SessionSummary]:
        return await self._manager.list(query)

    async def delete(self, session_id: str) -> None:
        await self._manager.delete(session_id)
