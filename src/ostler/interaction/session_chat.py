"""What every chat does with its session: it starts queued prompts, applies results of commands, notifies the user."""

import time
from collections.abc import Sequence
from typing import Protocol

from ostler.core.events import Event, InfoChanged, PermissionAsked, QuestionAsked, TurnEnded, TurnStarted
from ostler.core.protocols import Session
from ostler.interaction.chat_exit import ChatExit
from ostler.interaction.dispatcher import CommandDispatcher
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
from ostler.interaction.user_input import BUSY_HINT, InputView, UserInput

NEW_SESSION_HINT = "new sessions use it; start one with /new"
ALERT_AFTER_SECONDS = 5.0


class ChatTerminal(Protocol):
    """The user's terminal, as far as every chat needs it."""

    def restore_draft(self, text: str) -> None:
        """Put text that was typed but not sent back into the editor."""

    def alert(self, message: str) -> None:
        """Notify the user that input is needed, with a short message."""

    async def edit(self, path: str) -> bool:
        """Open a file in the user's editor. Return False if that failed."""


class ChatView(InputView, Protocol):
    """What a client shows and does in its own way."""

    def show_lines(self, lines: Sequence[str]) -> None:
        """Show sanitised lines, the output of a command."""

    def show_diff(self, diff: str) -> None:
        """Show a diff that the user asked for; it is not sanitised."""

    def set_theme(self, name: str) -> None: ...

    def toggle_details(self) -> None: ...

    def leave(self, chat_exit: ChatExit) -> None: ...


class SessionChat(ChatView):
    """One session in a chat. Each client has a subclass that shows it."""

    def __init__(
        self, session: Session, services: CommandServices, terminal: ChatTerminal, busy_hint: str = BUSY_HINT
    ) -> None:
        self.session = session
        self.services = services
        self.commands = CommandDispatcher(session, services, new_id)
        self.turns = TurnQueue(session, self.on_change, self.return_unsent)
        self.input = UserInput(session, services, self.commands, self.turns, self, busy_hint)
        self.environment_labels: Sequence[str] = ()
        self.turn_started_at = 0.0  # 0 until a turn started in this process
        self._terminal = terminal
        self._cancelled = False  # the next interrupt quits
        self._unsent = ""  # prompts that an earlier process could not send

    def on_change(self) -> None:
        """Start the next queued item, or wait for the user."""
        if not self.turns.busy:
            self._cancelled = False
            self.turns.start_next()

    def load(self) -> None:
        """Load what is known before the first event."""
        self._unsent = self.turns.restore_queue() or self.services.take_unsent_prompts()
        self.environment_labels = self.services.environment_labels()

    def on_event(self, event: Event) -> None:
        """Do what follows from a new event, which was shown."""
        match event:
            case TurnStarted(_, prompt):
                self.turn_started_at = time.monotonic()
                self.show_notice(self.input.notices.get(prompt.id, []))
            case TurnEnded(_, reason):
                self.environment_labels = self.services.environment_labels()
                if reason == "cancelled" and (unsent := self.turns.drain()):
                    self._terminal.restore_draft(unsent)
                if self.turn_started_at and time.monotonic() - self.turn_started_at >= ALERT_AFTER_SECONDS:
                    self._terminal.alert(f"Ostler: {reason}")
            case PermissionAsked(_, permission):
                self._terminal.alert(f"Ostler needs approval: {permission.title[:100]}")
            case QuestionAsked():
                self._terminal.alert("Ostler has a question")
            case InfoChanged() if unsent := self._unsent:  # the last event of opening a session
                self._unsent = ""
                self.show_notice(["not sent because Ostler exited:"])
                self._terminal.restore_draft(unsent)
            case _:
                pass
        self.on_change()

    def return_unsent(self, reason: str, text: str) -> None:
        self.show_notice([reason])
        if text:
            self._terminal.restore_draft(text)

    async def apply_result(self, result: SlashCommandResult) -> None:
        match result:
            case ShowLines(lines, draft):
                self.show_lines(lines)
                if draft:
                    self.input.returned_prompt = draft
                    self._terminal.restore_draft(draft)
            case ShowDiff(diff):
                self.show_diff(diff)
            case StartTurn():
                self.input.send(result)
            case EditFile(path):
                edited = await self._terminal.edit(path)
                failure = f"no editor could be started for {path}; set EDITOR to your editor"
                self.show_notice([NEW_SESSION_HINT if edited else failure])
            case ChangeDisplay("theme", value):
                self.set_theme(value)
            case ChangeDisplay():
                self.toggle_details()
            case SwitchSession(session):
                self.leave(ChatExit(None, session))
            case Quit():
                self.leave(ChatExit(0))
