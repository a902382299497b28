"""Controls one session in the terminal: reads input, starts turns and commands, shows events."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from ostler.core.events import (
    Envelope,
    Event,
    InfoChanged,
    PermissionAsked,
    QuestionAnswered,
    QuestionAsked,
    TurnEnded,
    TurnStarted,
)
from ostler.core.protocols import Session
from ostler.frontends.repl.console import (
    IDLE_MENU,
    Console,
    ConsoleEvent,
    DetailsToggled,
    EscapePressed,
    ExitRequested,
    InterruptRequested,
    NextModeRequested,
    SteerEntered,
    WithdrawRequested,
)
from ostler.frontends.repl.dialogs import DialogQueue
from ostler.frontends.repl.replay_buffer import ReplayBuffer
from ostler.frontends.repl.status_line import StatusLine
from ostler.interaction.chat_exit import ChatExit
from ostler.interaction.completion import CompletionSource
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
from ostler.interaction.user_input import UserInput
from ostler.rendering.diffs import render_diff
from ostler.rendering.style import THEMES, Styler
from ostler.rendering.transcript_renderer import TranscriptRenderer
from ostler.rendering.wait_notices import WaitNotices
from ostler.rendering.wrapping import wrap_notice
from ostler.text.sanitise import sanitise

EXIT_HINT = "press Ctrl-C again to quit"
NEW_SESSION_HINT = "new sessions use it; start one with /new"
ALERT_AFTER_SECONDS = 5.0


class ChatController:
    """Handles the user's input and shows the events of one session."""

    def __init__(
        self, session: Session, console: Console, paint: Styler, services: CommandServices, details: bool = False
    ) -> None:
        self._session = session
        self._console = console
        self._paint = paint
        self._services = services
        self._scroll = TranscriptRenderer(paint)
        self._scroll.calls.full_output = details
        self._commands = CommandDispatcher(session, services, new_id)
        self._status = StatusLine(session, self._commands.usage)
        self._waiting = WaitNotices()
        self._turns = TurnQueue(session, self._continue, self.return_unsent)
        self._input = UserInput(session, services, self._commands, self._turns, self)
        self._dialogs = DialogQueue(console, paint, self._input.answer)
        self._deferred_lines: list[str] = []
        self._changed = asyncio.Event()
        self._cancelled = self._warned = False
        self._turn_started_at = 0.0
        self._chat_exit: ChatExit | None = None
        self._unsent = ""  # prompts that an earlier process could not send

    async def run(self) -> ChatExit:
        """Run until the user leaves the session."""
        self._unsent = self._turns.restore_queue() or self._services.take_unsent_prompts()
        following = asyncio.create_task(self._follow(self._session.subscribe(0)), name="follow")
        following.add_done_callback(self._on_session_end)
        self._status.environment_labels = self._services.environment_labels()
        self._console.set_completion(CompletionSource(self._services, self._commands, tuple(THEMES)))
        self._continue()
        try:
            return await self._listen()
        finally:
            following.remove_done_callback(self._on_session_end)
            await self._turns.aclose()
            await asyncio.wait([following])
            self._console.set_menu(None)
            following.result()

    def _on_session_end(self, _: object) -> None:
        """Exit because the session ended or following it failed."""
        self._console.inject(ExitRequested(1))

    def _restore_unsent(self) -> None:
        """Put prompts that an earlier process could not send back into the editor, below the session's history."""
        if unsent := self._unsent:
            self._unsent = ""
            self.show_notice(["not sent because Ostler exited:"])
            self._console.restore_draft(unsent)

    # -- events --------------------------------------------------------------------------------------------------

    async def _follow(self, envelopes: AsyncIterator[Envelope]) -> None:
        replay = ReplayBuffer(self._paint)
        async for envelope in envelopes:
            event, new = envelope.event, envelope.seq > self._session.opened_after_seq
            if new:
                self._console.show(replay.flush())
            self._scroll.show_prompts = not (self._console.echoes_input and _prompt_id(event) in self._input.notices)
            lines = self._scroll.render(event)
            self._commands.on_event(envelope)
            self._status.on_event(event)
            if not new:
                replay.add(event, lines)
                continue
            self._show(lines if self._console.has_status else [*lines, *self._waiting.render(event)])
            self._dialogs.on_event(event)
            self._show([])
            self._turns.on_event(event)
            self._on_event(event)

    def _show(self, lines: list[str]) -> None:
        """Show lines, but defer them while a dialog is open, so that nothing appears between it and its answer."""
        self._deferred_lines += lines
        if not self._dialogs and self._deferred_lines:
            deferred, self._deferred_lines = self._deferred_lines, []
            self._console.show(deferred)

    def _on_event(self, event: Event) -> None:
        match event:
            case TurnStarted(_, prompt):
                self._turn_started_at = asyncio.get_running_loop().time()
                self.show_notice(self._input.notices.get(prompt.id, []))
            case TurnEnded(_, reason):
                self._status.environment_labels = self._services.environment_labels()
                if reason == "cancelled" and (unsent := self._turns.drain()):
                    self._console.restore_draft(unsent)
                if asyncio.get_running_loop().time() - self._turn_started_at >= ALERT_AFTER_SECONDS:
                    self._console.alert(f"Ostler: {reason}")
            case PermissionAsked(_, permission):
                self._scroll.calls.mark_previewed(permission.preview)
                self._console.alert(f"Ostler needs approval: {permission.title[:100]}")
            case QuestionAsked():
                self._console.alert("Ostler has a question")
            case InfoChanged():  # the last event of opening a session
                self._restore_unsent()
            case _:
                pass
        self._continue()

    def _continue(self) -> None:
        """Start the next queued item, or wait for the user."""
        if not self._turns.busy:
            self._cancelled = False
            self._turns.start_next()
        if not self._dialogs:
            self._console.set_menu(None if self._turns.busy else IDLE_MENU)
        self._show_status()
        self._changed.set()

    def _show_status(self) -> None:
        """Update the status. Activity is hidden while a dialog is open, because text of the model could imitate one."""
        busy = self._turns.busy
        activity = EXIT_HINT if self._warned else ""
        if busy:
            activity = "" if self._dialogs else self._status.activity(self._scroll)
        asking, queued = self._dialogs.has_unanswered, self._turns.queued
        self._console.set_status(activity, self._status.summary(busy=busy, asking=asking, queued=queued))

    # -- input ---------------------------------------------------------------------------------------------------

    async def _listen(self) -> ChatExit:
        while True:
            if not self._console.reads_while_busy:
                await self._wait_until(lambda: self._dialogs.has_unanswered or not self._turns.busy)
            chat_exit = await self._handle_input(await self._console.read())
            if chat_exit:
                return chat_exit

    async def _handle_input(self, event: ConsoleEvent) -> ChatExit | None:
        if isinstance(event, EscapePressed) and self._dialogs.go_back():
            return None
        if isinstance(event, InterruptRequested | EscapePressed):
            return ChatExit(0) if self._interrupt() else None
        self._warned = False
        match event:
            case ExitRequested(status):
                return self._chat_exit or await self._leave(status)
            case WithdrawRequested():
                if text := self._turns.withdraw_last():
                    self._console.restore_draft(text)
                else:
                    self.show_notice(["nothing is queued"])
            case DetailsToggled():
                self._toggle_details()
            case NextModeRequested():
                await self._switch_to_next_mode()
            case SteerEntered(text, pasted):
                await (self._input.submit(text, pasted) if self._dialogs else self._input.steer(text, pasted))
            case _ if self._dialogs:
                self._dialogs.answer(event.text)
            case _:
                await self._input.submit(event.text, event.pasted)
                self._show_status()
        return None

    async def _leave(self, status: int) -> ChatExit:
        while self._turns.busy and not self._console.reads_while_busy:
            self._dialogs.deny_all("the input has ended")
            self._changed.clear()
            await self._changed.wait()
        return ChatExit(status)

    def _interrupt(self) -> bool:
        """Cancel what is running. Return whether to quit."""
        if self._turns.cancel():
            again, self._cancelled = self._cancelled, True
            return again
        again, self._warned = self._warned, True
        if self._console.echoes_input and not again:
            self._console.show([EXIT_HINT])
        self._continue()
        return again

    # -- what the user's input shows -----------------------------------------------------------------------------

    def ask(self, question: QuestionAsked) -> None:
        self._dialogs.on_event(question)
        self._show_status()

    def close_question(self, answer: QuestionAnswered) -> None:
        self._dialogs.on_event(answer)

    def show_steered(self, text: str) -> None:
        lines = [f"  ↳ {sanitise(line)}" for line in text.strip().split("\n")]
        self._console.show([self._paint(line, "bold") for line in lines])

    async def apply_result(self, result: SlashCommandResult) -> None:
        match result:
            case ShowLines(lines, draft):
                self._console.show([row for line in lines for row in wrap_notice(line, self._paint.columns())])
                if draft:
                    self._input.returned_prompt = draft
                    self._console.restore_draft(draft)
            case ShowDiff(diff):
                self._console.show([f"  {line}" for line in render_diff(sanitise(diff), self._paint)])
            case StartTurn():
                self._input.send(result)
            case EditFile(path):
                edited = await self._console.edit(path)
                self.show_notice(
                    [
                        NEW_SESSION_HINT
                        if edited
                        else f"no editor could be started for {path}; set EDITOR to your editor"
                    ]
                )
            case ChangeDisplay("theme", value):
                self._set_theme(value)
            case ChangeDisplay():
                self._toggle_details()
            case SwitchSession(session):
                self._request_exit(ChatExit(None, session))
            case Quit():
                self._request_exit(ChatExit(0))

    def _request_exit(self, chat_exit: ChatExit) -> None:
        self._chat_exit = chat_exit
        self._console.inject(ExitRequested())

    # -- output --------------------------------------------------------------------------------------------------

    def _toggle_details(self) -> None:
        """Show tool calls in full, starting with the last one, or shortened again."""
        calls = self._scroll.calls
        calls.full_output = not calls.full_output
        self.show_notice([f"tool calls are now shown {'in full' if calls.full_output else 'shortened'}"])
        if calls.full_output:
            self._console.show(calls.render_last_call())

    async def _switch_to_next_mode(self) -> None:
        """Switch the mode, also during a turn, unless a dialog was opened after the key was pressed."""
        if not self._dialogs:
            self.show_notice([await self._commands.next_mode()])
            self._show_status()

    def _set_theme(self, name: str) -> None:
        if name in THEMES:
            self._paint.theme = name
        elif name:
            self.show_notice([f"unknown theme: {name}"])
        self._console.show([f"  {'*' if theme == self._paint.theme else ' '} {theme}" for theme in THEMES])

    def echo(self, line: str) -> None:
        """Add the typed line to the scrollback, unless the console already shows it."""
        if not self._console.echoes_input:
            self._console.show(self._scroll.render_prompt(line))

    def return_unsent(self, reason: str, text: str) -> None:
        self.show_notice([reason])
        if text:
            self._console.restore_draft(text)

    def show_notice(self, lines: Sequence[str]) -> None:
        rows = [row for line in lines for row in wrap_notice(f"  {sanitise(line)}", self._paint.columns())]
        self._console.show([self._paint(row, "dim") for row in rows])

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()


def _prompt_id(event: Event) -> str:
    return event.prompt.id if isinstance(event, TurnStarted) else ""
