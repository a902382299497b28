"""Plugin that keeps requests within the context window: prunes old tool results, then compacts."""

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

# Part of the window reserved for the reply.
REPLY_SHARE, MAX_REPLY_TOKENS = 0.2, 20_000
# The latest results are not pruned up to this share of the available tokens.
PROTECTED_SHARE, MAX_PROTECTED_TOKENS = 0.3, 40_000
# Pruning less than this share of the available tokens is not worth losing the cached prefix.
MIN_PRUNE_SHARE = 0.2
# How many of the available tokens may be used afterwards, as a share.
TARGET_SHARE = 0.7
MIN_AVAILABLE_SHARE = 0.1
MAX_RETRIES = 2


class CompactionSettings(msgspec.Struct, frozen=True):
    """Whether to compact automatically, whether to prune results first, and at which share of the window."""

    auto: bool = True
    prune: bool = True
    threshold: float = 0.8


class ContextWindowPlugin(LoopPlugin):
    """Lives as long as the session, and remembers which request sizes a server refused."""

    def __init__(self, settings: CompactionSettings) -> None:
        self._settings = settings
        self._requested = False
        self._refused_sizes: dict[str, int] = {}
        self._retries = 0

    def request_compaction(self) -> None:
        """Compact before the next step, whatever the size."""
        self._requested = True

    async def compact_now(self, view: TurnView) -> bool:
        """Compact now. Return False if there is nothing to compact."""
        if not any(isinstance(entry.message, AssistantMessage) for entry in view.history.entries):
            return False
        available = self._available_tokens(view)
        self._truncate_unseen(view, available * PROTECTED_SHARE)
        return await compact(view, available)

    async def before_step(self, view: TurnView) -> TurnEnded | None:
        if self._requested:
            self._requested = False
            await self.compact_now(view)
        elif self._settings.auto and view.tokens > self._max_tokens(view):
            await self._make_fit(view)
        return None

    async def after_failure(self, view: TurnView, error: BackendError) -> bool:
        """Shrink the request after the server refused it as too long."""
        if error.fault.code != "context_length" or not self._settings.auto or self._retries >= MAX_RETRIES:
            return False
        self._retries += 1
        self._refused_sizes[view.model.name] = int(view.tokens * 0.6)
        before = view.size
        await self._make_fit(view)
        return view.size < before

    async def after_step(self, view: TurnView, message: Message) -> TurnEnded | None:
        self._retries = 0
        reports = [usage for usage in view.stats.usage(view.request_index) if usage.context_limit]
        if reports:
            view.estimator.calibrate(view.request_size, reports[-1].tokens_in)
        else:
            used, limit = view.tokens, view.model.context_limit
            view.context.emit(UsageReported(view.model.name, context_used=used, context_limit=limit))
        return None

    def _max_tokens(self, view: TurnView) -> float:
        """Return the maximum size of a request in tokens."""
        window = view.model.context_limit
        limit = min(window * self._settings.threshold, window - min(window * REPLY_SHARE, MAX_REPLY_TOKENS))
        return min(limit, self._refused_sizes.get(view.model.name, limit))

    def _available_tokens(self, view: TurnView) -> float:
        """Return the tokens left for the conversation. Raises `BackendError` if the prefix leaves too few."""
        cap, fixed = self._max_tokens(view), view.estimator.request_tokens(view.prefix_size)
        if cap - fixed < cap * MIN_AVAILABLE_SHARE:
            raise BackendError(
                f"the system prompt and tools take about {fixed} of the {cap:.0f} tokens that a request to "
                f"{view.model.name} may have",
                code="context_length",
                hint="use a model with a larger context window, shorter rules or fewer tools",
            )
        return cap - fixed

    async def _make_fit(self, view: TurnView) -> None:
        available = self._available_tokens(view)
        if self._settings.prune:
            self._prune_old(view, available)
            self._make_unseen_fit(view, available)
        if self._used_tokens(view) > available * TARGET_SHARE:
            await compact(view, available)
            self._make_unseen_fit(view, available)
        if self._used_tokens(view) > available:
            view.context.emit(Pruned(_next_seq(view), 400))
            await compact(view, available * MIN_AVAILABLE_SHARE * 5, tight=True)

    def _used_tokens(self, view: TurnView) -> float:
        return view.history.size / view.estimator.ratio

    def _prune_old(self, view: TurnView, available: float) -> None:
        protected = view.estimator.bytes_for(min(available * PROTECTED_SHARE, MAX_PROTECTED_TOKENS))
        saved, upto_seq, entries = 0, 0, view.history.entries
        unseen = find_unseen(entries)
        for entry in reversed(entries):
            if not isinstance(entry.message, ToolResultsMessage):
                continue
            protected -= entry.size
            if protected < 0 and entry is not unseen:
                upto_seq = upto_seq or entry.seq + 1
                saved += entry.size - _pruned_size(entry, 0)
        if saved > view.estimator.bytes_for(available * MIN_PRUNE_SHARE):
            view.context.emit(Pruned(upto_seq))

    def _make_unseen_fit(self, view: TurnView, available: float) -> None:
        """Truncate unseen results to the free space, but at least to a fixed share of the available tokens."""
        if self._used_tokens(view) <= available * TARGET_SHARE:
            return
        unseen = find_unseen(view.history.entries)
        others = self._used_tokens(view) - (unseen.size / view.estimator.ratio if unseen else 0)
        self._truncate_unseen(view, max(available * PROTECTED_SHARE, available * TARGET_SHARE - others))

    def _truncate_unseen(self, view: TurnView, tokens: float) -> None:
        """Truncate results that the model has not seen yet to `tokens`, keeping heads and tails."""
        unseen, max_bytes = find_unseen(view.history.entries), view.estimator.bytes_for(tokens)
        if unseen and unseen.size > max_bytes and isinstance(unseen.message, ToolResultsMessage):
            view.context.emit(Pruned(_next_seq(view), chars_per_result(unseen.message.results, max_bytes)))


def _next_seq(view: TurnView) -> int:
    records = view.context.records()
    return records[len(records) - 1].seq + 1


def _pruned_size(entry: HistoryEntry, chars: int) -> int:
    message = entry.message
    assert isinstance(message, ToolResultsMessage)
    return message_size(ToolResultsMessage(tuple(prune_result(result, chars) for result in message.results)))
