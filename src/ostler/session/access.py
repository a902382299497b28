"""Permissions of a session: its policy and tools, and the options that change them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ostler.core.permission import Rule
from ostler.core.sessions import SessionOption
from ostler.policy.verdict import Policy


class SessionAccess(Protocol):
    """The policy and tools of a session, which follow from its agent and its security profile.

    These options belong to the session, so that they restrict every backend.
    """

    def policy(self) -> Policy: ...

    def allows_tool(self, tool: str) -> bool: ...

    def call_rules(self) -> tuple[tuple[Rule, ...], ...]:
        """Return layers of rules that restrict each call, for a tool host elsewhere that has its own policy."""

    def instructions(self) -> str:
        """Return the prompt of the active agent, for a backend that knows no agents."""

    def options(self) -> tuple[SessionOption, ...]: ...

    def set_option(self, option_id: str, value: str) -> bool:
        """Set an option. Return False if it is not one of these. Raises `UsageError` for an unknown value."""

    def owns(self, option_id: str, value: str) -> bool:
        """Return whether this is one of the session's own options, also if the user cannot choose it here."""

    def restore(self, options: Mapping[str, str]) -> Sequence[str]:
        """Set the recorded options of a resumed session. Return a warning for each that no longer exists.

        Raises `UsageError` if a non-interactive session would be less restricted without it.
        """


class FixedAccess:
    """Access by one policy, without options."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def policy(self) -> Policy:
        return self._policy

    def allows_tool(self, tool: str) -> bool:
        return True

    def call_rules(self) -> tuple[tuple[Rule, ...], ...]:
        return ()

    def instructions(self) -> str:
        return ""

    def options(self) -> tuple[SessionOption, ...]:
        return ()

    def set_option(self, option_id: str, value: str) -> bool:
        return False

    def owns(self, option_id: str, value: str) -> bool:
        return False

    def restore(self, options: Mapping[str, str]) -> Sequence[str]:
        return ()
