"""Whoever wants to see what an agent says as it says it, besides the session's events; this one looks away."""

from ostler.core.permission import Decision
from ostler.wire.acp import ToolCallFields
from ostler.wire.acp_requests import RequestPermissionRequest
from ostler.wire.acp_updates import SessionUpdate


class AcpObserver:
    """Told in the order of the frames; every method may be left as it is."""

    def on_update(self, update: SessionUpdate, call: ToolCallFields | None) -> None:
        """An update of the session; `call` is the tool call as it stands now, when it is about one."""

    def on_decision(self, request: RequestPermissionRequest, decision: Decision) -> None:
        """A permission request was answered."""

    def on_refused(self, operation: str, subject: str, reason: str) -> None:
        """A file or a terminal was refused."""

    def on_failed(self, operation: str, subject: str, reason: str) -> None:
        """A file or a terminal was allowed, and it did not work out."""

    def on_terminal(self, action: str, terminal_id: str, detail: str = "") -> None:
        """A terminal was created, read, has ended, or was released."""
