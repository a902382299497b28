"""Controls one session: passes input to it and its events to the screen. It knows no widgets."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from ostler.core.events import (
    Envelope,
    Event,
    InfoChanged,
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
from ostler.core.permission import Decision, QuestionReply
from ostler.core.protocols import Session
from ostler.frontends.tui.transcript.model import TranscriptModel
from ostler.interaction.chat_exit import ChatExit
from ostler.interaction.completion import CompletionSource
from ostler.interaction.dispatcher import CommandDispatcher
from ostler.interaction.event_feed import EventFeed
from ostler.interaction.open_requests import OpenRequests
from ostler.interaction.reply_speed import ReplySpeed
from ostler.interaction.results import (
    ChangeDisplay,
    EditFile,
    Quit,
    ShowDiff,
    ShowLines,
    SlashCommandResult,
    StartTurn,
    SwitchSession,
)
from ostler.interaction.services import CommandServices
from ostler.interaction.turn_queue import TurnQueue, new_id
from ostler.interaction.user_input import UserInput
from ostler.rendering.screen_blocks import DiffBlock, LinesBlock
from ostler.rendering.wait_notices import wait_notice
from ostler.text.durations import elapsed
from ostler.text.sanitise import sanitise
from ostler.text.session_title import session_title

BUSY_HINT = "something is running; press Esc to cancel it first, or leave it running and open another session (F5)"
NEW_SESSION_HINT = "new sessions use it; start one with /new"
SLICE_SECONDS = 0.008  # how long stored events are read before keys are handled again
ALERT_AFTER_SECONDS = 5.0
WARNED_SECONDS = 3.0
PLAIN_OUTCOMES = ("allow", "deny", "cancel")  # the result of the call shows these


class ChatView(Protocol):
    """What the controller needs of the screen."""

    def show_status(self) -> None:
        """Show the current status; called after every event except text."""

    def show_requests(self) -> None:
        """Show the first open request, or close the dialog if there is none."""

    def restore_draft(self, text: str) -> None: ...

    def alert(self, message: str) -> None:
        """Notify the user if the window has no focus."""

    def set_theme(self, name: str) -> None: ...

    def toggle_details(self) -> None: ...

    async def edit_file(self, path: str) -> bool: ...

    def leave(self, chat_exit: ChatExit) -> None: ...


class SessionController:
    """Handles the input and the events of one session."""

    def __init__(
        self, session: Session, services: CommandServices, view: ChatView, model: TranscriptModel, themes: Sequence[str]
    ) -> None:
        self.session = session
        self.services = services
        self.commands = CommandDispatcher(session, services, new_id)
        self.completion = CompletionSource(services, self.commands, themes)
        self.turns = TurnQueue(session, self._continue, self.return_unsent)
        self.input = UserInput(session, services, self.commands, self.turns, self, BUSY_HINT)
        self.requests = OpenRequests(self._answer)
        self.feed = EventFeed()
        self.speed = ReplySpeed()
        self.waiting = ""  # why the model or agent is silent
        self.turn_started_at = 0.0
        self.last_turn = ""  # how the last turn ended
        self.news = ""  # the last event in words, or how the last turn ended
        self.environment_labels: Sequence[str] = ()
        self._view = view
        self.model = model
        self._following: asyncio.Task[None] | None = None
        self._caught_up = asyncio.Event()
        self._cancelled = False
        self._warned_at = float("-inf")
        self._unsent = ""  # prompts that an earlier process could not send

    async def start(self) -> None:
        """Show the session and follow it."""
        self._unsent = self.turns.restore_queue() or self.services.take_unsent_prompts()
        records = self.session.records()
        self.model.load(records, records.index_after(self.session.opened_after_seq))
        self.environment_labels = self.services.environment_labels()
        self._following = asyncio.create_task(self._follow(self.session.subscribe(0)), name="follow")
        self._following.add_done_callback(self._on_session_end)
        self._continue()

    async def aclose(self) -> None:
        """Cancel everything and close the session."""
        if self._following:
            self._following.remove_done_callback(self._on_session_end)
        await self.turns.aclose()
        if self._following:
            await asyncio.wait([self._following])
            self._following.result()

    def _on_session_end(self, _: object) -> None:
        self._view.leave(ChatExit(1))

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
                self._view.show_status()
            return
        self.commands.on_event(envelope)
        if self.feed.on_event(envelope) and not isinstance(event, SessionOpened):
            self.news = self.feed.last
        self.waiting = wait_notice(event)
        self._close_or_add_request(event)
        self.turns.on_event(event)
        self._on_event(event)

    def _close_or_add_request(self, event: Event) -> None:
        closed = self.requests.on_event(event)
        if closed and closed.outcome not in PLAIN_OUTCOMES:
            self.model.add(LinesBlock(f"{closed.id}/outcome", True, (f"  → {closed.outcome}",), ("dim",)))
        if closed or isinstance(event, PermissionAsked | QuestionAsked):
            self._view.show_requests()

    def _on_event(self, event: Event) -> None:
        match event:
            case TurnStarted(_, prompt):
                self.turn_started_at, self.last_turn = time.monotonic(), ""
                self.show_notice(self.input.notices.get(prompt.id, []))
            case TurnEnded(_, reason):
                self._on_turn_end(reason)
            case PermissionAsked(_, permission):
                self._view.alert(f"Ostler needs approval: {permission.title[:100]}")
            case QuestionAsked():
                self._view.alert("Ostler has a question")
            case InfoChanged() if unsent := self._unsent:  # the last event of opening a session
                self._unsent = ""
                self.show_notice(["not sent because Ostler exited:"])
                self._view.restore_draft(unsent)
            case _:
                pass
        self._continue()

    def _on_turn_end(self, reason: str) -> None:
        self.last_turn = reason
        if self.turn_started_at:  # otherwise it started in an earlier process
            took = elapsed(time.monotonic() - self.turn_started_at)
            self.news = f"done in {took}" if reason == "done" else f"{reason} after {took}"
        self.environment_labels = self.services.environment_labels()
        if reason == "cancelled" and (unsent := self.turns.drain()):
            self._view.restore_draft(unsent)
        if self.turn_started_at and time.monotonic() - self.turn_started_at >= ALERT_AFTER_SECONDS:
            self._view.alert(f"Ostler: {reason}")

    def _continue(self) -> None:
        """Start the next queued item, or wait for the user."""
        if not self.turns.busy:
            self._cancelled = False
            self.turns.start_next()
        self._view.show_status()

    # -- input ---------------------------------------------------------------------------------------------------

    async def submit(self, text: str, pasted: str, *, steering: bool = False) -> None:
        """Handle what the user sent."""
        if text.lstrip().startswith("/"):
            await self._caught_up.wait()  # commands need the stored events
        await (self.input.steer(text, pasted) if steering else self.input.submit(text, pasted))
        self._view.show_status()

    def answer(self, line: str) -> None:
        """Handle an answer to the first open request, or to one of its steps."""
        if self.requests.first is not None and not self.requests.is_first_answered:
            self.requests.submit(line)
            self._view.show_requests()
            self._view.show_status()

    def go_back(self) -> None:
        """Show the step before the current one of the first open request."""
        if self.requests.go_back():
            self._view.show_requests()

    def _answer(self, ask_id: str, answer: Decision | QuestionReply) -> bool:
        return self.input.answer(ask_id, answer)

    @property
    def title(self) -> str:
        """The title of the session; before it has one, the start of its first prompt."""
        session = self.session
        if session.state.title:
            return session.state.title
        records = session.records()
        first = next(iter(records.indexes_of(["turn_started"])), None)
        event = records[first].event if first is not None else None
        return session_title(event.prompt.text) if isinstance(event, TurnStarted) else "new session"

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
            asyncio.get_running_loop().call_later(WARNED_SECONDS, self._view.show_status)
        if again:
            self._view.leave(ChatExit(0))
        self._view.show_status()

    async def next_mode(self) -> None:
        if not self.requests:
            self.show_notice([await self.commands.next_mode()])
            self._view.show_status()

    async def run_command(self, line: str) -> None:
        """Run a slash command that a key, a menu or a screen chose."""
        await self.submit(line, "")

    # -- what the user's input shows -----------------------------------------------------------------------------

    def echo(self, line: str) -> None:
        self.model.add_prompt(line)

    def show_notice(self, lines: Sequence[str]) -> None:
        if lines:
            self.model.add(LinesBlock(new_id(), True, tuple(f"  {sanitise(line)}" for line in lines), ("dim",)))

    def show_steered(self, text: str) -> None:
        """Do nothing: the event of the session is shown."""

    def return_unsent(self, reason: str, text: str) -> None:
        self.show_notice([reason])
        if text:
            self._view.restore_draft(text)

    def ask(self, question: QuestionAsked) -> None:
        self.requests.on_event(question)
        self._view.show_requests()
        self._view.show_status()

    def close_question(self, answer: QuestionAnswered) -> None:
        self.requests.on_event(answer)
        self._view.show_requests()

    async def apply_result(self, result: SlashCommandResult) -> None:
        match result:
            case ShowLines(lines, draft):
                self.model.add(LinesBlock(new_id(), True, lines))
                if draft:
                    self.input.returned_prompt = draft
                    self._view.restore_draft(draft)
            case ShowDiff(diff):
                self.model.add(DiffBlock(new_id(), True, diff))
            case StartTurn():
                self.input.send(result)
            case EditFile(path):
                edited = await self._view.edit_file(path)
                failure = f"no editor could be started for {path}; set EDITOR to your editor"
                self.show_notice([NEW_SESSION_HINT if edited else failure])
            case ChangeDisplay("theme", value):
                self._view.set_theme(value)
            case ChangeDisplay():
                self._view.toggle_details()
            case SwitchSession(session):
                self._view.leave(ChatExit(None, session))
            case Quit():
                self._view.leave(ChatExit(0))
