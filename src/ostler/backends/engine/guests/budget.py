"""What a turn and the children it starts may use together: set aside before each model call, counted after it."""

from collections.abc import Iterable

import msgspec

from ostler.backends.engine.guests.guest import View
from ostler.vocabulary.events import Notice, UsageReported
from ostler.vocabulary.seams import Stage


class Aside(msgspec.Struct, frozen=True):
    """What one call is expected to take."""

    tokens: int
    cost: float


class Budget:
    """One for a whole tree of sessions; None is no limit. The first that joins is the root, where all usage is told."""

    def __init__(self, tokens: int | None = None, cost: float | None = None, calls: int | None = None) -> None:
        self._most_tokens = tokens
        self._most_cost = cost
        self._most_calls = calls
        self._root: View | None = None
        self._calls = 0
        self._aside: dict[int, Aside] = {}

    def join(self, view: View) -> None:
        """A turn begins, the root's or that of a child."""
        if self._root is None:
            self._root, self._calls = view, 0
            self._aside.clear()

    def leave(self, stage: Stage) -> None:
        """The turn on this stage is over, however it ended."""
        self._aside.pop(id(stage), None)
        if self._root is not None and self._root.stage is stage:
            self._root = None

    def reserve(self, view: View) -> str:
        """Set aside what the next call will take, or name the limit that it would pass."""
        self._aside.pop(id(view.stage), None)
        used = (self._root or view).usage()
        tokens = view.tokens + max((usage.tokens_out for usage in used), default=0)
        wanted = Aside(tokens, tokens * _rate(used, view.model.name))
        if reached := self._reached(used, wanted):
            return reached
        unpriced = next((usage.model for usage in used if usage.cost is None), "")
        if self._most_cost is not None and unpriced:
            told = f"the price of {unpriced} is not known, so the limit of ${self._most_cost:g} cannot hold"
            _say_once(self._root or view, told)
        self._aside[id(view.stage)] = wanted
        return ""

    def settle(self, stage: Stage, *, answered: bool) -> None:
        """The call is over; what it took is told by then."""
        if self._aside.pop(id(stage), None) and answered:
            self._calls += 1

    def _reached(self, used: list[UsageReported], wanted: Aside) -> str:
        others = self._aside.values()
        if self._most_calls is not None and self._calls + len(others) >= self._most_calls:
            return many(self._most_calls, "step")
        tokens = sum(usage.tokens_in + usage.tokens_out for usage in used) + sum(one.tokens for one in others)
        if self._most_tokens is not None and tokens + wanted.tokens > self._most_tokens:
            return many(self._most_tokens, "token")
        cost = sum(usage.cost or 0.0 for usage in used) + sum(one.cost for one in others)
        if self._most_cost is not None and wanted.cost and cost + wanted.cost > self._most_cost:
            return f"${self._most_cost:g}"
        return ""


def _rate(used: Iterable[UsageReported], model: str) -> float:
    """What a token has cost so far: of this model, else of all; nothing is known before the first call."""
    known = [usage for usage in used if usage.cost is not None and usage.tokens_in + usage.tokens_out]
    own = [usage for usage in known if usage.model == model] or known
    tokens = sum(usage.tokens_in + usage.tokens_out for usage in own)
    return sum(usage.cost or 0.0 for usage in own) / tokens if tokens else 0.0


def _say_once(view: View, text: str) -> None:
    records = view.stage.records()
    notice = Notice("warning", text)
    if not any(records[at].event == notice for at in range(len(records)) if records.kind(at) == "notice"):
        view.stage.emit(notice)


def many(count: int, what: str) -> str:
    """A number of things, in words."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
