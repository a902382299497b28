"""The guest that keeps every request within the model's window: old results go first, then a summary is made."""

import msgspec

from ostler.backends.engine.guests.compact import compact
from ostler.backends.engine.guests.guest import Guest, View
from ostler.backends.engine.guests.unseen import share_of, unseen
from ostler.backends.engine.history import Entry, pruned
from ostler.backends.engine.measure import size_of
from ostler.models.words import ModelSaid, ToolsSaid
from ostler.vocabulary.errors import BackendError
from ostler.vocabulary.events import Pruned, TurnEnded, UsageReported
from ostler.vocabulary.message import Message

# Of the window, what is left free for the reply.
REPLY_SHARE, MOST_REPLY = 0.2, 20_000
# The newest results stay whole up to this share of the room.
PROTECTED_SHARE, MOST_PROTECTED = 0.3, 40_000
# Pruning that frees less than this share of the room is not worth a new prefix.
WORTH = 0.2
# How full the room may be afterwards; the rest is for what comes next.
AFTERWARDS = 0.7
SMALLEST_ROOM = 0.1
MOST_RETRIES = 2


class Shrinking(msgspec.Struct, frozen=True):
    """Whether it happens by itself, whether results go first, and how full the window is when it happens."""

    auto: bool = True
    prune: bool = True
    threshold: float = 0.8


class ShrinkGuest(Guest):
    """Lives as long as the session: what a server refused once is remembered as its window."""

    def __init__(self, how: Shrinking) -> None:
        self._how = how
        self._wanted = False
        self._refused: dict[str, int] = {}
        self._retries = 0

    def want(self) -> None:
        """Shorten before the next step, however short it is."""
        self._wanted = True

    async def shorten(self, view: View) -> bool:
        """Shorten now; False when there is nothing to shorten."""
        if not any(isinstance(entry.said, ModelSaid) for entry in view.history.entries):
            return False
        room = self._room(view)
        self._cut_unseen(view, room * PROTECTED_SHARE)
        return await compact(view, room)

    async def before_step(self, view: View) -> TurnEnded | None:
        if self._wanted:
            self._wanted = False
            await self.shorten(view)
        elif self._how.auto and view.tokens > self._cap(view):
            await self._shrink(view)
        return None

    async def after_failure(self, view: View, error: BackendError) -> bool:
        """A server knows its window better than we do."""
        if error.fault.code != "context_length" or not self._how.auto or self._retries >= MOST_RETRIES:
            return False
        self._retries += 1
        self._refused[view.model.name] = int(view.tokens * 0.6)
        before = view.size
        await self._shrink(view)
        return view.size < before

    async def after_step(self, view: View, message: Message) -> TurnEnded | None:
        self._retries = 0
        counted = [usage for usage in view.usage(view.asked_at) if usage.context_limit]
        if counted:
            view.meter.learn(view.sent, counted[-1].tokens_in)
        else:
            used, limit = view.tokens, view.model.context_limit
            view.stage.emit(UsageReported(view.model.name, context_used=used, context_limit=limit))
        return None

    def _cap(self, view: View) -> float:
        """The most tokens that a request may have."""
        window = view.model.context_limit
        own = min(window * self._how.threshold, window - min(window * REPLY_SHARE, MOST_REPLY))
        return min(own, self._refused.get(view.model.name, own))

    def _room(self, view: View) -> float:
        """What is left of it beside the system prompt and the tools."""
        cap, fixed = self._cap(view), view.meter.tokens(view.fixed)
        if cap - fixed < cap * SMALLEST_ROOM:
            raise BackendError(
                f"the system prompt and the tools take about {fixed} of the {cap:.0f} tokens that a request to "
                f"{view.model.name} may have",
                code="context_length",
                hint="choose a model with a larger window, or fewer tools and shorter rules",
            )
        return cap - fixed

    async def _shrink(self, view: View) -> None:
        room = self._room(view)
        if self._how.prune:
            self._prune_old(view, room)
            self._make_unseen_fit(view, room)
        if self._used(view) > room * AFTERWARDS:
            await compact(view, room)
            self._make_unseen_fit(view, room)
        if self._used(view) > room:
            view.stage.emit(Pruned(_next_seq(view), 400))
            await compact(view, room * SMALLEST_ROOM * 5, tight=True)

    def _used(self, view: View) -> float:
        return view.history.size / view.meter.ratio

    def _prune_old(self, view: View, room: float) -> None:
        protected = view.meter.bytes(min(room * PROTECTED_SHARE, MOST_PROTECTED))
        saved, upto_seq, entries = 0, 0, view.history.entries
        fresh = unseen(entries)
        for entry in reversed(entries):
            if not isinstance(entry.said, ToolsSaid):
                continue
            protected -= entry.size
            if protected < 0 and entry is not fresh:
                upto_seq = upto_seq or entry.seq + 1
                saved += entry.size - _pruned_size(entry, 0)
        if saved > view.meter.bytes(room * WORTH):
            view.stage.emit(Pruned(upto_seq))

    def _make_unseen_fit(self, view: View, room: float) -> None:
        """Into what the rest leaves free; a share it gets at least, for then the rest becomes a summary."""
        if self._used(view) <= room * AFTERWARDS:
            return
        fresh = unseen(view.history.entries)
        others = self._used(view) - (fresh.size / view.meter.ratio if fresh else 0)
        self._cut_unseen(view, max(room * PROTECTED_SHARE, room * AFTERWARDS - others))

    def _cut_unseen(self, view: View, tokens: float) -> None:
        """Results that the model has not seen yet keep their heads and tails, however large they are."""
        fresh, most = unseen(view.history.entries), view.meter.bytes(tokens)
        if fresh and fresh.size > most and isinstance(fresh.said, ToolsSaid):
            view.stage.emit(Pruned(_next_seq(view), share_of(fresh.said.results, most)))


def _next_seq(view: View) -> int:
    records = view.stage.records()
    return records[len(records) - 1].seq + 1


def _pruned_size(entry: Entry, chars: int) -> int:
    said = entry.said
    assert isinstance(said, ToolsSaid)
    return size_of(ToolsSaid(tuple(pruned(result, chars) for result in said.results)))
