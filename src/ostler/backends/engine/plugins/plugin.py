"""What a guest of the loop is, and what it sees of the turn."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from ostler.backends.engine.history import History, is_manual_result
from ostler.backends.engine.internal_agents import InternalAgents
from ostler.backends.engine.plugins.reply_limit import ReplyLimitedModel
from ostler.backends.engine.request_prefix import MIN_WINDOW, fixed_size
from ostler.backends.engine.token_estimate import TokenEstimator
from ostler.backends.engine.turn_stats import TurnStats
from ostler.core.errors import BackendError
from ostler.core.events import PrefixBuilt, TurnEnded, UsageReported
from ostler.core.message import Message
from ostler.core.prompt import TextContent
from ostler.core.protocols import BackendContext
from ostler.core.tools import ToolSpec
from ostler.models.model_settings import TokenPrice
from ostler.models.model_types import ModelClient, ModelRequest, UserMessage

BUILT_IN_AGENTS = InternalAgents()
# Of a window, what a request may take that was made for another model.
MAX_FALLBACK_SHARE = 0.8
CONTINUE_TEXT = "(That was a command of my own, run while you work. Go on.)"


class TurnView:
    """A turn as guests see it: the stage, the model, the history as it would be sent now, and what it weighs."""

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
    ) -> None:
        """`guide`: the bytes in which the tools are told in words, where no API takes them."""
        self.internal_agents = internal_agents
        self.context = context
        self.model = ReplyLimitedModel(model, self._check_fallback_fits)
        self.estimator = estimator
        self.stats = TurnStats(context)
        self.start_index = self.request_index = self.stats.start_index
        self.request_size = 0
        self._history = history
        self.set_prefix(prefix, guide)

    def set_prefix(self, prefix: PrefixBuilt, guide: int | None) -> None:
        """What requests begin with from now on."""
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
        """The estimate for the next request."""
        return self.estimator.request_tokens(self.size)

    @property
    def price(self) -> TokenPrice | Literal["untold"] | None:
        """What the model's tokens cost, None where nobody knows; a client may also leave it to its replies."""
        price: TokenPrice | Literal["untold"] | None = getattr(self.model, "price", "untold")
        return price

    @property
    def max_reply_tokens(self) -> int:
        """The most tokens that a reply can have: as the profile says, else what the window leaves."""
        told: int | None = getattr(self.model, "max_reply_tokens", None)
        return told or max(self.model.context_limit - self.tokens, 0)

    def request(self) -> ModelRequest:
        """The next request."""
        self.request_index, self.request_size = len(self.context.records()), self.size
        said = self.history.messages
        if said and is_manual_result(said[-1]):  # many servers refuse a request that ends with an answer
            said = (*said, UserMessage((TextContent(CONTINUE_TEXT),)))
        return ModelRequest(self.system, said, self.tools)

    async def _check_fallback_fits(self) -> None:
        """Nobody has asked yet whether the window of a model that goes on for another is large enough."""
        if self.tokens > MIN_WINDOW and (learned := getattr(self.model, "wait_for_window", None)):
            await learned()
        if self.tokens > self.model.context_limit * MAX_FALLBACK_SHARE:
            raise BackendError(
                f"the conversation of about {self.tokens} tokens is too long for the {self.model.context_limit} "
                f"of {self.model.name}",
                code="context_length",
                hint="take a fallback with a larger window",
            )

    def has_tool(self, tool: str) -> bool:
        return any(spec.name == tool for spec in self.tools)

    def usage(self, since: int = 0) -> list[UsageReported]:
        """What the turn's model calls used, hidden ones too; or only those since a record."""
        return self.stats.usage(since)


class LoopPlugin:
    """Does nothing at any point; a guest overrides those that are its own. An end that one returns is the turn's."""

    async def before_step(self, view: TurnView) -> TurnEnded | None:
        """The model is about to be asked."""

    async def after_failure(self, view: TurnView, error: BackendError) -> bool:
        """The model could not be asked; True when it is worth another try."""
        return False

    async def after_step(self, view: TurnView, message: Message) -> TurnEnded | None:
        """The model has replied."""

    async def before_tools(self, view: TurnView, message: Message) -> TurnEnded | None:
        """The reply's calls are about to run."""

    async def after_tools(self, view: TurnView, message: Message) -> TurnEnded | None:
        """All calls of the reply have their results."""

    async def before_end(self, view: TurnView, message: Message) -> bool:
        """The reply has no calls; True when the turn is not over yet."""
        return False

    async def on_limit(self, view: TurnView) -> None:
        """The turn has ended at a limit, whatever was still to be done."""

    def on_cancel(self, view: TurnView) -> None:
        """The turn is being cancelled: somebody waits for that, so nothing may be waited for here."""


class PluginChain(LoopPlugin):
    """All guests as one, asked in their order; the first end is the turn's."""

    def __init__(self, plugins: Sequence[LoopPlugin]) -> None:
        self._plugins = plugins

    async def before_step(self, view: TurnView) -> TurnEnded | None:
        for guest in self._plugins:
            if ended := await guest.before_step(view):
                return ended
        return None

    async def after_failure(self, view: TurnView, error: BackendError) -> bool:
        for guest in self._plugins:
            if await guest.after_failure(view, error):
                return True
        return False

    async def after_step(self, view: TurnView, message: Message) -> TurnEnded | None:
        for guest in self._plugins:
            if ended := await guest.after_step(view, message):
                return ended
        return None

    async def before_tools(self, view: TurnView, message: Message) -> TurnEnded | None:
        for guest in self._plugins:
            if ended := await guest.before_tools(view, message):
                return ended
        return None

    async def after_tools(self, view: TurnView, message: Message) -> TurnEnded | None:
        for guest in self._plugins:
            if ended := await guest.after_tools(view, message):
                return ended
        return None

    async def before_end(self, view: TurnView, message: Message) -> bool:
        for guest in self._plugins:
            if await guest.before_end(view, message):
                return True
        return False

    async def on_limit(self, view: TurnView) -> None:
        for guest in self._plugins:
            await guest.on_limit(view)

    def on_cancel(self, view: TurnView) -> None:
        for guest in self._plugins:
            guest.on_cancel(view)
