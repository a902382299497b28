"""What a turn and the children it starts may use together: set aside before each model call, counted after it."""

import asyncio
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import msgspec

from ostler.backends.engine.guests.bounded import Room
from ostler.backends.engine.guests.guest import View
from ostler.backends.engine.measure import BYTES_PER_TOKEN, PLAUSIBLE
from ostler.models.terms import Price
from ostler.models.words import Usage
from ostler.vocabulary.events import Notice, UsageReported
from ostler.vocabulary.seams import Stage

# A reply that could not even say this much is not worth asking for.
SHORTEST_REPLY = 16
# Where several share what is left, none is given less than this, and twice the longest reply so far: others wait.
FAIR_REPLY = 1_024


class Aside(msgspec.Struct, frozen=True):
    """What one call may take at most; of that `sent` tokens are its request. `since` is the record it begins after."""

    tokens: int = 0
    cost: float = 0.0
    sent: int = 0
    since: int = 0


class Rates(msgspec.Struct, frozen=True):
    """What a token costs in the request and in the reply; None where nobody knows."""

    sent: float | None = None
    said: float | None = None


class Left(msgspec.Struct, frozen=True):
    """What of a limit is left for a reply, in tokens, and the limit's name."""

    tokens: float
    limit: str


class Budget:
    """One for a whole tree of sessions; None is no limit. The first that joins is the root, where all usage is told."""

    def __init__(self, tokens: int | None = None, cost: float | None = None, calls: int | None = None) -> None:
        self._most_tokens = tokens
        self._most_cost = cost
        self._most_calls = calls
        self._root: View | None = None
        self._turns: set[int] = set()
        self._calls = 0
        self._aside: dict[int, Aside] = {}
        self._uncounted: list[Aside] = []
        self._beside: list[Aside] = []
        self._freed = asyncio.Event()

    def join(self, view: View) -> None:
        """A turn begins, the root's or that of a child."""
        if self._root is None:
            self._root, self._calls = view, 0
            self._aside.clear()
            self._uncounted.clear()
        self._turns.add(id(view.stage))

    def leave(self, stage: Stage) -> None:
        """The turn on this stage is over, however it ended."""
        self._free(stage)
        self._turns.discard(id(stage))
        if self._root is not None and self._root.stage is stage:
            self._root = None

    async def reserve(self, view: View) -> str:
        """Set aside what the next call may take at most and hold its reply to it, or name the limit it would pass.

        What calls of others hold may be free again soon: where that would do, it is waited for.
        """
        self._free(view.stage)
        while reached := self._reached(view, self._held()):
            if not self._aside or self._reached(view, list(self._uncounted)):
                return reached
            self._freed.clear()
            await self._freed.wait()
        root = self._root or view
        self._tell_unpriced(root, view.model.name if view.price is None else "")
        self._set_aside(view)
        return ""

    @contextmanager
    def beside(self, view: View, tokens: int) -> Iterator[bool]:
        """Set a little aside for a call beside the turn, while that lasts; False where so much is not left."""
        rates, root = self._rates(view), self._root or view
        aside = Aside(tokens, tokens * max(rates.sent or 0.0, rates.said or 0.0))
        held = [*self._held(), aside]
        fits = self._tokens(root, held) <= (self._most_tokens or math.inf)
        fits = fits and self._cost(root, held) <= (self._most_cost or math.inf)
        self._beside += [aside] if fits else []
        try:
            yield fits
        finally:
            self._beside = [one for one in self._beside if one is not aside]

    def answered(self) -> None:
        """A step has its reply."""
        self._calls += 1

    def cut_short(self, view: View) -> str:
        """The limit that a reply was cut for, and what is used of it."""
        root = self._root or view
        held = self._held()
        limit = self._nearest(view, held).limit
        cost, tokens = self._cost(root, held), self._tokens(root, held)
        used = f"${cost:.2g} is used" if limit.startswith("$") else f"{tokens:,} are used"
        return f"{limit}: about {used}, and the reply was cut"

    def _set_aside(self, view: View) -> None:
        room, sent, most = self._nearest(view, self._held()).tokens, view.tokens, view.longest_reply
        rates, reply = self._rates(view), int(min(room, most, self._share(view, room)))
        cost = sent * (rates.sent or 0.0) + reply * (rates.said or 0.0)
        self._aside[id(view.stage)] = Aside(sent + reply, cost, sent, len(view.stage.records()))
        bounds = Room(view.meter.bytes(room)) if math.isfinite(room) else None
        bounds = Room(view.meter.bytes(reply), reply) if reply < most else bounds
        limited = self._most_tokens is not None or self._most_cost is not None
        view.model.bind(bounds, lambda size: self._settle(view, size), limited=limited)

    def _share(self, view: View, room: float) -> float:
        """What of the rest one reply may take, while other turns are about to ask as well."""
        idle = {id(self._root.stage)} if self._root and self._root.stage is not view.stage else set()
        asking = self._turns - self._aside.keys() - idle
        return max(room / max(len(asking), 1), FAIR_REPLY, 2 * self._longest(view))

    def _longest(self, view: View) -> int:
        return max((usage.tokens_out for usage in (self._root or view).usage()), default=0)

    def _settle(self, view: View, size: int) -> None:
        """A reply of so many bytes is over, and what it took is told by then, by the server or as we estimate it."""
        aside = self._free(view.stage)
        self._tell_unpriced(self._root or view)
        if aside is None:
            return
        counts = [usage for usage in view.usage(aside.since) if not usage.child_id]
        sent = _lacking(aside.sent, sum(usage.tokens_in for usage in counts))
        said = _lacking(view.meter.worth(size), sum(usage.tokens_out for usage in counts))
        if sent or said:
            rates = self._rates(view)
            self._uncounted.append(Aside(sent + said, sent * (rates.sent or 0.0) + said * (rates.said or 0.0)))

    def _free(self, stage: Stage) -> Aside | None:
        aside = self._aside.pop(id(stage), None)
        self._freed.set()
        return aside

    def _held(self) -> list[Aside]:
        return [*self._aside.values(), *self._uncounted, *self._beside]

    def _tell_unpriced(self, root: View, next_one: str = "") -> None:
        """A limit that cannot hold is told once for each model: before it is asked if that is known, else after."""
        if self._most_cost is None:
            return
        asked = (usage.model for usage in root.usage() if usage.cost is None and _counted(usage))
        for model in dict.fromkeys(filter(None, (*asked, next_one))):
            told = f"the price of {model} is not known, so the limit of ${self._most_cost:g} cannot hold"
            _say_once(root, told)

    def _reached(self, view: View, held: list[Aside]) -> str:
        """The limit that the next call would pass, if its reply is as long as the longest so far."""
        if self._most_calls is not None and self._calls + len(self._aside) >= self._most_calls:
            return many(self._most_calls, "step")
        nearest = self._nearest(view, held)
        return nearest.limit if nearest.tokens < max(self._longest(view), SHORTEST_REPLY) else ""

    def _nearest(self, view: View, held: list[Aside]) -> Left:
        """The limit that leaves least for the next reply."""
        root, rates, left = self._root or view, self._rates(view), [Left(math.inf, "")]
        if self._most_tokens is not None:
            tokens = self._most_tokens - self._tokens(root, held) - view.tokens
            left.append(Left(tokens, many(self._most_tokens, "token")))
        if self._most_cost is not None:
            cost = self._most_cost - self._cost(root, held) - view.tokens * (rates.sent or 0.0)
            tokens_paid = -math.inf if cost < 0 else cost / rates.said if rates.said else math.inf
            left.append(Left(tokens_paid, f"${self._most_cost:g}"))
        return min(left, key=lambda one: one.tokens)

    def _tokens(self, root: View, held: list[Aside]) -> int:
        return sum(usage.tokens_in + usage.tokens_out for usage in root.usage()) + sum(one.tokens for one in held)

    def _cost(self, root: View, held: list[Aside]) -> float:
        return sum(usage.cost or 0.0 for usage in root.usage()) + sum(one.cost for one in held)

    def _rates(self, view: View) -> Rates:
        """By the price, as if nothing came from a cache; without one, what the model's tokens have cost so far."""
        price = view.price
        if isinstance(price, Price):
            return Rates(price.of(Usage(1)).cost, price.of(Usage(0, 1)).cost)
        rate = _rate((self._root or view).usage(), view.model.name)
        return Rates(rate, rate)


def _counted(usage: UsageReported) -> bool:
    return bool(usage.tokens_in + usage.tokens_out)


def _lacking(expected: int, counted: int) -> int:
    """What is missing in a count that no tokenizer comes to; any other is believed."""
    return expected - counted if counted < expected * BYTES_PER_TOKEN / PLAUSIBLE[1] else 0


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
