"""The guest that keeps every request within the model's window: old results go first, then a summary is made."""

import msgspec

from ostler.backends.engine.history import HistoryEntry, prune_result
from ostler.backends.engine.plugins.compaction import compact
from ostler.backends.engine.plugins.plugin import LoopPlugin, TurnView
from ostler.backends.engine.plugins.unseen_results import chars_per_result, find_unseen
from ostler.backends.engine.token_estimate import message_size
from ostler.core.errors import BackendError
from ostler.core.events import Pruned, TurnEnded, UsageReported
from ostler.core.message import Message
from ostler.models.model_types import AssistantMessage, ToolResultsMessage

# Of the window, what is left free for the reply.
REPLY_SHARE, MAX_REPLY_TOKENS = 0.2, 20_000
# The newest results stay whole up to this share of the room.
PROTECTED_SHARE, MAX_PROTECTED_TOKENS = 0.3, 40_000
# Pruning that frees less than this share of the room is not worth a new prefix.
MIN_PRUNE_SHARE = 0.2
# How full the room may be afterwards; the rest is for what comes next.
TARGET_SHARE = 0.7
MIN_ROOM_SHARE = 0.1
MAX_RETRIES = 2


class CompactionSettings(msgspec.Struct, frozen=True):
    """Whether it happens by itself, whether results go first, and how full the window is when it happens."""

    auto: bool = True
    prune: bool = True
    threshold: float = 0.8


class ContextWindowPlugin(LoopPlugin):
    """Lives as long as the session: what a server refused once is remembered as its window."""

    def __init__(self, settings: CompactionSettings) -> None:
        self._settings = settings
        self._requested = False
        self._refused_sizes: dict[str, int] = {}
        self._retries = 0

    def request_compaction(self) -> None:
        """Shorten before the next step, however short it is."""
        self._requested = True

    async def compact_now(self, view: TurnView) -> bool:
        """Shorten now; False when there is nothing to shorten."""
        if not any(isinstance(entry.message, AssistantMessage) for entry in view.history.entries):
            return False
        room = self._room(view)
        self._truncate_unseen(view, room * PROTECTED_SHARE)
        return await compact(view, room)

    async def before_step(self, view: TurnView) -> TurnEnded | None:
        if self._requested:
            self._requested = False
            await self.compact_now(view)
        elif self._settings.auto and view.tokens > self._max_tokens(view):
            await self._make_fit(view)
        return None

    async def after_failure(self, view: TurnView, error: BackendError) -> bool:
        """A server knows its window better than we do."""
        if error.fault.code != "context_length" or not self._settings.auto or self._retries >= MAX_RETRIES:
            return False
        self._retries += 1
        self._refused_sizes[view.model.name] = int(view.tokens * 0.6)
        before = view.size
        await self._make_fit(view)
        return view.size < before

    async def after_step(self, view: TurnView, message: Message) -> TurnEnded | None:
        self._retries = 0
        counted = [usage for usage in view.usage(view.request_index) if usage.context_limit]
        if counted:
            view.estimator.calibrate(view.request_size, counted[-1].tokens_in)
        else:
            used, limit = view.tokens, view.model.context_limit
            view.context.emit(UsageReported(view.model.name, context_used=used, context_limit=limit))
        return None

    def _max_tokens(self, view: TurnView) -> float:
        """The most tokens that a request may have."""
        window = view.model.context_limit
        own = min(window * self._settings.threshold, window - min(window * REPLY_SHARE, MAX_REPLY_TOKENS))
        return min(own, self._refused_sizes.get(view.model.name, own))

    def _room(self, view: TurnView) -> float:
        """What is left of it beside the system prompt and the tools."""
        cap, fixed = self._max_tokens(view), view.estimator.request_tokens(view.prefix_size)
        if cap - fixed < cap * MIN_ROOM_SHARE:
            raise BackendError(
                f"the system prompt and the tools take about {fixed} of the {cap:.0f} tokens that a request to "
                f"{view.model.name} may have",
                code="context_length",
                hint="choose a model with a larger window, or fewer tools and shorter rules",
            )
        return cap - fixed

    async def _make_fit(self, view: TurnView) -> None:
        room = self._room(view)
        if self._settings.prune:
            self._prune_old(view, room)
            self._make_unseen_fit(view, room)
        if self._used_tokens(view) > room * TARGET_SHARE:
            await compact(view, room)
            self._make_unseen_fit(view, room)
        if self._used_tokens(view) > room:
            view.context.emit(Pruned(_next_seq(view), 400))
            await compact(view, room * MIN_ROOM_SHARE * 5, tight=True)

    def _used_tokens(self, view: TurnView) -> float:
        return view.history.size / view.estimator.ratio

    def _prune_old(self, view: TurnView, room: float) -> None:
        protected = view.estimator.bytes_for(min(room * PROTECTED_SHARE, MAX_PROTECTED_TOKENS))
        saved, upto_seq, entries = 0, 0, view.history.entries
        fresh = find_unseen(entries)
        for entry in reversed(entries):
            if not isinstance(entry.message, ToolResultsMessage):
                continue
            protected -= entry.size
            if protected < 0 and entry is not fresh:
                upto_seq = upto_seq or entry.seq + 1
                saved += entry.size - _pruned_size(entry, 0)
        if saved > view.estimator.bytes_for(room * MIN_PRUNE_SHARE):
            view.context.emit(Pruned(upto_seq))

    def _make_unseen_fit(self, view: TurnView, room: float) -> None:
        """Into what the rest leaves free; a share it gets at least, for then the rest becomes a summary."""
        if self._used_tokens(view) <= room * TARGET_SHARE:
            return
        fresh = find_unseen(view.history.entries)
        others = self._used_tokens(view) - (fresh.size / view.estimator.ratio if fresh else 0)
        self._truncate_unseen(view, max(room * PROTECTED_SHARE, room * TARGET_SHARE - others))

    def _truncate_unseen(self, view: TurnView, tokens: float) -> None:
        """Results that the model has not seen yet keep their heads and tails, however large they are."""
        fresh, most = find_unseen(view.history.entries), view.estimator.bytes_for(tokens)
        if fresh and fresh.size > most and isinstance(fresh.message, ToolResultsMessage):
            view.context.emit(Pruned(_next_seq(view), chars_per_result(fresh.message.results, most)))


def _next_seq(view: TurnView) -> int:
    records = view.context.records()
    return records[len(records) - 1].seq + 1


def _pruned_size(entry: HistoryEntry, chars: int) -> int:
    said = entry.message
    assert isinstance(said, ToolResultsMessage)
    return message_size(ToolResultsMessage(tuple(prune_result(result, chars) for result in said.results)))
