"""The engine as a backend: it joins a model, the tools' declarations and the loop to a stage."""

import asyncio
from collections.abc import Callable, Sequence

from ostler.backends.engine.casting import chosen_alone, handed_out, led_by, only_chooses
from ostler.backends.engine.guests.budget import Budget
from ostler.backends.engine.guests.circle_guest import CircleGuest, Watched
from ostler.backends.engine.guests.compact import tell_size
from ostler.backends.engine.guests.guest import BUILT_IN, Guest, Guests, View
from ostler.backends.engine.guests.limits import LimitGuest, Limits
from ostler.backends.engine.guests.nested import NestedGuest
from ostler.backends.engine.guests.offers import OfferGuest
from ostler.backends.engine.guests.shrink import ShrinkGuest, Shrinking
from ostler.backends.engine.guests.todos import TodoGuest
from ostler.backends.engine.guests.validate import Checks, ValidationGuest
from ostler.backends.engine.helpers import Helpers
from ostler.backends.engine.history import History, prefix, undone_summaries
from ostler.backends.engine.loop import Loop
from ostler.backends.engine.measure import Meter
from ostler.backends.engine.naming import Naming
from ostler.backends.engine.prefix import (
    SMALLEST_WINDOW,
    Surroundings,
    build,
    check_room,
    extended,
    fixed_size,
    guide_size,
)
from ostler.backends.engine.role import THINKING, Role, Sampled, TakeRole, brief, no_roles, role_at_open, thinking_of
from ostler.models.words import ModelClient, Thinking
from ostler.vocabulary.errors import OstlerError, UsageError
from ostler.vocabulary.events import Compacted, PrefixBuilt, TurnEnded
from ostler.vocabulary.message import Message
from ostler.vocabulary.prompt import Prompt
from ostler.vocabulary.seams import Stage
from ostler.vocabulary.sessions import (
    Change,
    Choice,
    Compact,
    Rename,
    Revert,
    SessionInfo,
    SessionOption,
    SessionStart,
    SetOption,
    Steer,
)
from ostler.vocabulary.tools import ToolSpec

DEFAULT_LIMITS = Limits()
DEFAULT_SHRINKING = Shrinking()
NO_CHECKS = Checks()
NOTHING_AROUND = Surroundings()
MakeModel = Callable[[str], ModelClient]


