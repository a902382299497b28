"""What a turn and the children it starts may use together: set aside before each model call, counted after it."""

from collections.abc import Iterable

import msgspec

from ostler.backends.engine.guests.guest import View
from ostler.models.terms import Price
from ostler.models.words import Usage
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
        self._uncounted: list[Aside] = []

    def join(self, view: View) -> None:
        """A turn begins, the root's or that of a child."""
        if self._root is None:
            self._root, self._calls = view, 0
            self._aside.clear()
            self._uncounted.clear()

    def leave(self, stage: Stage) -> None:
        """The turn on this stage is over, however it ended."""
        self._aside.pop(id(stage), None)
        if self._root is not None and self._root.stage is stage:
            self._root = None

    def reserve(self, view: View) -> str:
        """Set aside what the next call will take, or name the limit that it would pass."""
        self._aside.pop(id(view.stage), None)
        root = self._root or view
        wanted = _expected(view, root.usage())
        if reached := self._reached(root.usage(), wanted):
            return reached
        self._tell_unpriced(root, view.model.name if view.price is None else "")
        self._aside[id(view.stage)] = wanted
        return ""

    def settle(self, view: View, *, answered: bool) -> None:
        """The call is over; what it took is told by then."""
        self._tell_unpriced(self._root or view)
        aside = self._aside.pop(id(view.stage), None)
        if aside is None or not answered:
            return
        self._calls += 1
        if not any(map(_counted, view.usage(view.asked_at))):  # what a server does not count is as was expected
            self._uncounted.append(aside)

    def _tell_unpriced(self, root: View, next_one: str = "") -> None:
        """A limit that cannot hold is told once for each model: before it is asked if that is known, else after."""
        if self._most_cost is None:
            return
        asked = (usage.model for usage in root.usage() if usage.cost is None and _counted(usage))
        for model in dict.fromkeys(filter(None, (*asked, next_one))):
            told = f"the price of {model} is not known, so the limit of ${self._most_cost:g} cannot hold"
            _say_once(root, told)

    def _reached(self, used: list[UsageReported], wanted: Aside) -> str:
        if self._most_calls is not None and self._calls + len(self._aside) >= self._most_calls:
            return many(self._most_calls, "step")
        others = (*self._aside.values(), *self._uncounted)
        tokens = sum(usage.tokens_in + usage.tokens_out for usage in used) + sum(one.tokens for one in others)
        if self._most_tokens is not None and tokens + wanted.tokens > self._most_tokens:
            return many(self._most_tokens, "token")
        cost = sum(usage.cost or 0.0 for usage in used) + sum(one.cost for one in others)
        if self._most_cost is not None and cost + wanted.cost > self._most_cost:
            return f"${self._most_cost:g}"
        return ""


def _counted(usage: UsageReported) -> bool:
    return bool(usage.tokens_in + usage.tokens_out)


def _expected(view: View, used: list[UsageReported]) -> Aside:
    """What the next call will take: its request, and a reply as long as the longest so far."""
    reply = max((usage.tokens_out for usage in used), default=0)
    tokens = view.tokens + reply
    rate = _rate(used, view.model.name)
    if rate is None and isinstance(view.price, Price):
        return Aside(tokens, view.price.of(Usage(view.tokens, reply)).cost or 0.0)
    return Aside(tokens, tokens * (rate or 0.0))


def _rate(used: Iterable[UsageReported], model: str) -> float | None:
    """What a token of this model has cost so far, as the server's cache has it; unknown before its first call."""
    own = [usage for usage in used if usage.cost is not None and usage.model == model]
    tokens = sum(usage.tokens_in + usage.tokens_out for usage in own)
    return sum(usage.cost or 0.0 for usage in own) / tokens if tokens else None


def _say_once(view: View, text: str) -> None:
    records = view.stage.records()
    notice = Notice("warning", text)
    if not any(records[at].event == notice for at in range(len(records)) if records.kind(at) == "notice"):
        view.stage.emit(notice)


def many(count: int, what: str) -> str:
    """A number of things, in words."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
