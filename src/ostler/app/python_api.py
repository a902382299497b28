"""Ostler as a library: a session with any model or backend, turns played to their end, all that happened as values."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from typing import TypedDict, Unpack, get_args

import msgspec

from ostler.app.model_choice import ModelChoice
from ostler.app.run_options import RunOptions
from ostler.app.session_manager import LocalSessionManager
from ostler.core.errors import UsageError
from ostler.core.events import (
    Envelope,
    Event,
    MessageDone,
    PermissionAsked,
    QuestionAsked,
    ToolCalled,
    ToolFinished,
    TurnEnded,
)
from ostler.core.permission import Decision, QuestionReply
from ostler.core.prompt import Prompt, TextContent
from ostler.core.protocols import Backend, Session, Turn
from ostler.core.sessions import OpenSessionRequest, TurnEndReason
from ostler.core.tools import ToolCall, ToolResult
from ostler.models.client_wrapper import ModelClientWrapper
from ostler.models.model_types import ModelClient
from ostler.policy.verdict import Profile

ApprovalCallback = Callable[[PermissionAsked], Awaitable[Decision | bool]]


class SessionFlags(TypedDict, total=False):
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


class CompletedCall(msgspec.Struct, frozen=True):
    """A call and what became of it."""

    call: ToolCall
    result: ToolResult


class TurnResult(msgspec.Struct, frozen=True):
    """A turn that is over: the answer, why it ended, the calls with their results, and every event in order."""

    answer: str
    ended: TurnEnded
    tools: tuple[CompletedCall, ...]
    events: tuple[Event, ...]

    @property
    def reason(self) -> TurnEndReason:
        """`done`, `limit`, `cancelled`, `timeout` or `failed`."""
        return self.ended.reason


class Conversation:
    """An open session. `notes` are the lines that a person at a terminal would have been told."""

    def __init__(self, session: Session, notes: list[str], ask: ApprovalCallback | None) -> None:
        self.session = session
        self.notes = notes
        self._ask = ask
        self._approval_tasks: set[asyncio.Task[None]] = set()
        self._abandoned_turn: Turn | None = None
        self._prompt_count = 0

    @property
    def id(self) -> str:
        """What `resume` takes to go on with it later."""
        return self.session.id

    async def run(self, prompt: str | Prompt) -> TurnResult:
        """Play one turn to its end; whoever cancels this call cancels the turn."""
        events = [event async for event in self.stream(prompt)]
        return _turn_result(events)

    async def stream(self, prompt: str | Prompt) -> AsyncIterator[Event]:
        """The events of one turn as they happen; the last is its `TurnEnded`."""
        asked = self._make_prompt(prompt)
        await self._wait_for_abandoned_turn()
        with closing(self.session.subscribe(since=2**62)) as reading:
            turn = self.session.start(asked)
            try:
                async for envelope in reading:
                    self._answer(envelope)
                    yield envelope.event
                    if isinstance(envelope.event, TurnEnded) and envelope.event.turn_id == turn.id:
                        return
            finally:
                self._abandoned_turn = turn
                await _cancel_and_wait(turn)
                for asking in self._approval_tasks:
                    asking.cancel()

    async def _wait_for_abandoned_turn(self) -> None:
        """A stream whose loop was left is closed by the event loop: one round to hear of it, and one to begin."""
        for _ in range(2):
            await asyncio.sleep(0)
        if self._abandoned_turn:
            await self._abandoned_turn.wait()

    def _make_prompt(self, prompt: str | Prompt) -> Prompt:
        if isinstance(prompt, Prompt):
            return prompt
        if not str(prompt or "").strip():
            raise UsageError("there is no prompt", hint="give words, or a Prompt")
        self._prompt_count += 1
        return Prompt(f"library-{self.session.opened_after_seq}-{self._prompt_count}", (TextContent(prompt),))

    def _answer(self, envelope: Envelope) -> None:
        """Asks go to whoever was given for them; questions to nobody."""
        match envelope.event:
            case PermissionAsked() as asked if self._ask:
                task = asyncio.create_task(self._decide(asked, self._ask), name="ask")
                self._approval_tasks.add(task)
                task.add_done_callback(self._approval_tasks.discard)
            case QuestionAsked(question):
                self.session.answer(question.id, QuestionReply("decline"))
            case _:
                pass

    async def _decide(self, request: PermissionAsked, ask: ApprovalCallback) -> None:
        """A callback that fails is a refusal that says so; nothing waits for an answer that will not come."""
        try:
            said = await ask(request)
        except Exception as error:
            said = Decision("deny", by="person", feedback=f"the callback failed: {type(error).__name__}: {error}")
        decision = said if isinstance(said, Decision) else Decision("allow" if said else "deny", by="person")
        self.session.answer(request.ask_id, decision)


@asynccontextmanager
async def open_session(
    cwd: str = ".",
    *,
    model: str | ModelClient = "",
    backend: Backend | None = None,
    base_url: str = "",
    api_key: str = "",
    ask: ApprovalCallback | None = None,
    resume: str = "",
    **flags: Unpack[SessionFlags],
) -> AsyncIterator[Conversation]:
    """A session on a folder, closed at the end of the block.

    `model` is a profile's or model's name, or a client of your own; without one, what `ostler run` would take.
    `backend` thinks in place of the engine. Where `ask` is given, what needs consent is asked there; else refused.
    """
    notes: list[str] = []
    _check_argument("model", model, ("name", "context_limit", "stream"), str)
    _check_argument("backend", backend, ("open", "run_turn", "apply", "aclose"), type(None))
    names = {"model": model if isinstance(model, str) else "", "base_url": base_url, "api_key": api_key}
    options = _make_options(cwd, {name: value for name, value in names.items() if value}, flags)
    choice = None if isinstance(model, str) else _fixed_model(model)
    manager = LocalSessionManager(options, notes.append, choice, backend)
    session = await manager.open(
        OpenSessionRequest(cwd, "library" if backend else "", resume=resume, interactive=ask is not None)
    )
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
    **flags: Unpack[SessionFlags],
) -> TurnResult:
    """One prompt in a session of its own, for code that is not asynchronous."""

    async def play() -> TurnResult:
        async with open_session(
            cwd, model=model, backend=backend, base_url=base_url, api_key=api_key, **flags
        ) as conversation:
            return await conversation.run(prompt)

    if _in_event_loop():  # asyncio's own complaint does not say what to do instead
        raise UsageError(
            "ostler.run cannot wait inside asynchronous code",
            hint="there, as in a notebook: async with ostler.open_session(…) as conversation",
        )
    return asyncio.run(play())


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _check_argument(argument: str, value: object, attributes: tuple[str, ...], other_type: type) -> None:
    """What is no such thing is told here, not in the middle of a turn."""
    lacks = [name for name in attributes if not hasattr(value, name)]
    if lacks and not isinstance(value, other_type):
        raise UsageError(
            f"what was given as {argument} has no {', '.join(lacks)}", hint="docs/python.md tells what it needs"
        )


def _make_options(cwd: str, names: dict[str, str], flags: SessionFlags) -> RunOptions:
    """The flags as the command line would have checked them."""
    if unknown := sorted(flags.keys() - SessionFlags.__annotations__.keys()):
        raise UsageError(
            f"open_session has no argument {unknown[0]!r}", hint=f"there is: {', '.join(SessionFlags.__annotations__)}"
        )
    try:
        options = msgspec.convert({"cwd": cwd, "model": names, **flags}, RunOptions)
    except msgspec.ValidationError as error:
        raise UsageError(f"an argument of open_session is wrong: {error}") from None
    if options.profile not in ("", *get_args(Profile)):
        raise UsageError(f"there is no profile {options.profile!r}", hint=f"there is: {', '.join(get_args(Profile))}")
    _check_limits(flags)
    return msgspec.structs.replace(options, write=options.write or options.yolo)


def _check_limits(flags: SessionFlags) -> None:
    """A limit that is given is one: nothing and less would mean none, or no turn at all."""
    for name in ("max_steps", "max_tokens", "max_cost", "max_time"):
        least, most = (1, sys.maxsize) if name in ("max_steps", "max_tokens") else (sys.float_info.min, 1e9)
        if name in flags and not least <= flags[name] <= most:
            raise UsageError(
                f"{name}={flags[name]} limits nothing",
                hint="give a whole number from 1 on" if least == 1 else "give more than 0 and at most 1e9",
            )


def _fixed_model(client: ModelClient) -> ModelChoice:
    """A client that was handed in is the only model there is."""

    def make(name: str) -> ModelClient:
        if name not in ("", client.name):
            raise UsageError(f"this session was opened with the model {client.name!r} alone, there is no {name[:80]!r}")
        return _BorrowedModel(client)

    return ModelChoice(f"{client.name}, given by the program", make)


class _BorrowedModel(ModelClientWrapper):
    """A client that whoever made it also closes."""

    async def aclose(self) -> None:
        """Not ours to close."""


async def _cancel_and_wait(turn: Turn) -> None:
    """A turn that nobody follows to its end is cancelled; one that is over stays as it is."""
    turn.cancel()
    await turn.wait()


def _turn_result(events: list[Event]) -> TurnResult:
    calls = {event.call.id: event.call for event in events if isinstance(event, ToolCalled)}
    used = [event.result for event in events if isinstance(event, ToolFinished)]
    answers = [e.message.text for e in events if isinstance(e, MessageDone) and not e.message.is_intermediate]
    ended = next(event for event in reversed(events) if isinstance(event, TurnEnded))
    tools = tuple(CompletedCall(calls[result.call_id], result) for result in used if result.call_id in calls)
    return TurnResult(answers[-1] if answers else "", ended, tools, tuple(events))
