"""Shared token and cost budget of a turn and its child sessions: reserved before each call, settled after it."""

import asyncio
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import msgspec

from ostler.backends.engine.plugins.plugin import TurnView
from ostler.backends.engine.plugins.reply_limit import ReplyLimit
from ostler.backends.engine.token_estimate import BYTES_PER_TOKEN, PLAUSIBLE_RATIOS
from ostler.core.events import Notice, UsageReported
from ostler.core.protocols import BackendContext
from ostler.models.model_types import TokenPrice, Usage

# If fewer tokens are left for a reply, the model is not queried.
MIN_REPLY_TOKENS = 16
# Minimum for each of several concurrent turns (or twice the longest reply so far); the others wait.
FAIR_REPLY_TOKENS = 1_024


class Reservation(msgspec.Struct, frozen=True):
    """The maximum tokens of one model call, of which `request_tokens` are for its request.

    Its records begin at `start_index`.
    """

    tokens: int = 0
    cost: float = 0.0
    request_tokens: int = 0
    start_index: int = 0


class TokenRates(msgspec.Struct, frozen=True):
    """The price of a token in requests and replies; None if unknown."""

    input_rate: float | None = None
    output_rate: float | None = None


class Remaining(msgspec.Struct, frozen=True):
    """The tokens that a limit still allows for a reply, and the limit's description."""

    tokens: float
    limit: str


