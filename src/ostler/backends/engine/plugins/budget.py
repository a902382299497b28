"""What a turn and the children it starts may use together: set aside before each model call, counted after it."""

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
from ostler.models.model_settings import TokenPrice
from ostler.models.model_types import Usage

# A reply that could not even say this much is not worth asking for.
MIN_REPLY_TOKENS = 16
# Where several share what is left, none is given less than this, and twice the longest reply so far: others wait.
FAIR_REPLY_TOKENS = 1_024


class Reservation(msgspec.Struct, frozen=True):
    """What one call may take at most; of that `sent` tokens are its request. `since` is the record it begins after."""

    tokens: int = 0
    cost: float = 0.0
    request_tokens: int = 0
    start_index: int = 0


class TokenRates(msgspec.Struct, frozen=True):
    """What a token costs in the request and in the reply; None where nobody knows."""

    input_rate: float | None = None
    output_rate: float | None = None


class Remaining(msgspec.Struct, frozen=True):
    """What of a limit is left for a reply, in tokens, and the limit's name."""

    tokens: float
    limit: str


class Budget:
    """One for a whole tree of sessions; None is no limit. The first that joins is the root, where all usage is told."""

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
        """A turn begins, the root's or that of a child."""
        if self._root is None:
            self._root, self._calls = view, 0
            self._reservations.clear()
            self._uncounted.clear()
        self._turns.add(id(view.context))

    def leave(self, context: BackendContext) -> None:
        """The turn on this stage is over, however it ended."""
        self._drop_reservation(context)
        self._turns.discard(id(context))
        if self._root is not None and self._root.context is context:
            self._root = None

    async def reserve(self, view: TurnView) -> str:
        """Set aside what the next call may take at most and hold its reply to it, or name the limit it would pass.

        What calls of others hold may be free again soon: where that would do, it is waited for.
        """
        self._drop_reservation(view.context)
        while reached := self._limit_reached(view, self._all_reservations()):
            if not self._reservations or self._limit_reached(view, list(self._uncounted)):
                return reached
            self._freed.clear()
            await self._freed.wait()
        root = self._root or view
        self._warn_unpriced(root, view.model.name if view.price is None else "")
        self._add_reservation(view)
        return ""

    @contextmanager
    def reserve_background(self, view: TurnView, tokens: int) -> Iterator[bool]:
        """Set a little aside for a call beside the turn, while that lasts; False where so much is not left."""
        rates, root = self._rates(view), self._root or view
        aside = Reservation(tokens, tokens * max(rates.input_rate or 0.0, rates.output_rate or 0.0))
        held = [*self._all_reservations(), aside]
        fits = self._used_tokens(root, held) <= (self._max_tokens or math.inf)
        fits = fits and self._used_cost(root, held) <= (self._max_cost or math.inf)
        self._background += [aside] if fits else []
        try:
            yield fits
        finally:
            self._background = [one for one in self._background if one is not aside]

    def count_reply(self) -> None:
        """A step has its reply."""
        self._calls += 1

    def describe_limit(self, view: TurnView) -> str:
        """The limit that a reply was cut for, and what is used of it."""
        root = self._root or view
        held = self._all_reservations()
        limit = self._nearest_limit(view, held).limit
        cost, tokens = self._used_cost(root, held), self._used_tokens(root, held)
        used = f"${cost:.2g} is used" if limit.startswith("$") else f"{tokens:,} are used"
        return f"{limit}: about {used}, and the reply was cut"

    def _add_reservation(self, view: TurnView) -> None:
        room, sent, most = (
            self._nearest_limit(view, self._all_reservations()).tokens,
            view.tokens,
            view.max_reply_tokens,
        )
        rates, reply = self._rates(view), int(min(room, most, self._share(view, room)))
        cost = sent * (rates.input_rate or 0.0) + reply * (rates.output_rate or 0.0)
        self._reservations[id(view.context)] = Reservation(sent + reply, cost, sent, len(view.context.records()))
        bounds = ReplyLimit(view.estimator.bytes_for(room)) if math.isfinite(room) else None
        bounds = ReplyLimit(view.estimator.bytes_for(reply), reply) if reply < most else bounds
        limited = self._max_tokens is not None or self._max_cost is not None
        view.model.set_limit(bounds, lambda size: self._release(view, size), is_limited=limited)

    def _share(self, view: TurnView, room: float) -> float:
        """What of the rest one reply may take, while other turns are about to ask as well."""
        idle = {id(self._root.context)} if self._root and self._root.context is not view.context else set()
        asking = self._turns - self._reservations.keys() - idle
        return max(room / max(len(asking), 1), FAIR_REPLY_TOKENS, 2 * self._longest_reply(view))

    def _longest_reply(self, view: TurnView) -> int:
        return max((usage.tokens_out for usage in (self._root or view).usage()), default=0)

    def _release(self, view: TurnView, size: int) -> None:
        """A reply of so many bytes is over, and what it took is told by then, by the server or as we estimate it."""
        aside = self._drop_reservation(view.context)
        self._warn_unpriced(self._root or view)
        if aside is None:
            return
        counts = [usage for usage in view.usage(aside.start_index) if not usage.child_id]
        sent = _missing_tokens(aside.request_tokens, sum(usage.tokens_in for usage in counts))
        said = _missing_tokens(view.estimator.tokens_for(size), sum(usage.tokens_out for usage in counts))
        if sent or said:
            rates = self._rates(view)
            self._uncounted.append(
                Reservation(sent + said, sent * (rates.input_rate or 0.0) + said * (rates.output_rate or 0.0))
            )

    def _drop_reservation(self, context: BackendContext) -> Reservation | None:
        aside = self._reservations.pop(id(context), None)
        self._freed.set()
        return aside

    def _all_reservations(self) -> list[Reservation]:
        return [*self._reservations.values(), *self._uncounted, *self._background]

    def _warn_unpriced(self, root: TurnView, next_model: str = "") -> None:
        """A limit that cannot hold is told once for each model: before it is asked if that is known, else after."""
        if self._max_cost is None:
            return
        asked = (usage.model for usage in root.usage() if usage.cost is None and _has_tokens(usage))
        for model in dict.fromkeys(filter(None, (*asked, next_model))):
            told = f"the price of {model} is not known, so the limit of ${self._max_cost:g} cannot hold"
            _warn_once(root, told)

    def _limit_reached(self, view: TurnView, reservations: list[Reservation]) -> str:
        """The limit that the next call would pass, if its reply is as long as the longest so far."""
        if self._max_calls is not None and self._calls + len(self._reservations) >= self._max_calls:
            return plural(self._max_calls, "step")
        nearest = self._nearest_limit(view, reservations)
        return nearest.limit if nearest.tokens < max(self._longest_reply(view), MIN_REPLY_TOKENS) else ""

    def _nearest_limit(self, view: TurnView, reservations: list[Reservation]) -> Remaining:
        """The limit that leaves least for the next reply."""
        root, rates, left = self._root or view, self._rates(view), [Remaining(math.inf, "")]
        if self._max_tokens is not None:
            tokens = self._max_tokens - self._used_tokens(root, reservations) - view.tokens
            left.append(Remaining(tokens, plural(self._max_tokens, "token")))
        if self._max_cost is not None:
            cost = self._max_cost - self._used_cost(root, reservations) - view.tokens * (rates.input_rate or 0.0)
            tokens_paid = -math.inf if cost < 0 else cost / rates.output_rate if rates.output_rate else math.inf
            left.append(Remaining(tokens_paid, f"${self._max_cost:g}"))
        return min(left, key=lambda one: one.tokens)

    def _used_tokens(self, root: TurnView, reservations: list[Reservation]) -> int:
        return sum(usage.tokens_in + usage.tokens_out for usage in root.usage()) + sum(
            one.tokens for one in reservations
        )

    def _used_cost(self, root: TurnView, reservations: list[Reservation]) -> float:
        return sum(usage.cost or 0.0 for usage in root.usage()) + sum(one.cost for one in reservations)

    def _rates(self, view: TurnView) -> TokenRates:
        """By the price, as if nothing came from a cache; without one, what the model's tokens have cost so far."""
        price = view.price
        if isinstance(price, TokenPrice):
            return TokenRates(price.add_cost(Usage(1)).cost, price.add_cost(Usage(0, 1)).cost)
        rate = _average_rate((self._root or view).usage(), view.model.name)
        return TokenRates(rate, rate)


def _has_tokens(usage: UsageReported) -> bool:
    return bool(usage.tokens_in + usage.tokens_out)


def _missing_tokens(expected: int, counted: int) -> int:
    """What is missing in a count that no tokenizer comes to; any other is believed."""
    return expected - counted if counted < expected * BYTES_PER_TOKEN / PLAUSIBLE_RATIOS[1] else 0


def _average_rate(reports: Iterable[UsageReported], model: str) -> float | None:
    """What a token of this model has cost so far, as the server's cache has it; unknown before its first call."""
    own = [usage for usage in reports if usage.cost is not None and usage.model == model]
    tokens = sum(usage.tokens_in + usage.tokens_out for usage in own)
    return sum(usage.cost or 0.0 for usage in own) / tokens if tokens else None


def _warn_once(view: TurnView, text: str) -> None:
    records = view.context.records()
    notice = Notice("warning", text)
    if not any(records[at].event == notice for at in range(len(records)) if records.type_at(at) == "notice"):
        view.context.emit(notice)


def plural(count: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
