"""What the client needs of projects: opening them, all their sessions, their backends, worktrees."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from ostler.core.protocols import SessionManager
from ostler.core.sessions import SessionSummary
from ostler.interaction.services import CommandServices

Activity = Literal["waiting", "working", "done"]


class OpenedProject(msgspec.Struct, frozen=True):
    """A folder and what its sessions use. `is_sensitive` tells whether a prompt must not be stored in the history."""

    cwd: str
    manager: SessionManager
    make_services: Callable[[], CommandServices]
    history: Path | None = None
    is_sensitive: Callable[[str], bool] = lambda text: False


class StoredState(msgspec.Struct, frozen=True):
    """A stored session. With `is_open`, another process has it open.

    `backend` attaches to a session of a server, and `server` is the name of that.
    """

    summary: SessionSummary
    activity: Activity = "done"
    is_open: bool = False
    branch: str = ""
    backend: str = ""
    server: str = ""


class ProjectAccess(Protocol):
    """Access to the projects of the user. All methods raise `OstlerError` on failure."""

    def open(self, cwd: str, backend: str = "", resume: str = "") -> OpenedProject:
        """Return what new sessions with a backend in a folder need, or a stored session.

        Flags that extend permissions are for the first project only, and those of the model for its backend only.
        """

    async def sessions(self) -> Sequence[StoredState]:
        """Return the newest sessions of all projects."""

    async def server_sessions(self) -> Sequence[StoredState]:
        """Return the sessions of the servers that can be reached."""

    async def backends(self, cwd: str) -> Sequence[str]:
        """Return the backends that sessions in this folder can use."""

    async def make_worktree(self, cwd: str, name: str) -> str:
        """Make a git worktree of a folder's repository, and return its path; without a name, choose one."""
