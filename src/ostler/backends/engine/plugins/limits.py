"""Plugin that ends a turn at its step, token, cost or time limit."""

import msgspec

from ostler.backends.engine.plugins.budget import Budget, plural
from ostler.backends.engine.plugins.plugin import LoopPlugin, TurnView
from ostler.backends.engine.plugins.reply_limit import RECOUNT
from ostler.core.errors import BackendError
from ostler.core.events import TurnEnded
from ostler.core.message import Message


class TurnLimits(msgspec.Struct, frozen=True):
    """The limits of one turn; None means unlimited. Cost is in US dollars, time in seconds."""

    steps: int = 128
    tokens: int | None = None
    cost: float | None = None
    time: float | None = None


class LimitPlugin(LoopPlugin):
    """Counts the turn's steps, and reserves budget before each model call."""

    def __init__(self, steps: int, budget: Budget) -> None:
        self._steps = steps
        self._budget = budget
        self._counted_message: Message | None = None

    async def before_step(self, view: TurnView) -> TurnEnded | None:
        if view.stats.steps >= self._steps:
            return _limit_end(plural(self._steps, "step"))
        limit = await self._budget.reserve(view)
        return _limit_end(limit) if limit else None

    async def after_failure(self, view: TurnView, error: BackendError) -> bool:
        """Query again after a fallback, with a new reservation."""
        return error.fault.code == RECOUNT

    async def after_step(self, view: TurnView, message: Message) -> TurnEnded | None:
        if message is not self._counted_message:  # the plugin is in the chain twice, around those that query the model
            self._counted_message = message
            self._budget.count_reply()
        return _limit_end(self._budget.describe_limit(view)) if view.model.hit_limit else None


def _limit_end(limit: str) -> TurnEnded:
    return TurnEnded("", "limit", limit=limit)
