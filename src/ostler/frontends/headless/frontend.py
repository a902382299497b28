"""Runs one prompt, prints the events and returns an exit status; never asks and never reads a terminal."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from ostler.core.errors import Fault, OstlerError
from ostler.core.events import TurnEnded
from ostler.core.prompt import Prompt, TextContent
from ostler.core.protocols import EventSubscription, Session, SessionManager, Turn
from ostler.core.sessions import OpenSessionRequest, TurnEndReason
from ostler.frontends.headless.outputs import RunOutput
from ostler.frontends.headless.summary import RunSummary, SummaryBuilder
from ostler.interaction.signals import ALL_STOP_SIGNALS, handled_signals

if TYPE_CHECKING:
    from ostler.frontends.headless.answer_validation import AnswerValidator

MakePrompt = Callable[[Session], Awaitable[Prompt]]


class HeadlessFrontend:
    """Runs one prompt and prints its events; never asks and never reads a terminal."""

    def __init__(
        self,
        opening: OpenSessionRequest,
        prompt: Prompt | MakePrompt,
        output: RunOutput,
        timeout: float | None = None,
        validator: "AnswerValidator | None" = None,
    ) -> None:
        """`prompt` may be a function that builds the prompt once the session is open."""
        self._opening = opening
        self._prompt = prompt
        self._output = output
        self._timeout = timeout
        self._validator = validator
        self._summary_builder = SummaryBuilder()
        self._turn: Turn | None = None
        self._task: asyncio.Task[Any] | None = None
        self._stop_reason: TurnEndReason | None = None

    async def run(self, manager: SessionManager) -> int:
        """Run the prompt and return the exit status. Raises `OstlerError` if the session cannot run."""
        self._task = asyncio.current_task()
        with self._stoppable():
            try:
                summary = await self._run_session(manager)
            except asyncio.CancelledError:
                if not self._stop_reason:
                    raise
                summary = self._summary_builder.summarize_stop(self._stop_reason)
            except OstlerError as error:
                if self._output.machine_readable:
                    self._output.close(self._summary_builder.summarize_error(error))
                raise
        self._output.close(summary)
        return summary.exit

    async def _run_session(self, manager: SessionManager) -> RunSummary:
        session = await manager.open(self._opening)
        self._summary_builder.session = session.id
        try:
            since = session.opened_after_seq
            if earlier := session.turn:  # of an earlier process, which a server goes on with
                await earlier.wait()
                since = session.last_seq
            with closing(session.subscribe(since)) as subscription:
                return await self._run_turns(session, subscription)
        finally:
            await session.aclose()

    async def _run_turns(self, session: Session, subscription: EventSubscription) -> RunSummary:
        prompt = self._prompt if isinstance(self._prompt, Prompt) else await self._prompt(session)
        while True:
            ended = await self._run_turn(session.start(prompt), subscription)
            if self._validator is None or ended.reason != "done":
                return self._summary_builder.summarize_turn(ended)
            message = self._validator.retry_message(self._summary_builder.answer)
            if not message:
                return self._summary_builder.summarize_turn(
                    _with_schema_error(ended, self._validator.error), self._validator.value
                )
            prompt = Prompt(f"{prompt.id}-again", (TextContent(message),))

    async def _run_turn(self, turn: Turn, subscription: EventSubscription) -> TurnEnded:
        self._turn = turn
        async for envelope in subscription:
            self._summary_builder.on_event(envelope)
            self._output.on_event(envelope)
            if isinstance(envelope.event, TurnEnded) and envelope.event.turn_id == turn.id:
                break
        return await turn.wait()

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        """Stop the run on Ctrl-C, on SIGTERM, when the terminal closes, and after the timeout."""
        loop = asyncio.get_running_loop()
        deadline = loop.call_later(self._timeout, self._stop, "timeout") if self._timeout else None
        try:
            with handled_signals(dict.fromkeys(ALL_STOP_SIGNALS, lambda: self._stop("cancelled"))):
                yield
        finally:
            if deadline:
                deadline.cancel()

    def _stop(self, reason: TurnEndReason) -> None:
        """Cancel the turn, whose events stay recorded; before the turn starts, cancel the run."""
        if self._turn:
            self._turn.cancel(reason)
        elif self._task:
            self._stop_reason = reason
            self._task.cancel()


def _with_schema_error(turn_end: TurnEnded, error: str) -> TurnEnded:
    if not error:
        return turn_end
    fault = Fault(
        "output_schema", f"the answer does not match the schema: {error}", "simplify the prompt or the schema"
    )
    return TurnEnded(turn_end.turn_id, "failed", fault, turn_end.limit)
