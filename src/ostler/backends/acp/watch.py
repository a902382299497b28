"""Whoever wants to see what an agent says as it says it, besides the session's events; this one looks away."""

from ostler.vocabulary.permission import Decision
from ostler.wire.acp import ToolCallFields
from ostler.wire.acp_calls import PermissionRequest
from ostler.wire.acp_updates import Update


class Watch:
    """Told in the order of the frames; every method may be left as it is."""

    def updated(self, update: Update, call: ToolCallFields | None) -> None:
        """An update of the session; `call` is the tool call as it stands now, when it is about one."""

    def decided(self, asked: PermissionRequest, decision: Decision) -> None:
        """A permission request was answered."""

    def refused(self, operation: str, what: str, why: str) -> None:
        """A file or a terminal was refused."""

    def failed(self, operation: str, what: str, why: str) -> None:
        """A file or a terminal was allowed, and it did not work out."""

    def terminal(self, what: str, terminal_id: str, detail: str = "") -> None:
        """A terminal was created, read, has ended, or was released."""
