"""What a check is, and how it can end."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from ostler.app.conformance.agent_driver import AgentDriver

Level = Literal["must", "should"]
CheckState = Literal["passed", "failed", "skipped"]


class CheckFailed(Exception):
    """The agent did not do what was due, in a sentence."""


class CheckSkipped(Exception):
    """The agent does not claim to do this, or could not be brought to it."""


class ConformanceCheck(msgspec.Struct, frozen=True):
    """One thing an agent must or should do."""

    id: str
    title: str
    run: "Callable[[AgentDriver], Awaitable[None]]"
    level: Level = "must"


class Area(msgspec.Struct, frozen=True):
    """Checks that share a process, which has been initialized unless they do that themselves.

    `offers`: the agent is offered files and terminals.
    """

    name: str
    checks: tuple[ConformanceCheck, ...]
    initialized: bool = True
    offers_services: bool = False


class CheckFinding(msgspec.Struct, frozen=True):
    """How a check ended, and what was seen if it did not pass."""

    area: str
    id: str
    title: str = msgspec.field(name="told")
    level: Level
    state: CheckState
    detail: str = msgspec.field(name="seen", default="")


class AreaBuilder:
    """A way to write an area down: each check is a function below its id and its sentence."""

    def __init__(self, name: str, *, initialized: bool = True, offers_services: bool = False) -> None:
        self._name = name
        self._initialized = initialized
        self._offers_services = offers_services
        self._checks: list[ConformanceCheck] = []

    def check(
        self, check_id: str, title: str, level: Level = "must"
    ) -> "Callable[[Callable[[AgentDriver], Awaitable[None]]], None]":
        def add(run: "Callable[[AgentDriver], Awaitable[None]]") -> None:
            self._checks.append(ConformanceCheck(check_id, title, run, level))

        return add

    @property
    def area(self) -> Area:
        return Area(self._name, tuple(self._checks), self._initialized, self._offers_services)


def require(condition: bool, message: str) -> None:
    """`Unmet` unless it is so."""
    if not condition:
        raise CheckFailed(message)
