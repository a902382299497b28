"""The public Python API: `open_session`, `run` and their result types."""

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
from ostler.core.sessions import OpenSessionRequest, Profile, TurnEndReason
from ostler.core.tools import ToolCall, ToolResult
from ostler.models.client_wrapper import ModelClientWrapper
from ostler.models.model_types import ModelClient

ApprovalCallback = Callable[[PermissionAsked], Awaitable[Decision | bool]]


class SessionFlags(TypedDict, total=False):
    """The flags of `ostler run`, with the same meaning."""

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
    """A tool call and its result."""

    call: ToolCall
    result: ToolResult


class TurnResult(msgspec.Struct, frozen=True):
    """A finished turn: the answer, how it ended, the tool calls with results, and all events in order."""

    answer: str
    ended: TurnEnded
    tools: tuple[CompletedCall, ...]
    events: tuple[Event, ...]

    @property
    def reason(self) -> TurnEndReason:
        """`done`, `limit`, `cancelled`, `timeout` or `failed`."""
        return self.ended.reason


class Conversation:
    """An open session. `notes` are the messages that the command line would print."""

    def __init__(self, session: Session, notes: list[str], ask: ApprovalCallback | None) -> None:
        self.session = session
        self.notes = notes
        self._ask = ask
        self._approval_tasks: set[asyncio.Task[None]] = set()
        self._abandoned_turn: Turn | None = None
        self._prompt_count = 0

    @property
    def id(self) -> str:
        """The session id; pass it as `resume` to continue the session later."""
        return self.session.id

    async def run(self, prompt: str | Prompt) -> TurnResult:
        """Run one turn and return its result. Cancelling the call cancels the turn."""
        events = [event async for event in self.stream(prompt)]
        return _turn_result(events)

    async def stream(self, prompt: str | Prompt) -> AsyncIterator[Event]:
        """Run one turn and yield its events as they happen; the last one is `TurnEnded`."""
        request = self._make_prompt(prompt)
        await self._wait_for_abandoned_turn()
        with closing(self.session.subscribe(since=2**62)) as subscription:
            turn = self.session.start(request)
            try:
                async for envelope in subscription:
                    self._answer(envelope)
                    yield envelope.event
                    if isinstance(envelope.event, TurnEnded) and envelope.event.turn_id == turn.id:
                        return
            finally:
                self._abandoned_turn = turn
                await _cancel_and_wait(turn)
                for task in self._approval_tasks:
                    task.cancel()

    async def _wait_for_abandoned_turn(self) -> None:
        """Wait for a turn whose stream the caller left; the event loop needs two iterations to close the stream."""
        for _ in range(2):
            await asyncio.sleep(0)
        if self._abandoned_turn:
            await self._abandoned_turn.wait()

    def _make_prompt(self, prompt: str | Prompt) -> Prompt:
        if isinstance(prompt, Prompt):
            return prompt
        if not str(prompt or "").strip():
            raise UsageError("no prompt", hint="pass a text or a Prompt")
        self._prompt_count += 1
        return Prompt(f"library-{self.session.opened_after_seq}-{self._prompt_count}", (TextContent(prompt),))

    def _answer(self, envelope: Envelope) -> None:
        """Send approval requests to the `ask` callback; decline questions."""
        match envelope.event:
            case PermissionAsked() as request if self._ask:
                task = asyncio.create_task(self._decide(request, self._ask), name="ask")
                self._approval_tasks.add(task)
                task.add_done_callback(self._approval_tasks.discard)
            case QuestionAsked(question):
                self.session.answer(question.id, QuestionReply("decline"))
            case _:
                pass

    async def _decide(self, request: PermissionAsked, ask: ApprovalCallback) -> None:
        """Answer a request with the callback's result; if the callback raises, deny with the error as feedback."""
        try:
            answer = await ask(request)
        except Exception as error:
            answer = Decision("deny", by="person", feedback=f"the callback failed: {type(error).__name__}: {error}")
        decision = answer if isinstance(answer, Decision) else Decision("allow" if answer else "deny", by="person")
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
    """Open a session in a folder; it is closed at the end of the block.

    `model` is the name of a profile or model, or your own client; by default the same model as in `ostler run`.
    `backend` replaces the engine. `ask` answers approval requests; without it they are denied.
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
    """Run one prompt in its own session, from synchronous code."""

    async def run_prompt() -> TurnResult:
        async with open_session(
            cwd, model=model, backend=backend, base_url=base_url, api_key=api_key, **flags
        ) as conversation:
            return await conversation.run(prompt)

    if _in_event_loop():  # asyncio's own error does not say what to do instead
        raise UsageError(
            "ostler.run cannot be used in asynchronous code or a notebook",
            hint="use: async with ostler.open_session(…) as conversation",
        )
    return asyncio.run(run_prompt())


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _check_argument(argument: str, value: object, attributes: tuple[str, ...], other_type: type) -> None:
    """Raise `UsageError` if the value lacks an attribute, instead of failing in the middle of a turn."""
    missing = [name for name in attributes if not hasattr(value, name)]
    if missing and not isinstance(value, other_type):
        raise UsageError(f"argument {argument} has no {', '.join(missing)}", hint="see docs/python.md")


def _make_options(cwd: str, names: dict[str, str], flags: SessionFlags) -> RunOptions:
    """Validate the flags like the command line and return them as `RunOptions`."""
    if unknown := sorted(flags.keys() - SessionFlags.__annotations__.keys()):
        raise UsageError(
            f"open_session has no argument {unknown[0]!r}", hint=f"available: {', '.join(SessionFlags.__annotations__)}"
        )
    try:
        options = msgspec.convert({"cwd": cwd, "model": names, **flags}, RunOptions)
    except msgspec.ValidationError as error:
        raise UsageError(f"invalid argument of open_session: {error}") from None
    if options.profile not in ("", *get_args(Profile)):
        raise UsageError(f"unknown profile {options.profile!r}", hint=f"available: {', '.join(get_args(Profile))}")
    _check_limits(flags)
    return msgspec.structs.replace(options, write=options.write or options.yolo)


def _check_limits(flags: SessionFlags) -> None:
    """Raise `UsageError` if a limit is zero, negative or too large."""
    for name in ("max_steps", "max_tokens", "max_cost", "max_time"):
        minimum, maximum = (1, sys.maxsize) if name in ("max_steps", "max_tokens") else (sys.float_info.min, 1e9)
        if name in flags and not minimum <= flags[name] <= maximum:
            raise UsageError(
                f"invalid limit {name}={flags[name]}",
                hint="use an integer of at least 1" if minimum == 1 else "use a number above 0 and up to 1e9",
            )


def _fixed_model(client: ModelClient) -> ModelChoice:
    """Return a choice that always uses the given client."""

    def make(name: str) -> ModelClient:
        if name not in ("", client.name):
            raise UsageError(f"unknown model {name[:80]!r}; this session was opened with {client.name!r} only")
        return _BorrowedModel(client)

    return ModelChoice(f"{client.name}, set by the program", make)


class _BorrowedModel(ModelClientWrapper):
    """A client that the caller created and closes."""

    async def aclose(self) -> None:
        """Do nothing: the caller closes the client."""


async def _cancel_and_wait(turn: Turn) -> None:
    """Cancel the turn if it is still running and wait for its end."""
    turn.cancel()
    await turn.wait()


def _turn_result(events: list[Event]) -> TurnResult:
    calls = {event.call.id: event.call for event in events if isinstance(event, ToolCalled)}
    results = [event.result for event in events if isinstance(event, ToolFinished)]
    messages = [event.message for event in events if isinstance(event, MessageDone)]
    ended = next(event for event in reversed(events) if isinstance(event, TurnEnded))
    answers = [message.text for message in messages if not message.is_intermediate]
    if messages and messages[-1].is_intermediate and ended.reason == "done":  # an ACP agent may end with a call
        answers.append(messages[-1].text)
    tools = tuple(CompletedCall(calls[result.call_id], result) for result in results if result.call_id in calls)
    return TurnResult(answers[-1] if answers else "", ended, tools, tuple(events))
