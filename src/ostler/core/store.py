"""The protocol of the stored sessions of a user."""

from collections.abc import Sequence
from typing import Protocol

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
        """Delete the session with exactly this id. Raises `UsageError` if there is none or a process has it open."""
