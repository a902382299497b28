"""Read-only view of a session's current state, for frontends."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ostler.core.events import PermissionAsked, QuestionAsked, ServerStateChanged
from ostler.core.permission import Rule
from ostler.core.tools import Todo


class SessionView(Protocol):
    """The current state of a session, folded from its persisted events."""

    @property
    def title(self) -> str: ...

    @property
    def todos(self) -> Sequence[Todo]: ...

    @property
    def asks(self) -> Mapping[str, PermissionAsked]: ...

    @property
    def questions(self) -> Mapping[str, QuestionAsked]: ...

    @property
    def rules(self) -> Sequence[Rule]: ...

    @property
    def servers(self) -> Mapping[str, ServerStateChanged]:
        """The latest state of each external server, by its name."""

    @property
    def cost(self) -> float | None: ...

    @property
    def queued(self) -> Sequence[str]:
        """The prompts to send after the running turn, as last saved."""
