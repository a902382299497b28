"""The guest that ends a turn before it uses more than it may."""

import msgspec

from ostler.backends.engine.guests.bounded import ANEW
from ostler.backends.engine.guests.budget import Budget, many
from ostler.backends.engine.guests.guest import Guest, View
from ostler.vocabulary.errors import BackendError
from ostler.vocabulary.events import TurnEnded
from ostler.vocabulary.message import Message


class Limits(msgspec.Struct, frozen=True):
    """How far one turn may go; None is no limit. Cost is in US dollars, time in seconds."""

    steps: int = 128
    tokens: int | None = None
    cost: float | None = None
    time: float | None = None


class LimitGuest(Guest):
    """Counts the turn's own steps, and asks the budget of the whole tree before each model call."""

    def __init__(self, steps: int, budget: Budget) -> None:
        self._steps = steps
        self._budget = budget
        self._counted: Message | None = None

    async def before_step(self, view: View) -> TurnEnded | None:
        if view.tally.steps >= self._steps:
            return _reached(many(self._steps, "step"))
        limit = await self._budget.reserve(view)
        return _reached(limit) if limit else None

    async def after_failure(self, view: View, error: BackendError) -> bool:
        """Before the next try it is asked again what is left."""
        return error.fault.code == ANEW

    async def after_step(self, view: View, message: Message) -> TurnEnded | None:
        if message is not self._counted:  # it stands twice among the guests, before and behind whoever asks a model too
            self._counted = message
            self._budget.answered()
        return _reached(self._budget.cut_short(view)) if view.model.cut else None


def _reached(limit: str) -> TurnEnded:
    return TurnEnded("", "limit", limit=limit)