class Engine:
    """In process: the model thinks, the stage acts. Its history is a fold over the stage's records."""

    def __init__(
        self,
        *,
        make_model: MakeModel,
        tools: Callable[[], Sequence[ToolSpec]],
        system: Callable[[], str],
        limits: Limits = DEFAULT_LIMITS,
        shrinking: Shrinking = DEFAULT_SHRINKING,
        roles: TakeRole = no_roles,
        checks: Checks = NO_CHECKS,
        budget: Budget | None = None,
        around: Surroundings = NOTHING_AROUND,
        helpers: Helpers = BUILT_IN,
    ) -> None:
        self._make_model = make_model
        self._tools = tools
        self._system = system
        self._limits = limits
        self._budget = budget or Budget(limits.tokens, limits.cost)
        self._roles = roles
        self._checks = checks
        self._around = around
        self._helpers = helpers
        self._naming = Naming(helpers, make_model, self._budget)
        self._role = Role()
        self._wanted_model = ""
        self._thinking: Thinking | None = None
        self._shrink = ShrinkGuest(shrinking)
        self._playing = False
        self._history = History()
        self._meters: dict[str, Meter] = {}
        self._stage: Stage
        self._model: ModelClient
        self._steps = 0

    async def open(self, start: SessionStart, stage: Stage) -> SessionInfo:
        self._stage = stage
        self._role = role_at_open(self._roles, start.options.get("agent", ""), stage)
        self._wanted_model = start.options.get("model", "")
        self._thinking = thinking_of(start.options.get("thinking", ""))
        self._model = self._make_model(self._wanted_model or self._role.model)
        return self._info()

    async def run_turn(self, prompt: Prompt | None) -> TurnEnded:
        if prompt is None:
            raise UsageError("the engine begins no turns by itself")
        self._playing = True
        try:
            async with led_by(self, self._stage, prompt.cast):
                return await self._play(prompt)
        finally:
            self._playing = False
            self._budget.leave(self._stage)

    @property
    def chosen(self) -> dict[str, str]:
        """The agent and the model that work now; an agent's own model is none that was chosen."""
        return {"agent": self._role.name, "model": self._wanted_model}

    async def _play(self, prompt: Prompt) -> TurnEnded:
        if only_chooses(prompt):
            return chosen_alone(self._stage, prompt)
        tools = self._tools()
        brief(self._stage, self._role)
        await self._know_window(tools)
        view = self._view(self._prefix(tools))
        self._budget.join(view)
        guests = self._guests()
        try:
            ended = await self._in_time(Loop(view, self._tools, guests, self._message_id), handed_out(prompt))
        except asyncio.CancelledError:
            guests.stopped(view)
            raise
        if ended.reason == "limit":
            await guests.cut_short(view)
        return ended

    async def _in_time(self, loop: Loop, first: Message | None) -> TurnEnded:
        try:
            async with asyncio.timeout(self._limits.time) as clock:
                return await loop.play(first)
        except TimeoutError:
            if not clock.expired():
                raise
            return TurnEnded("", "limit", limit=f"{self._limits.time:g} seconds")

    async def apply(self, change: Change) -> bool:
        match change:
            case Steer() | Revert() | Rename():  # what is kept is all it knows
                return True
            case SetOption("model", value):
                await self._change_model(value)
                self._wanted_model = value
                return True
            case SetOption("agent", value):
                await self._change_role(value)
                return True
            case SetOption("thinking", value):
                self._thinking = thinking_of(value)
                return True
            case Compact(undo):
                return await (self._uncompact() if undo else self._compact())
            case _:
                return False

    async def aclose(self) -> None:
        await self._naming.aclose()
        await self._model.aclose()

    async def _change_role(self, name: str) -> None:
        """All of it or nothing: an agent whose model is not to be had leaves no bounds lifted."""
        before = self._role.name
        role = self._roles(name)
        try:
            await self._change_model(self._wanted_model or role.model)
        except OstlerError:
            role = self._roles(before)
            raise
        finally:
            self._role = role

    async def _change_model(self, name: str) -> None:
        old, self._model = self._model, self._make_model(name)
        await old.aclose()

    async def _compact(self) -> bool:
        """Between two steps of the turn that runs, else now."""
        built = prefix(self._stage.records())
        if self._playing:
            self._shrink.want()
            return True
        return built is not None and await self._shrink.shorten(self._view(built))

    async def _uncompact(self) -> bool:
        """Between turns: a turn that runs goes on from what it was told."""
        records = self._stage.records()
        undone, built = undone_summaries(records), prefix(records)
        standing = any(records[at].seq not in undone for at in records.of(("compacted",)))
        if not standing or not built or self._playing:
            return False
        self._stage.emit(Compacted("", 0))
        tell_size(self._view(built))
        return True

    def _guests(self) -> Guest:
        limits = LimitGuest(self._role.max_steps or self._limits.steps, self._budget)
        nested, checks = NestedGuest(self._around.nested), ValidationGuest(self._checks)
        offers = OfferGuest(self._tools, self._extend)
        return Guests((offers, TodoGuest(), CircleGuest(), nested, limits, self._shrink, limits, self._naming, checks))

    def _view(self, built: PrefixBuilt) -> View:
        model = Watched(Sampled(self._model, self._role, self._thinking))
        guide = guide_size(self._model, built)
        return View(self._stage, model, built, self._history, self._meter, self._helpers, guide=guide)

    @property
    def _meter(self) -> Meter:
        return self._meters.setdefault(self._model.name, Meter())

    def _info(self) -> SessionInfo:
        options = (
            SessionOption("model", self._model.name),
            SessionOption("agent", self._role.name),
            SessionOption("thinking", self._thinking or "", choices=tuple(Choice(word) for word in THINKING)),
        )
        return SessionInfo("engine", options, can_steer=True)

    async def _know_window(self, tools: Sequence[ToolSpec]) -> None:
        """Where the request is larger than the smallest windows there are, the server's own is waited for."""
        learned, records = getattr(self._model, "learned", None), self._stage.records()
        if learned is None:
            return
        built = prefix(records) or build(self._system(), self._around.parts(), tools, self._model.context_limit)
        size = fixed_size(built, guide_size(self._model, built)) + self._history.follow(records).size
        if self._meter.worth(size) > SMALLEST_WINDOW:
            await learned()

    def _prefix(self, tools: Sequence[ToolSpec]) -> PrefixBuilt:
        """As the session's first request had it, so that every later one begins with the same bytes; tools that were
        not told of yet follow the others."""
        built, window = prefix(self._stage.records()), self._model.context_limit
        now = extended(built, tools, window) if built else build(self._system(), self._around.parts(), tools, window)
        if now is not built:
            now = self._kept(now)
        check_room(now, self._model, self._meter)
        return now

    def _extend(self, view: View, tools: Sequence[ToolSpec]) -> None:
        """In the middle of a turn: tools that were not told of yet."""
        now = extended(view.prefix, tools, self._model.context_limit)
        if now is not view.prefix:
            check_room(now, self._model, self._meter)
            now = self._kept(now)
            view.offer(now, guide_size(self._model, now))

    def _kept(self, built: PrefixBuilt) -> PrefixBuilt:
        """As the session has it from now on, which may withhold something."""
        self._stage.emit(built)
        return prefix(self._stage.records()) or built

    def _message_id(self) -> str:
        self._steps += 1
        return f"message-{self._stage.records()[-1].seq}-{self._steps}"
