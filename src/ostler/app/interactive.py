"""What both interactive clients need before they show something, without importing either of them."""

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ostler.core.protocols import Session, ToolRunner, Workspace
from ostler.core.sessions import OpenSessionRequest, SessionQuery, SessionSummary
from ostler.settings.effective import Settings
from ostler.settings.run_options import RunOptions

if TYPE_CHECKING:
    from ostler.app.session_manager import LocalSessionManager

LIMITED_TERMINALS = ("", "dumb", "unknown")


class LazySessionManager:
    """A session manager created on first use, so that the prompt appears without waiting for its imports."""

    def __init__(self, options: RunOptions, notify: Callable[[str], None]) -> None:
        self._options = options
        self._notify = notify

    @cached_property
    def _manager(self) -> "LocalSessionManager":
        from ostler.app.session_manager import LocalSessionManager

        return LocalSessionManager(self._options, self._notify)

    async def open(
        self, request: OpenSessionRequest, *, tools: ToolRunner | None = None, workspace: Workspace | None = None
    ) -> Session:
        return await self._manager.open(request, tools=tools, workspace=workspace)

    async def list(self, query: SessionQuery) -> Sequence[SessionSummary]:
        return await self._manager.list(query)

    async def delete(self, session_id: str) -> None:
        await self._manager.delete(session_id)


def contains_secret(settings: Settings, api_key: str, text: str) -> bool:
    """Return whether a prompt contains a known secret."""
    from ostler.settings.known_secrets import secrets_in_use
    from ostler.text.secret_masker import SecretMasker

    return SecretMasker(secrets_in_use(settings, os.environ, api_key)).mask(text) != text


def can_edit_lines() -> bool:
    """Return whether input and output are a terminal that supports line editing."""
    if not (is_terminal(0) and is_terminal(1)) or os.environ.get("TERM", "") in LIMITED_TERMINALS:
        return False
    try:
        import termios  # noqa: F401  # the line editor needs it
    except ImportError:
        return False
    return True


def is_terminal(descriptor: int) -> bool:
    """Return whether a file descriptor is open and is a terminal."""
    try:
        return os.isatty(descriptor)
    except OSError:
        return False