class Budget:
    """The budget of a tree of sessions; None means unlimited.

    The first turn that joins is the root; its records contain the usage of all turns.
    """

    def __init__(self, tokens: int | None = None, cost: float | None = None, calls: int | None = None) -> None:
        self._max_tokens = tokens
        self._max_cost = cost
        self._max_calls = calls
        self._root: TurnView | None = None
        self._turns: set[int] = set()
        self._calls = 0
        self._reservations: dict[int, Reservation] = {}
        self._uncounted: list[Reservation] = []
        self._background: list[Reservation] = []
        self._freed = asyncio.Event()

    def join(self, view: TurnView) -> None:
        """Register a turn, of the root or a child."""
        if self._root is None:
            self._root, self._calls = view, 0
            self._reservations.clear()
            self._uncounted.clear()
        self._turns.add(id(view.context))

    def leave(self, context: BackendContext) -> None:
        """Unregister the turn of this context."""
        self._drop_reservation(context)
        self._turns.discard(id(context))
        if self._root is not None and self._root.context is context:
            self._root = None

    async def reserve(self, view: TurnView) -> str:
        """Reserve budget for the next call and limit its reply. Return the limit it would exceed, or an empty string.

        Waits if other calls' reservations must be released first.
        """
        self._drop_reservation(view.context)
        while limit := self._limit_reached(view, self._all_reservations()):
            if not self._reservations or self._limit_reached(view, list(self._uncounted)):
                return limit
            self._freed.clear()
            await self._freed.wait()
        root = self._root or view
        self._warn_unpriced(root, view.model.name if view.model.price is None else "")
        self._add_reservation(view)
        return ""

    @contextmanager
    def reserve_background(self, view: TurnView, tokens: int) -> Iterator[bool]:
        """Reserve tokens for a background call during the block. Yield False if too little is left."""
        rates, root = self._rates(view), self._root or view
        reservation = Reservation(tokens, tokens * max(rates.input_rate or 0.0, rates.output_rate or 0.0))
        reservations = [*self._all_reservations(), reservation]
        fits = self._used_tokens(root, reservations) <= (self._max_tokens or math.inf)
        fits = fits and self._used_cost(root, reservations) <= (self._max_cost or math.inf)
        self._background += [reservation] if fits else []
        try:
            yield fits
        finally:
            self._background = [other for other in self._background if other is not reservation]

    def count_reply(self) -> None:
        """Count a step that has its reply."""
        self._calls += 1

    def describe_limit(self, view: TurnView) -> str:
        """Describe the limit that truncated a reply, and how much of it is used."""
        root = self._root or view
        reservations = self._all_reservations()
        limit = self._nearest_limit(view, reservations).limit
        cost, tokens = self._used_cost(root, reservations), self._used_tokens(root, reservations)
        used = f"${cost:.2g} is used" if limit.startswith("$") else f"{tokens:,} are used"
        return f"the reply was truncated at {limit}; about {used}"

    def _add_reservation(self, view: TurnView) -> None:
        room, request_tokens, max_reply = (
            self._nearest_limit(view, self._all_reservations()).tokens,
            view.tokens,
            view.max_reply_tokens,
        )
        rates, reply = self._rates(view), int(min(room, max_reply, self._share(view, room)))
        cost = request_tokens * (rates.input_rate or 0.0) + reply * (rates.output_rate or 0.0)
        self._reservations[id(view.context)] = Reservation(
            request_tokens + reply, cost, request_tokens, len(view.context.records())
        )
        reply_limit = ReplyLimit(view.estimator.bytes_for(room)) if math.isfinite(room) else None
        reply_limit = ReplyLimit(view.estimator.bytes_for(reply), reply) if reply < max_reply else reply_limit
        is_limited = self._max_tokens is not None or self._max_cost is not None
        view.model.set_limit(reply_limit, lambda size: self._release(view, size), is_limited=is_limited)

    def _share(self, view: TurnView, room: float) -> float:
        """Return how much of the rest one reply may use while other turns are about to query as well."""
        idle = {id(self._root.context)} if self._root and self._root.context is not view.context else set()
        waiting_calls = self._turns - self._reservations.keys() - idle
        return max(room / max(len(waiting_calls), 1), FAIR_REPLY_TOKENS, 2 * self._max_reply_seen(view))

    def _max_reply_seen(self, view: TurnView) -> int:
        return max((usage.tokens_out for usage in (self._root or view).stats.usage()), default=0)

    def _release(self, view: TurnView, size: int) -> None:
        """Release a reservation after a reply of `size` bytes; usage that the server did not report is estimated."""
        reservation = self._drop_reservation(view.context)
        self._warn_unpriced(self._root or view)
        if reservation is None:
            return
        reports = [usage for usage in view.stats.usage(reservation.start_index) if not usage.child_id]
        missing_input = _missing_tokens(reservation.request_tokens, sum(usage.tokens_in for usage in reports))
        missing_output = _missing_tokens(view.estimator.tokens_for(size), sum(usage.tokens_out for usage in reports))
        if missing_input or missing_output:
            rates = self._rates(view)
            self._uncounted.append(
                Reservation(
                    missing_input + missing_output,
                    missing_input * (rates.input_rate or 0.0) + missing_output * (rates.output_rate or 0.0),
                )
            )

    def _drop_reservation(self, context: BackendContext) -> Reservation | None:
        reservation = self._reservations.pop(id(context), None)
        self._freed.set()
        return reservation

    def _all_reservations(self) -> list[Reservation]:
        return [*self._reservations.values(), *self._uncounted, *self._background]

    def _warn_unpriced(self, root: TurnView, next_model: str = "") -> None:
        """Warn once per model that the cost limit cannot be enforced, if possible before its first call."""
        if self._max_cost is None:
            return
        unpriced = (usage.model for usage in root.stats.usage() if usage.cost is None and _has_tokens(usage))
        for model in dict.fromkeys(filter(None, (*unpriced, next_model))):
            limit = f"the cost limit of ${self._max_cost:g}"
            _warn_once(root, f"set a price for {model} in its profile: without it {limit} cannot be enforced")

    def _limit_reached(self, view: TurnView, reservations: list[Reservation]) -> str:
        """Return the limit that the next call would exceed if its reply is as long as the longest so far."""
        if self._max_calls is not None and self._calls + len(self._reservations) >= self._max_calls:
            return plural(self._max_calls, "step")
        nearest = self._nearest_limit(view, reservations)
        return nearest.limit if nearest.tokens < max(self._max_reply_seen(view), MIN_REPLY_TOKENS) else ""

    def _nearest_limit(self, view: TurnView, reservations: list[Reservation]) -> Remaining:
        """Return the limit that leaves the least for the next reply."""
        root, rates, candidates = self._root or view, self._rates(view), [Remaining(math.inf, "")]
        if self._max_tokens is not None:
            tokens = self._max_tokens - self._used_tokens(root, reservations) - view.tokens
            candidates.append(Remaining(tokens, plural(self._max_tokens, "token")))
        if self._max_cost is not None:
            cost = self._max_cost - self._used_cost(root, reservations) - view.tokens * (rates.input_rate or 0.0)
            tokens_paid = -math.inf if cost < 0 else cost / rates.output_rate if rates.output_rate else math.inf
            candidates.append(Remaining(tokens_paid, f"${self._max_cost:g}"))
        return min(candidates, key=lambda remaining: remaining.tokens)

    def _used_tokens(self, root: TurnView, reservations: list[Reservation]) -> int:
        return sum(usage.tokens_in + usage.tokens_out for usage in root.stats.usage()) + sum(
            reservation.tokens for reservation in reservations
        )

    def _used_cost(self, root: TurnView, reservations: list[Reservation]) -> float:
        return sum(usage.cost or 0.0 for usage in root.stats.usage()) + sum(
            reservation.cost for reservation in reservations
        )

    def _rates(self, view: TurnView) -> TokenRates:
        """Return the rates from the price, ignoring caches, or the average cost of the model's tokens so far."""
        price = view.model.price
        if isinstance(price, TokenPrice):
            return TokenRates(price.add_cost(Usage(1)).cost, price.add_cost(Usage(0, 1)).cost)
        rate = _average_rate((self._root or view).stats.usage(), view.model.name)
        return TokenRates(rate, rate)


def _has_tokens(usage: UsageReported) -> bool:
    return bool(usage.tokens_in + usage.tokens_out)


def _missing_tokens(expected: int, counted: int) -> int:
    """Return the tokens missing from an implausibly low report, else 0."""
    return expected - counted if counted < expected * BYTES_PER_TOKEN / PLAUSIBLE_RATIOS[1] else 0


def _average_rate(reports: Iterable[UsageReported], model: str) -> float | None:
    """Return the average cost of this model's tokens so far, or None before its first call."""
    priced = [usage for usage in reports if usage.cost is not None and usage.model == model]
    tokens = sum(usage.tokens_in + usage.tokens_out for usage in priced)
    return sum(usage.cost or 0.0 for usage in priced) / tokens if tokens else None


def _warn_once(view: TurnView, text: str) -> None:
    records = view.context.records()
    notice = Notice("warning", text)
    if not any(records[index].event == notice for index in range(len(records)) if records.type_at(index) == "notice"):
        view.context.emit(notice)


def plural(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
