"""Base class of loop plugins, and the turn view they receive."""

from collections.abc import Awaitable, Iterable, Sequence
from typing import TypeVar

import msgspec

from ostler.backends.engine.history import History, is_manual_result
from ostler.backends.engine.internal_agents import InternalAgents
from ostler.backends.engine.plugins.reply_limit import ReplyLimitedModel
from ostler.backends.engine.request_prefix import MIN_WINDOW, fixed_size
from ostler.backends.engine.token_estimate import TokenEstimator
from ostler.core.errors import BackendError
from ostler.core.events import Event, MessageDone, PrefixBuilt, TurnEnded, UsageReported
from ostler.core.message import Message
from ostler.core.prompt import TextContent
from ostler.core.protocols import BackendContext
from ostler.core.tools import ToolSpec
from ostler.models.model_types import ModelClient, ModelRequest, UserMessage

T = TypeVar("T")

BUILT_IN_AGENTS = InternalAgents()
# Share of a fallback model's context window that a request built for another model may use.
MAX_FALLBACK_SHARE = 0.8
CONTINUE_TEXT = "(I ran that command myself. Continue.)"


class TurnStats:
    """Steps, usage and latest events of the running turn.

    Each record of the turn is read once; earlier records are searched only on demand.
    """

    def __init__(self, context: BackendContext, start_index: int | None = None) -> None:
        """`start_index` is the index of the first record of a turn that is continued."""
        self._context = context
        self.start_index = len(context.records()) if start_index is None else start_index
        self._read_count = self.start_index
        self._steps = 0
        self._usage: list[tuple[int, UsageReported]] = []
        self._latest: dict[str, int] = {}

    @property
    def steps(self) -> int:
        """The number of model replies."""
        return self._refreshed()._steps

    def usage(self, since: int = 0) -> list[UsageReported]:
        """Return the usage of all model calls, including internal ones, since record index `since`."""
        return [event for index, event in self._refreshed()._usage if index >= since]

    def latest(self, event_type: str) -> Event | None:
        """Return the latest event of a type, from this turn or earlier."""
        latest = self._refreshed()._latest
        records = self._context.records()
        if event_type not in latest:
            latest[event_type] = next(
                (index for index in reversed(range(self.start_index)) if records.type_at(index) == event_type), -1
            )
        return records[latest[event_type]].event if latest[event_type] >= 0 else None

    def _refreshed(self) -> "TurnStats":
        records = self._context.records()
        for index in range(self._read_count, len(records)):
            kind = records.type_at(index)
            self._latest[kind] = index
            event = records[index].event if kind in ("message_done", "usage_reported") else None
            if isinstance(event, MessageDone):
                self._steps += not event.message.continues
            elif isinstance(event, UsageReported):
                self._usage.append((index, event))
        self._read_count = len(records)
        return self


class TurnView:
    """A turn as plugins see it: the context, the model, and the history as it would be sent now, with its size."""

    def __init__(
        self,
        context: BackendContext,
        model: ModelClient,
        prefix: PrefixBuilt,
        history: History,
        estimator: TokenEstimator,
        internal_agents: InternalAgents = BUILT_IN_AGENTS,
        *,
        guide: int | None = None,
        start_index: int | None = None,
    ) -> None:
        """`guide` is the size in bytes of the tools' description, where the API does not declare tools.

        `start_index` is the index of the first record of a turn that is continued.
        """
        self.internal_agents = internal_agents
        self.context = context
        self.model = ReplyLimitedModel(model, self._check_fallback_fits)
        self.estimator = estimator
        self.stats = TurnStats(context, start_index)
        self.start_index, self.request_index = self.stats.start_index, len(context.records())
        self.request_size = 0
        self._history = history
        self.set_prefix(prefix, guide)

    def set_prefix(self, prefix: PrefixBuilt, guide: int | None) -> None:
        """Set what the following requests begin with."""
        self.prefix = prefix
        self.system = prefix.system
        self.tools = tuple(msgspec.convert(tool, ToolSpec) for tool in prefix.tools)
        self.prefix_size = fixed_size(prefix, guide)

    @property
    def history(self) -> History:
        return self._history.follow(self.context.records())

    @property
    def size(self) -> int:
        """The bytes of the next request."""
        return self.prefix_size + self.history.size

    @property
    def tokens(self) -> int:
        """The estimated tokens of the next request."""
        return self.estimator.request_tokens(self.size)

    @property
    def max_reply_tokens(self) -> int:
        """The longest possible reply in tokens: from the profile, or what the context window leaves."""
        return self.model.max_reply_tokens or max(self.model.context_limit - self.tokens, 0)

    def request(self) -> ModelRequest:
        """Build the next request."""
        self.request_index, self.request_size = len(self.context.records()), self.size
        messages = self.history.messages
        if messages and is_manual_result(messages[-1]):  # many servers refuse a request that ends with a reply
            messages = (*messages, UserMessage((TextContent(CONTINUE_TEXT),)))
        return ModelRequest(self.system, messages, self.tools)

    async def _check_fallback_fits(self) -> None:
        """Raise `BackendError` if the request is too long for the model that takes over."""
        if self.tokens > MIN_WINDOW:
            await self.model.wait_for_window()
        if self.tokens > self.model.context_limit * MAX_FALLBACK_SHARE:
            raise BackendError(
                f"the conversation of about {self.tokens} tokens is too long for {self.model.name}, "
                f"which has a context window of {self.model.context_limit}",
                code="context_length",
                hint="configure a fallback with a larger context window",
            )

    def has_tool(self, tool: str) -> bool:
        return any(spec.name == tool for spec in self.tools)


