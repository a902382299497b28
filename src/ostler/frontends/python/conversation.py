"""A session for a program: runs turns, collects their results and passes approval requests to a callback."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing

import msgspec

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
from ostler.core.protocols import Session, Turn
from ostler.core.sessions import TurnEndReason
from ostler.core.tools import ToolCall, ToolResult

ApprovalCallback = Callable[[PermissionAsked], Awaitable[Decision | bool]]


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
        self._earlier_turn = session.turn
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
        await self._finish_earlier_turn()
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

    async def _finish_earlier_turn(self) -> None:
        """Wait for a turn of an earlier process that a server goes on with, and answer its requests."""
        turn, self._earlier_turn = self._earlier_turn, None
        if turn is None or self.session.turn is not turn:
            return
        with closing(self.session.subscribe(since=self.session.opened_after_seq)) as subscription:
            async for envelope in subscription:
                self._answer(envelope)
                if isinstance(envelope.event, TurnEnded) and envelope.event.turn_id == turn.id:
                    return

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
