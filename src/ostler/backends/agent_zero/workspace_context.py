"""Decides when the server gets the description of the workspace."""

from typing import Literal, Protocol

import msgspec

ContextMode = Literal["always", "on_change", "once", "manual"]


class WorkspaceContext(msgspec.Struct, frozen=True):
    """The description of the workspace for a message. `tree` is the list of files alone.

    `signature` changes when the workspace does. Its part after `-` is of the git status; it is missing if git failed.
    """

    text: str
    signature: str
    tree: str = ""

    def is_known(self, signature: str) -> bool:
        """Return whether an earlier description says the same; that git failed since then is not a change."""
        files, _, git = self.signature.partition("-")
        sent_files, _, sent_git = signature.partition("-")
        return files == sent_files and git in ("", sent_git)


class ContextSource(Protocol):
    """Describes the workspace; `app` passes it to the backend."""

    async def build(self, *, requests_tools: bool = True) -> WorkspaceContext: ...


class ContextSender:
    """Returns the description for a prompt, depending on the mode and on what the conversation already has."""

    def __init__(self, source: ContextSource, mode: ContextMode) -> None:
        self._source = source
        self._mode = mode
        self._is_requested = False
        self._sent = ("", "")  # conversation and signature

    def request(self) -> None:
        """Send the description with the next prompt, whatever the mode is."""
        self._is_requested = True

    def restore(self, context_id: str, signature: str) -> None:
        """Set what an earlier process sent to this conversation."""
        self._sent = (context_id, signature)

    async def for_prompt(self, context_id: str, *, requests_tools: bool = True) -> WorkspaceContext | None:
        """Return the description to send, or None."""
        sent = self._sent[1] if context_id and self._sent[0] == context_id else ""
        if not self._is_requested and (self._mode == "manual" or (self._mode == "once" and sent)):
            return None
        context = await self._source.build(requests_tools=requests_tools)
        if not context.text or (self._mode == "on_change" and context.is_known(sent) and not self._is_requested):
            return None
        return context

    def on_sent(self, context: WorkspaceContext, context_id: str) -> None:
        """Store that a conversation got this description."""
        self._is_requested = False
        self._sent = (context_id, context.signature)
