"""Check, area and finding types, and the decorator that registers checks."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from ostler.conformance.agent_driver import AgentDriver

Level = Literal["must", "should"]
CheckState = Literal["passed", "failed", "skipped"]


class CheckFailed(Exception):
    """Raised when the agent violates the protocol; the message says how."""


class CheckSkipped(Exception):
    """Raised when the agent does not offer the feature, or the model did not use it."""


class ConformanceCheck(msgspec.Struct, frozen=True):
    """One requirement of the protocol; `level` says whether it is mandatory."""

    id: str
    title: str
    run: "Callable[[AgentDriver], Awaitable[None]]"
    level: Level = "must"


class Area:
    """Checks that share an agent process, registered with the decorator `check`.

    With `initialized` the process is initialized before the first check; with `offers_services` it is offered files
    and terminals.
    """

    def __init__(self, name: str, *, initialized: bool = True, offers_services: bool = False) -> None:
        self.name = name
        self.checks: list[ConformanceCheck] = []
        self.initialized = initialized
        self.offers_services = offers_services

    def check(
        self, check_id: str, title: str, level: Level = "must"
    ) -> "Callable[[Callable[[AgentDriver], Awaitable[None]]], None]":
        def add(run: "Callable[[AgentDriver], Awaitable[None]]") -> None:
            self.checks.append(ConformanceCheck(check_id, title, run, level))

        return add


class CheckFinding(msgspec.Struct, frozen=True):
    """The result of a check; `detail` says why it did not pass."""

    area: str
    id: str
    title: str = msgspec.field(name="told")
    level: Level
    state: CheckState
    detail: str = msgspec.field(name="seen", default="")


def require(condition: bool, message: str) -> None:
    """Raise `CheckFailed` if the condition is false."""
    if not condition:
        raise CheckFailed(message)


def skip_unless(condition: object, reason: str) -> None:
    """Raise `CheckSkipped` if the condition is false."""
    if not condition:
        raise CheckSkipped(reason)