class LoopPlugin:
    """Base class whose hooks do nothing. A `TurnEnded` that a hook returns ends the turn."""

    async def before_step(self, view: TurnView) -> TurnEnded | None:
        """Called before the model is queried."""

    async def after_failure(self, view: TurnView, error: BackendError) -> bool:
        """Called when a query failed. Return True to query again."""
        return False

    async def after_step(self, view: TurnView, message: Message) -> TurnEnded | None:
        """Called after the model replied."""

    async def before_tools(self, view: TurnView, message: Message) -> TurnEnded | None:
        """Called before the reply's calls are run."""

    async def after_tools(self, view: TurnView, message: Message) -> TurnEnded | None:
        """Called when all calls of the reply have results."""

    async def before_end(self, view: TurnView, message: Message) -> TurnEnded | bool:
        """Called when a reply has no calls. Return True to continue the turn."""
        return False

    async def on_limit(self, view: TurnView) -> None:
        """Called after the turn ended at a limit."""

    def on_cancel(self, view: TurnView) -> None:
        """Called when the turn is being cancelled; must not wait for anything."""


class PluginChain(LoopPlugin):
    """Calls plugins in order; the first `TurnEnded` or True that one returns is the result."""

    def __init__(self, plugins: Sequence[LoopPlugin]) -> None:
        self._plugins = plugins

    async def before_step(self, view: TurnView) -> TurnEnded | None:
        return await _first_outcome(plugin.before_step(view) for plugin in self._plugins)

    async def after_failure(self, view: TurnView, error: BackendError) -> bool:
        return await _first_outcome(plugin.after_failure(view, error) for plugin in self._plugins) is not None

    async def after_step(self, view: TurnView, message: Message) -> TurnEnded | None:
        return await _first_outcome(plugin.after_step(view, message) for plugin in self._plugins)

    async def before_tools(self, view: TurnView, message: Message) -> TurnEnded | None:
        return await _first_outcome(plugin.before_tools(view, message) for plugin in self._plugins)

    async def after_tools(self, view: TurnView, message: Message) -> TurnEnded | None:
        return await _first_outcome(plugin.after_tools(view, message) for plugin in self._plugins)

    async def before_end(self, view: TurnView, message: Message) -> TurnEnded | bool:
        return await _first_outcome(plugin.before_end(view, message) for plugin in self._plugins) or False

    async def on_limit(self, view: TurnView) -> None:
        for plugin in self._plugins:
            await plugin.on_limit(view)

    def on_cancel(self, view: TurnView) -> None:
        for plugin in self._plugins:
            plugin.on_cancel(view)


async def _first_outcome(calls: Iterable[Awaitable[T]]) -> T | None:
    """Await the calls in order. Return the first outcome that is a `TurnEnded` or True; no call is made after it."""
    for call in calls:
        if outcome := await call:
            return outcome
    return None
