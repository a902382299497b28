"""What is so now in a session, as faces read it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ostler.core.events import PermissionAsked, QuestionAsked
from ostler.core.permission import Rule
from ostler.core.tools import Todo


class SessionView(Protocol):
    """A fold over what was kept."""

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
    def cost(self) -> float | None: ...

    @property
    def queued(self) -> Sequence[str]:
        """What waited to be sent when it was last told."""
