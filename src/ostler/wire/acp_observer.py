"""Observer of an ACP session's updates and decisions; the base class ignores everything."""

from ostler.core.permission import Decision
from ostler.wire.acp import ToolCallFields
from ostler.wire.acp_requests import RequestPermissionRequest
from ostler.wire.acp_updates import SessionUpdate


class AcpObserver:
    """Base class of observers; the methods are called in frame order."""

    def on_update(self, update: SessionUpdate, call: ToolCallFields | None) -> None:
        """Called for a session update; `call` is the merged tool call if the update is about one."""

    def on_decision(self, request: RequestPermissionRequest, decision: Decision) -> None:
        """Called when a permission request was answered."""

    def on_refused(self, operation: str, subject: str, reason: str) -> None:
        """Called when a file or terminal request was denied."""

    def on_failed(self, operation: str, subject: str, reason: str) -> None:
        """Called when an allowed file or terminal request failed."""

    def on_terminal(self, action: str, terminal_id: str, detail: str = "") -> None:
        """Called when a terminal was created, read, exited or released."""
