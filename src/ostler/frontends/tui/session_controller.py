"""Controls one session: passes input to it and its events to the screen. It knows no widgets."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from ostler.core.events import (
    Envelope,
    Event,
    MessageSnapshot,
    PermissionAsked,
    QuestionAnswered,
    QuestionAsked,
    SessionOpened,
    TextDelta,
    ThoughtDelta,
    TurnEnded,
    TurnStarted,
)
from ostler.core.protocols import Session
from ostler.frontends.tui.transcript.model import TranscriptModel
from ostler.interaction.chat_exit import ChatExit
from ostler.interaction.completion import CompletionSource
from ostler.interaction.event_feed import EventFeed
from ostler.interaction.open_requests import OpenRequests
from ostler.interaction.reply_speed import ReplySpeed
from ostler.interaction.services import CommandServices, current_title
from ostler.interaction.session_chat import SessionChat
from ostler.interaction.turn_queue import new_id
from ostler.rendering.screen_blocks import DiffBlock, LinesBlock
from ostler.rendering.wait_notices import wait_notice
from ostler.text.durations import elapsed
from ostler.text.sanitise import sanitise

if TYPE_CHECKING:
    from ostler.frontends.tui.live_sessions import LiveSession

BUSY_HINT = "something is running; press Esc to cancel it first, or leave it running and open another session (F5)"
SLICE_SECONDS = 0.008  # how long stored events are read before keys are handled again
WARNED_SECONDS = 3.0
PLAIN_OUTCOMES = ("allow", "deny", "cancel")  # the result of the call shows these


class SessionController(SessionChat):
    """Handles the input and the events of one session."""

    def __init__(
        self,
        session: Session,
        services: CommandServices,
        live: "LiveSession",
        model: TranscriptModel,
        themes: Sequence[str],
    ) -> None:
        """`live` passes on what the screen may show of this session."""
        super().__init__(session, services, live, BUSY_HINT)
        self.completion = CompletionSource(services, self.commands, themes)
        self.requests = OpenRequests(self.input.answer)
        self.feed = EventFeed()
        self.speed = ReplySpeed()
        self.waiting = ""  # why the model or agent is silent
        self.last_turn = ""  # how the last turn ended
        self.news = ""  # the last event in words, or how the last turn ended
        self._live = live
        self.model = model
        self._following: asyncio.Task[None] | None = None
        self._caught_up = asyncio.Event()
        self._warned_at = float("-inf")

    async def start(self) -> None:
        """Show the session and follow it."""
        self.load()
        records = self.session.records()
        self.model.load(records, records.index_after(self.session.opened_after_seq))
        self._following = asyncio.create_task(self._follow(self.session.subscribe(0)), name="follow")
        self._following.add_done_callback(self._on_session_end)
        self.on_change()

    async def aclose(self) -> None:
        """Cancel everything and close the session."""
        if self._following:
            self._following.remove_done_callback(self._on_session_end)
        await self.turns.aclose()
        if self._following:
            await asyncio.wait([self._following])
            self._following.result()

    def _on_session_end(self, _: object) -> None:
        self._live.leave(ChatExit(1))

    # -- events --------------------------------------------------------------------------------------------------

    async def _follow(self, envelopes: AsyncIterator[Envelope]) -> None:
        slice_end = time.monotonic() + SLICE_SECONDS
        async for envelope in envelopes:
            if envelope.seq <= self.session.opened_after_seq:
                self.commands.on_event(envelope)
            else:
                self._caught_up.set()
                self._on_envelope(envelope)
            if time.monotonic() > slice_end:
                await asyncio.sleep(0)  # stored events come without a pause
                slice_end = time.monotonic() + SLICE_SECONDS

    def _on_envelope(self, envelope: Envelope) -> None:
        event = envelope.event
        self.model.apply(envelope)
        self.speed.on_event(envelope)
        if isinstance(event, TextDelta | ThoughtDelta | MessageSnapshot):
            if self.waiting:
                self.waiting = ""
                self._live.show_status()
            return
        self.commands.on_event(envelope)
        if self.feed.on_event(envelope) and not isinstance(event, SessionOpened):
            self.news = self.feed.last
        self.waiting = wait_notice(event)
        self._close_or_add_request(event)
        self.turns.on_event(event)
        self.on_event(event)

    def _close_or_add_request(self, event: Event) -> None:
        closed = self.requests.on_event(event)
        if closed and closed.outcome not in PLAIN_OUTCOMES:
            self.model.add(LinesBlock(f"{closed.id}/outcome", True, (f"  → {closed.outcome}",), ("dim",)))
        if closed or isinstance(event, PermissionAsked | QuestionAsked):
            self._live.show_requests()

    def on_event(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self.last_turn = ""
            case TurnEnded(_, reason):
                self.last_turn = reason
                if self.turn_started_at:  # otherwise it started in an earlier process
                    took = elapsed(time.monotonic() - self.turn_started_at)
                    self.news = f"done in {took}" if reason == "done" else f"{reason} after {took}"
            case _:
                pass
        super().on_event(event)

    def on_change(self) -> None:
        super().on_change()
        self._live.show_status()

    # -- input ---------------------------------------------------------------------------------------------------

    async def submit(self, text: str, pasted: str = "", *, steering: bool = False) -> None:
        """Handle what the user sent."""
        if text.lstrip().startswith("/"):
            await self._caught_up.wait()  # commands need the stored events
        await (self.input.steer(text, pasted) if steering else self.input.submit(text, pasted))
        self._live.show_status()

    def answer(self, line: str) -> None:
        """Handle an answer to the first open request, or to one of its steps."""
        if self.requests.first is not None and not self.requests.is_first_answered:
            self.requests.submit(line)
            self._live.show_requests()
            self._live.show_status()

    def go_back(self) -> None:
        """Show the step before the current one of the first open request."""
        if self.requests.go_back():
            self._live.show_requests()

    @property
    def title(self) -> str:
        """The title of the session; before it has one, the start of its first prompt."""
        return current_title(self.session) or "new session"

    @property
    def warned(self) -> bool:
        """Whether the user was just told that the same key again quits."""
        return time.monotonic() - self._warned_at < WARNED_SECONDS

    def interrupt(self) -> None:
        """Cancel what is running; the second time, quit. If nothing is running, warn first."""
        if self.turns.cancel():
            again, self._cancelled = self._cancelled, True
        else:
            again, self._warned_at = self.warned, time.monotonic()
            asyncio.get_running_loop().call_later(WARNED_SECONDS, self._live.show_status)
        if again:
            self._live.leave(ChatExit(0))
        self._live.show_status()

    async def next_mode(self) -> None:
        if not self.requests:
            self.show_notice([await self.commands.info.next_mode()])
            self._live.show_status()

    # -- what the user's input shows -----------------------------------------------------------------------------

    def echo(self, line: str) -> None:
        self.model.add_prompt(line)

    def show_notice(self, lines: Sequence[str]) -> None:
        if lines:
            self.model.add(LinesBlock(new_id(), True, tuple(f"  {sanitise(line)}" for line in lines), ("dim",)))

    def show_steered(self, text: str) -> None:
        """Do nothing: the event of the session is shown."""

    def ask(self, question: QuestionAsked) -> None:
        self.requests.on_event(question)
        self._live.show_requests()
        self._live.show_status()

    def close_question(self, answer: QuestionAnswered) -> None:
        self.requests.on_event(answer)
        self._live.show_requests()

    def show_lines(self, lines: Sequence[str]) -> None:
        self.model.add(LinesBlock(new_id(), True, tuple(lines)))

    def show_diff(self, diff: str) -> None:
        self.model.add(DiffBlock(new_id(), True, diff))

    def set_theme(self, name: str) -> None:
        self._live.screen.set_theme(name)

    def toggle_details(self) -> None:
        self._live.screen.toggle_details()

    def leave(self, chat_exit: ChatExit) -> None:
        self._live.leave(chat_exit)
