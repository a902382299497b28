"""What a guest of the loop is, and what it sees of the turn."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from ostler.backends.engine.guests.bounded import Bounded
from ostler.backends.engine.helpers import Helpers
from ostler.backends.engine.history import History, by_hand
from ostler.backends.engine.measure import Meter
from ostler.backends.engine.prefix import SMALLEST_WINDOW, fixed_size
from ostler.backends.engine.tally import Tally
from ostler.models.terms import Price
from ostler.models.words import ModelClient, Request, UserSaid
from ostler.vocabulary.errors import BackendError
from ostler.vocabulary.events import PrefixBuilt, TurnEnded, UsageReported
from ostler.vocabulary.message import Message
from ostler.vocabulary.prompt import Text
from ostler.vocabulary.seams import Stage
from ostler.vocabulary.tools import ToolSpec

BUILT_IN = Helpers()
# Of a window, what a request may take that was made for another model.
MOST_HANDED = 0.8
GO_ON = "(That was a command of my own, run while you work. Go on.)"


class View:
    """A turn as guests see it: the stage, the model, the history as it would be sent now, and what it weighs."""

    def __init__(
        self,
        stage: Stage,
        model: ModelClient,
        prefix: PrefixBuilt,
        history: History,
        meter: Meter,
        helpers: Helpers = BUILT_IN,
        *,
        guide: int | None = None,
    ) -> None:
        """`guide`: the bytes in which the tools are told in words, where no API takes them."""
        self.helpers = helpers
        self.stage = stage
        self.model = Bounded(model, self._check_handed)
        self.meter = meter
        self.tally = Tally(stage)
        self.begun = self.asked_at = self.tally.begun
        self.sent = 0
        self._history = history
        self.offer(prefix, guide)

    def offer(self, prefix: PrefixBuilt, guide: int | None) -> None:
        """What requests begin with from now on."""
        self.prefix = prefix
        self.system = prefix.system
        self.offered = tuple(msgspec.convert(tool, ToolSpec) for tool in prefix.tools)
        self.fixed = fixed_size(prefix, guide)

    @property
    def history(self) -> History:
        return self._history.follow(self.stage.records())

    @property
    def size(self) -> int:
        """The bytes of the next request."""
        return self.fixed + self.history.size

    @property
    def tokens(self) -> int:
        """The estimate for the next request."""
        return self.meter.tokens(self.size)

    @property
    def price(self) -> Price | Literal["untold"] | None:
        """What the model's tokens cost, None where nobody knows; a client may also leave it to its replies."""
        price: Price | Literal["untold"] | None = getattr(self.model, "price", "untold")
        return price

    @property
    def longest_reply(self) -> int:
        """The most tokens that a reply can have: as the profile says, else what the window leaves."""
        told: int | None = getattr(self.model, "longest_reply", None)
        return told or max(self.model.context_limit - self.tokens, 0)

    def request(self) -> Request:
        """The next request."""
        self.asked_at, self.sent = len(self.stage.records()), self.size
        said = self.history.said
        if said and by_hand(said[-1]):  # many servers refuse a request that ends with an answer
            said = (*said, UserSaid((Text(GO_ON),)))
        return Request(self.system, said, self.offered)

    async def _check_handed(self) -> None:
        """Nobody has asked yet whether the window of a model that goes on for another is large enough."""
        if self.tokens > SMALLEST_WINDOW and (learned := getattr(self.model, "learned", None)):
            await learned()
        if self.tokens > self.model.context_limit * MOST_HANDED:
            raise BackendError(
                f"the conversation of about {self.tokens} tokens is too long for the {self.model.context_limit} "
                f"of {self.model.name}",
                code="context_length",
                hint="take a fallback with a larger window",
            )

    def offers(self, tool: str) -> bool:
        return any(spec.name == tool for spec in self.offered)

    def usage(self, since: int = 0) -> list[UsageReported]:
        """What the turn's model calls used, hidden ones too; or only those since a record."""
        return self.tally.usage(since)


class Guest:
    """Does nothing at any point; a guest overrides those that are its own. An end that one returns is the turn's."""

    async def before_step(self, view: View) -> TurnEnded | None:
        """The model is about to be asked."""

    async def after_failure(self, view: View, error: BackendError) -> bool:
        """The model could not be asked; True when it is worth another try."""
        return False

    async def after_step(self, view: View, message: Message) -> TurnEnded | None:
        """The model has replied."""

    async def before_tools(self, view: View, message: Message) -> TurnEnded | None:
        """The reply's calls are about to run."""

    async def after_tools(self, view: View, message: Message) -> TurnEnded | None:
        """All calls of the reply have their results."""

    async def before_end(self, view: View, message: Message) -> bool:
        """The reply has no calls; True when the turn is not over yet."""
        return False

    async def cut_short(self, view: View) -> None:
        """The turn has ended at a limit, whatever was still to be done."""

    def stopped(self, view: View) -> None:
        """The turn is being cancelled: somebody waits for that, so nothing may be waited for here."""


class Guests(Guest):
    """All guests as one, asked in their order; the first end is the turn's."""

    def __init__(self, guests: Sequence[Guest]) -> None:
        self._guests = guests

    async def before_step(self, view: View) -> TurnEnded | None:
        for guest in self._guests:
            if ended := await guest.before_step(view):
                return ended
        return None

    async def after_failure(self, view: View, error: BackendError) -> bool:
        for guest in self._guests:
            if await guest.after_failure(view, error):
                return True
        return False

    async def after_step(self, view: View, message: Message) -> TurnEnded | None:
        for guest in self._guests:
            if ended := await guest.after_step(view, message):
                return ended
        return None

    async def before_tools(self, view: View, message: Message) -> TurnEnded | None:
        for guest in self._guests:
            if ended := await guest.before_tools(view, message):
                return ended
        return None

    async def after_tools(self, view: View, message: Message) -> TurnEnded | None:
        for guest in self._guests:
            if ended := await guest.after_tools(view, message):
                return ended
        return None

    async def before_end(self, view: View, message: Message) -> bool:
        for guest in self._guests:
            if await guest.before_end(view, message):
                return True
        return False

    async def cut_short(self, view: View) -> None:
        for guest in self._guests:
            await guest.cut_short(view)

    def stopped(self, view: View) -> None:
        for guest in self._guests:
            guest.stopped(view)
