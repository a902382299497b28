"""Ostler as a library: a session with any model or backend, turns played to their end, all that happened as values."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from typing import TypedDict, Unpack, get_args

import msgspec

from ostler.app.house import LocalHouse
from ostler.app.models import ModelChoice
from ostler.app.options import RunOptions
from ostler.models.over import Over
from ostler.models.words import ModelClient
from ostler.policy.verdict import Profile
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.events import (
    Envelope,
    Event,
    MessageDone,
    PermissionAsked,
    QuestionAsked,
    ToolCalled,
    ToolFinished,
    TurnEnded,
)
from ostler.vocabulary.permission import Decision, Reply
from ostler.vocabulary.prompt import Prompt, Text
from ostler.vocabulary.seams import Backend, Session, Turn
from ostler.vocabulary.sessions import EndReason, Opening
from ostler.vocabulary.tools import ToolCall, ToolResult

Ask = Callable[[PermissionAsked], Awaitable[Decision | bool]]


class Flags(TypedDict, total=False):
    """What `ostler run` takes as flags; here nothing is written or run without them either."""

    agent: str
    write: bool
    yolo: bool
    allow: tuple[str, ...]
    profile: str
    trust: bool
    max_steps: int
    max_tokens: int
    max_cost: float
    max_time: float
    ephemeral: bool


class Used(msgspec.Struct, frozen=True):
    """A call and what became of it."""

    call: ToolCall
    result: ToolResult


class Played(msgspec.Struct, frozen=True):
    """A turn that is over: the answer, why it ended, the calls with their results, and every event in order."""

    answer: str
    ended: TurnEnded
    tools: tuple[Used, ...]
    events: tuple[Event, ...]

    @property
    def reason(self) -> EndReason:
        """`done`, `limit`, `cancelled`, `timeout` or `failed`."""
        return self.ended.reason


class Conversation:
    """An open session. `notes` are the lines that a person at a terminal would have been told."""

    def __init__(self, session: Session, notes: list[str], ask: Ask | None) -> None:
        self.session = session
        self.notes = notes
        self._ask = ask
        self._asking: set[asyncio.Task[None]] = set()
        self._left: Turn | None = None
        self._prompts = 0

    @property
    def id(self) -> str:
        """What `resume` takes to go on with it later."""
        return self.session.id

    async def run(self, prompt: str | Prompt) -> Played:
        """Play one turn to its end; whoever cancels this call cancels the turn."""
        events = [event async for event in self.stream(prompt)]
        return _played(events)

    async def stream(self, prompt: str | Prompt) -> AsyncIterator[Event]:
        """The events of one turn as they happen; the last is its `TurnEnded`."""
        asked = self._prompt(prompt)
        await self._after_one_left()
        with closing(self.session.subscribe(since=2**62)) as reading:
            turn = self.session.start(asked)
            try:
                async for envelope in reading:
                    self._answer(envelope)
                    yield envelope.event
                    if isinstance(envelope.event, TurnEnded) and envelope.event.turn_id == turn.id:
                        return
            finally:
                self._left = turn
                await _end(turn)
                for asking in self._asking:
                    asking.cancel()

    async def _after_one_left(self) -> None:
        """A stream whose loop was left is closed by the event loop: one round to hear of it, and one to begin."""
        for _ in range(2):
            await asyncio.sleep(0)
        if self._left:
            await self._left.wait()

    def _prompt(self, prompt: str | Prompt) -> Prompt:
        if isinstance(prompt, Prompt):
            return prompt
        if not str(prompt or "").strip():
            raise UsageError("there is no prompt", hint="give words, or a Prompt")
        self._prompts += 1
        return Prompt(f"library-{self.session.opened_at}-{self._prompts}", (Text(prompt),))

    def _answer(self, envelope: Envelope) -> None:
        """Asks go to whoever was given for them; questions to nobody."""
        match envelope.event:
            case PermissionAsked() as asked if self._ask:
                task = asyncio.create_task(self._decide(asked, self._ask), name="ask")
                self._asking.add(task)
                task.add_done_callback(self._asking.discard)
            case QuestionAsked(question):
                self.session.settle(question.id, Reply("decline"))
            case _:
                pass

    async def _decide(self, asked: PermissionAsked, ask: Ask) -> None:
        """A callback that fails is a refusal that says so; nothing waits for an answer that will not come."""
        try:
            said = await ask(asked)
        except Exception as error:
            said = Decision("deny", by="person", feedback=f"the callback failed: {type(error).__name__}: {error}")
        decision = said if isinstance(said, Decision) else Decision("allow" if said else "deny", by="person")
        self.session.settle(asked.ask_id, decision)


@asynccontextmanager
async def open_session(
    cwd: str = ".",
    *,
    model: str | ModelClient = "",
    backend: Backend | None = None,
    base_url: str = "",
    api_key: str = "",
    ask: Ask | None = None,
    resume: str = "",
    **flags: Unpack[Flags],
) -> AsyncIterator[Conversation]:
    """A session on a folder, closed at the end of the block.

    `model` is a profile's or model's name, or a client of your own; without one, what `ostler run` would take.
    `backend` thinks in place of the engine. Where `ask` is given, what needs consent is asked there; else refused.
    """
    notes: list[str] = []
    _check_given("model", model, ("name", "context_limit", "stream"), str)
    _check_given("backend", backend, ("open", "run_turn", "apply", "aclose"), type(None))
    names = {"model": model if isinstance(model, str) else "", "base_url": base_url, "api_key": api_key}
    options = _options(cwd, {name: value for name, value in names.items() if value}, flags)
    choice = None if isinstance(model, str) else _only(model)
    house = LocalHouse(options, notes.append, choice, backend)
    session = await house.open(Opening(cwd, "library" if backend else "", resume=resume, attended=ask is not None))
    try:
        yield Conversation(session, notes, ask)
    finally:
        await session.aclose()


def run(
    prompt: str,
    cwd: str = ".",
    *,
    model: str | ModelClient = "",
    backend: Backend | None = None,
    base_url: str = "",
    api_key: str = "",
    **flags: Unpack[Flags],
) -> Played:
    """One prompt in a session of its own, for code that is not asynchronous."""

    async def play() -> Played:
        async with open_session(
            cwd, model=model, backend=backend, base_url=base_url, api_key=api_key, **flags
        ) as conversation:
            return await conversation.run(prompt)

    if _in_a_loop():  # asyncio's own complaint does not say what to do instead
        raise UsageError(
            "ostler.run cannot wait inside asynchronous code",
            hint="there, as in a notebook: async with ostler.open_session(…) as conversation",
        )
    return asyncio.run(play())


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _check_given(argument: str, given: object, needs: tuple[str, ...], also: type) -> None:
    """What is no such thing is told here, not in the middle of a turn."""
    lacks = [name for name in needs if not hasattr(given, name)]
    if lacks and not isinstance(given, also):
        raise UsageError(
            f"what was given as {argument} has no {', '.join(lacks)}", hint="docs/python.md tells what it needs"
        )


def _options(cwd: str, names: dict[str, str], flags: Flags) -> RunOptions:
    """The flags as the command line would have checked them."""
    if unknown := sorted(flags.keys() - Flags.__annotations__.keys()):
        raise UsageError(
            f"open_session has no argument {unknown[0]!r}", hint=f"there is: {', '.join(Flags.__annotations__)}"
        )
    try:
        options = msgspec.convert({"cwd": cwd, "model": names, **flags}, RunOptions)
    except msgspec.ValidationError as error:
        raise UsageError(f"an argument of open_session is wrong: {error}") from None
    if options.profile not in ("", *get_args(Profile)):
        raise UsageError(f"there is no profile {options.profile!r}", hint=f"there is: {', '.join(get_args(Profile))}")
    _check_limits(flags)
    return msgspec.structs.replace(options, write=options.write or options.yolo)


def _check_limits(flags: Flags) -> None:
    """A limit that is given is one: nothing and less would mean none, or no turn at all."""
    for name in ("max_steps", "max_tokens", "max_cost", "max_time"):
        least, most = (1, sys.maxsize) if name in ("max_steps", "max_tokens") else (sys.float_info.min, 1e9)
        if name in flags and not least <= flags[name] <= most:
            raise UsageError(
                f"{name}={flags[name]} limits nothing",
                hint="give a whole number from 1 on" if least == 1 else "give more than 0 and at most 1e9",
            )


def _only(client: ModelClient) -> ModelChoice:
    """A client that was handed in is the only model there is."""

    def make(name: str) -> ModelClient:
        if name not in ("", client.name):
            raise UsageError(f"this session was opened with the model {client.name!r} alone, there is no {name[:80]!r}")
        return _Lent(client)

    return ModelChoice(f"{client.name}, given by the program", make)


class _Lent(Over):
    """A client that whoever made it also closes."""

    async def aclose(self) -> None:
        """Not ours to close."""


async def _end(turn: Turn) -> None:
    """A turn that nobody follows to its end is cancelled; one that is over stays as it is."""
    turn.cancel()
    await turn.wait()


def _played(events: list[Event]) -> Played:
    calls = {event.call.id: event.call for event in events if isinstance(event, ToolCalled)}
    used = [event.result for event in events if isinstance(event, ToolFinished)]
    answers = [e.message.text for e in events if isinstance(e, MessageDone) and not e.message.has_more_to_do]
    ended = next(event for event in reversed(events) if isinstance(event, TurnEnded))
    tools = tuple(Used(calls[result.call_id], result) for result in used if result.call_id in calls)
    return Played(answers[-1] if answers else "", ended, tools, tuple(events))
