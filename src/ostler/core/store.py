"""The protocols of stored sessions: those of one user, and those of all users of a server."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from ostler.core.protocols import Journal
from ostler.core.sessions import SessionQuery, SessionSummary


class Store(Protocol):
    """The stored sessions of a user, by project."""

    def open(self, project: str, session_id: str = "") -> Journal:
        """Open the journal of a session, or of a new one. Raises `JournalError` if a process has it open."""

    def find(self, project: str, session_ref: str) -> str:
        """Return the id of a project's session: by its id, a unique part of it, or `last`. Raises `UsageError`."""

    def backend(self, session_id: str) -> str:
        """Return the backend that a session was started with, or an empty string."""

    def list(self, query: SessionQuery) -> Sequence[SessionSummary]:
        """List or search the sessions, newest first."""

    def fork(self, session_id: str, seq: int = 0) -> str:
        """Copy a session up to record `seq`, or completely if it is 0. Return the copy's id."""

    def rename(self, session_id: str, title: str) -> None: ...

    def delete(self, session_id: str) -> None:
        """Delete the session with exactly this id.

        Raises `UsageError` if there is none, `JournalError` if a process has it open.
        """


class InterruptedSession(msgspec.Struct, frozen=True):
    """A session whose turn has not ended, or whose messages wait, and that no running process has open."""

    owner: str
    id: str
    root: str


class HostedStore(Store, Protocol):
    """The sessions of one user of a server. Their tools run on another machine, the tool host."""

    def set_host(self, session_id: str, root: str, manifest: bytes) -> None:
        """Save the workspace root and the manifest of the tool host, for a process that takes over the session."""

    def summary(self, session_id: str) -> SessionSummary:
        """Return the entry of a session as in a list. Raises `UsageError`."""

    def host(self, session_id: str) -> tuple[str, bytes]:
        """Return the workspace root and the manifest, which are empty if none were saved. Raises `UsageError`."""


class HostedSessions(Protocol):
    """The sessions of all users of a server."""

    def of(self, owner: str) -> HostedStore:
        """Return the store of one user, who cannot see the sessions of others."""

    def interrupted(self) -> Sequence[InterruptedSession]:
        """Return the sessions whose turns or waiting messages can be taken over, oldest first."""

    def delete_expired(self, before: float) -> Sequence[str]:
        """Delete the sessions that were last written before this time and are not open. Return their ids."""
