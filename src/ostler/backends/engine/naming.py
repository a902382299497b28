"""Names a session and sums it up beside the work: a model's own small call, which no turn waits for."""

import asyncio
from collections.abc import Callable, Coroutine

from ostler.backends.engine.guests.budget import Budget
from ostler.backends.engine.guests.digest import record
from ostler.backends.engine.guests.guest import Guest, View
from ostler.backends.engine.helpers import Helpers
from ostler.backends.engine.history import History, newest
from ostler.backends.engine.measure import byte_size
from ostler.models.words import Finished, ModelClient, Request, TextChunk, Usage, UserSaid, WasThought
from ostler.vocabulary.errors import OstlerError
from ostler.vocabulary.events import Renamed, TurnEnded, TurnStarted, UsageReported
from ostler.vocabulary.prompt import Text
from ostler.vocabulary.seams import Past, Stage

LONGEST_TITLE = 80
LONGEST_SUMMARY = 2000
MOST_TOLD = 12_000
LONGEST_REPLY = 400
# A summary is made with the third turn, and anew each time so many more were played.
FIRST_SUMMARY, SUMMARY_EVERY = 3, 5


class Naming(Guest):
    """For one session; what a person called it stays. It comes after the limits: a turn they forbid names nothing."""

    def __init__(self, helpers: Helpers, make_model: Callable[[str], ModelClient], budget: Budget) -> None:
        self._helpers = helpers
        self._budget = budget
        self._make_model = make_model
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns = 0

    async def before_step(self, view: View) -> TurnEnded | None:
        """With a turn's first step: see to whatever is due, beside it."""
        turns = sum(1 for _ in view.stage.records().of(("turn_started",)))
        if self._helpers.names and turns != self._turns:
            self._turns = turns
            self._begin(view, turns)
        return None

    def _begin(self, view: View, turns: int) -> None:
        records = view.stage.records()
        if turns == 1 and newest(records, "renamed") is None:
            self._start(self._title(view))
        elif turns >= FIRST_SUMMARY and (turns - FIRST_SUMMARY) % SUMMARY_EVERY == 0:
            self._start(self._summary(view))

    async def aclose(self) -> None:
        """Nobody waits for a title."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work, name="naming")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _title(self, view: View) -> None:
        stage = view.stage
        event = newest(stage.records(), "turn_started")
        asked = event.prompt.text[:MOST_TOLD] if isinstance(event, TurnStarted) else ""
        said = await self._ask("title", f"The conversation begins:\n\n{asked}", view)
        title = " ".join(said.split()).strip("\"'`*# .")[:LONGEST_TITLE]
        if title and newest(stage.records(), "renamed") is None:
            stage.emit(Renamed(title))

    async def _summary(self, view: View) -> None:
        stage = view.stage
        entries = History().follow(stage.records()).entries[:-1]
        said = await self._ask("summary", f"The conversation:\n\n{record(entries, MOST_TOLD)}", view)
        if said.strip():
            stage.emit(Renamed(_title_now(stage.records()), said.strip()[:LONGEST_SUMMARY]))

    async def _ask(self, name: str, words: str, view: View) -> str:
        """What a hidden agent says; a failure is no reason to disturb anybody, nor is a limit that is near."""
        role = self._helpers.role(name)
        request = Request(role.prompt, (UserSaid((Text(words),)),), max_tokens=LONGEST_REPLY)
        tokens = view.meter.worth(byte_size(role.prompt + words)) + LONGEST_REPLY
        with self._budget.beside(view, tokens) as fits:
            return await self._said(role.model or self._helpers.model, request, view.stage) if fits else ""

    async def _said(self, name: str, request: Request, stage: Stage) -> str:
        try:
            model = self._make_model(name)
        except OstlerError:
            return ""
        said: list[str] = []
        try:
            async for chunk in model.stream(request):
                if isinstance(chunk, TextChunk):
                    said.append(chunk.text)
                elif isinstance(chunk, WasThought) or chunk in (Finished("refusal"), Finished("filtered")):
                    said.clear()
                elif isinstance(chunk, Usage):
                    counts = (chunk.tokens_in, chunk.tokens_out, chunk.tokens_cached, chunk.cost)
                    stage.emit(UsageReported(model.name, *counts))
        except OstlerError:
            return ""
        finally:
            await model.aclose()
        return "".join(said)


def _title_now(records: Past) -> str:
    event = newest(records, "renamed")
    return event.title if isinstance(event, Renamed) else ""
