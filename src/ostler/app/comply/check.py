"""What a check is, and how it can end."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from ostler.app.comply.bench import Bench

Level = Literal["must", "should"]
State = Literal["passed", "failed", "skipped"]


class Unmet(Exception):
    """The agent did not do what was due, in a sentence."""


class NotOffered(Exception):
    """The agent does not claim to do this, or could not be brought to it."""


class Check(msgspec.Struct, frozen=True):
    """One thing an agent must or should do."""

    id: str
    told: str
    run: "Callable[[Bench], Awaitable[None]]"
    level: Level = "must"


class Area(msgspec.Struct, frozen=True):
    """Checks that share a process, which has been initialized unless they do that themselves.

    `offers`: the agent is offered files and terminals.
    """

    name: str
    checks: tuple[Check, ...]
    initialized: bool = True
    offers: bool = False


class Finding(msgspec.Struct, frozen=True):
    """How a check ended, and what was seen if it did not pass."""

    area: str
    id: str
    told: str
    level: Level
    state: State
    seen: str = ""


class Writing:
    """A way to write an area down: each check is a function below its id and its sentence."""

    def __init__(self, name: str, *, initialized: bool = True, offers: bool = False) -> None:
        self._name = name
        self._initialized = initialized
        self._offers = offers
        self._checks: list[Check] = []

    def check(
        self, check_id: str, told: str, level: Level = "must"
    ) -> "Callable[[Callable[[Bench], Awaitable[None]]], None]":
        def add(run: "Callable[[Bench], Awaitable[None]]") -> None:
            self._checks.append(Check(check_id, told, run, level))

        return add

    @property
    def area(self) -> Area:
        return Area(self._name, tuple(self._checks), self._initialized, self._offers)


def demand(so: bool, told: str) -> None:
    """`Unmet` unless it is so."""
    if not so:
        raise Unmet(told)
