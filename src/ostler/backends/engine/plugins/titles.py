"""Plugin that generates the session's title and summary in the background."""

import asyncio
from collections.abc import Callable, Coroutine

from ostler.backends.engine.history import History
from ostler.backends.engine.internal_agents import InternalAgents, read_reply, usage_event
from ostler.backends.engine.plugins.budget import Budget
from ostler.backends.engine.plugins.compaction_digest import conversation_text
from ostler.backends.engine.plugins.plugin import LoopPlugin, TurnView
from ostler.backends.engine.token_estimate import byte_size
from ostler.core.errors import OstlerError
from ostler.core.events import Renamed, TurnEnded, TurnStarted
from ostler.core.prompt import TextContent
from ostler.core.protocols import BackendContext
from ostler.core.session_view import Records, latest_event
from ostler.models.model_types import (
    ModelClient,
    ModelRequest,
    UserMessage,
)

MAX_TITLE_LENGTH = 80
MAX_SUMMARY_LENGTH = 2000
MAX_INPUT_LENGTH = 12_000
MAX_REPLY_TOKENS = 400
# A summary is made in the third turn, then every `SUMMARY_EVERY` turns.
FIRST_SUMMARY, SUMMARY_EVERY = 3, 5


class TitlePlugin(LoopPlugin):
    """Works for one session; a title set by the user is kept.

    It comes after the limits in the chain, so that a turn they refuse makes no title.
    """

    def __init__(
        self, internal_agents: InternalAgents, make_model: Callable[[str], ModelClient], budget: Budget
    ) -> None:
        self._internal_agents = internal_agents
        self._budget = budget
        self._make_model = make_model
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns = 0

    async def before_step(self, view: TurnView) -> TurnEnded | None:
        """Start what is due in the turn's first step, in the background."""
        turns = sum(1 for _ in view.context.records().indexes_of(("turn_started",)))
        if self._internal_agents.makes_titles and turns != self._turns:
            self._turns = turns
            self._start_due(view, turns)
        return None

    def _start_due(self, view: TurnView, turns: int) -> None:
        records = view.context.records()
        if turns == 1 and latest_event(records, "renamed") is None:
            self._start(self._make_title(view))
        elif turns >= FIRST_SUMMARY and (turns - FIRST_SUMMARY) % SUMMARY_EVERY == 0:
            self._start(self._make_summary(view))

    async def aclose(self) -> None:
        """Cancel background work."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work, name="titles")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _make_title(self, view: TurnView) -> None:
        context = view.context
        event = latest_event(context.records(), "turn_started")
        prompt = event.prompt.text[:MAX_INPUT_LENGTH] if isinstance(event, TurnStarted) else ""
        reply = await self._ask("title", f"The conversation begins:\n\n{prompt}", view)
        title = " ".join(reply.split()).strip("\"'`*# .")[:MAX_TITLE_LENGTH]
        if title and latest_event(context.records(), "renamed") is None:
            context.emit(Renamed(title))

    async def _make_summary(self, view: TurnView) -> None:
        context = view.context
        entries = History().follow(context.records()).entries[:-1]
        reply = await self._ask("summary", f"The conversation:\n\n{conversation_text(entries, MAX_INPUT_LENGTH)}", view)
        if reply.strip():
            context.emit(Renamed(_current_title(context.records()), reply.strip()[:MAX_SUMMARY_LENGTH]))

    async def _ask(self, name: str, text: str, view: TurnView) -> str:
        """Query an internal agent. Return an empty string on failure or if the budget is too low."""
        role = self._internal_agents.role(name)
        request = ModelRequest(role.prompt, (UserMessage((TextContent(text),)),), max_tokens=MAX_REPLY_TOKENS)
        tokens = view.estimator.tokens_for(byte_size(role.prompt + text)) + MAX_REPLY_TOKENS
        with self._budget.reserve_background(view, tokens) as fits:
            return (
                await self._stream_text(role.model or self._internal_agents.model, request, view.context)
                if fits
                else ""
            )

    async def _stream_text(self, name: str, request: ModelRequest, context: BackendContext) -> str:
        try:
            model = self._make_model(name)
        except OstlerError:
            return ""
        try:
            return await read_reply(model, request, lambda usage: context.emit(usage_event(usage, model.name)))
        finally:
            await model.aclose()


def _current_title(records: Records) -> str:
    event = latest_event(records, "renamed")
    return event.title if isinstance(event, Renamed) else ""
