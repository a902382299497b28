"""Controls one session in the terminal: reads input, starts turns and commands, shows events."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from ostler.core.events import Envelope, Event, PermissionAsked, QuestionAnswered, QuestionAsked, TurnStarted
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
from ostler.interaction.services import CommandServices
from ostler.interaction.session_chat import SessionChat
from ostler.rendering.diffs import render_diff
from ostler.rendering.style import THEMES, Styler
from ostler.rendering.transcript_renderer import TranscriptRenderer
from ostler.rendering.wait_notices import WaitNotices
from ostler.rendering.wrapping import wrap_notice
from ostler.text.sanitise import sanitise

EXIT_HINT = "press Ctrl-C again to quit"


class ChatController(SessionChat):
    """Handles the user's input and shows the events of one session."""

    def __init__(
        self, session: Session, console: Console, paint: Styler, services: CommandServices, details: bool = False
    ) -> None:
        super().__init__(session, services, console)
        self._console = console
        self._paint = paint
        self._scroll = TranscriptRenderer(paint)
        self._scroll.calls.full_output = details
        self._status = StatusLine(session, self.commands.usage)
        self._waiting = WaitNotices()
        self._dialogs = DialogQueue(console, paint, self.input.answer)
        self._deferred_lines: list[str] = []
        self._changed = asyncio.Event()
        self._warned = False
        self._chat_exit: ChatExit | None = None
        self.turn_started_at = float("-inf")  # the end of an earlier process's turn is worth an alert

    async def run(self) -> ChatExit:
        """Run until the user leaves the session."""
        self.load()
        following = asyncio.create_task(self._follow(self.session.subscribe(0)), name="follow")
        following.add_done_callback(self._on_session_end)
        self._console.set_completion(CompletionSource(self.services, self.commands, tuple(THEMES)))
        self.on_change()
        try:
            return await self._listen()
        finally:
            following.remove_done_callback(self._on_session_end)
            await self.turns.aclose()
            await asyncio.wait([following])
            self._console.set_menu(None)
            following.result()

    def _on_session_end(self, _: object) -> None:
        """Exit because the session ended or following it failed."""
        self._console.inject(ExitRequested(1))

    # -- events --------------------------------------------------------------------------------------------------

    async def _follow(self, envelopes: AsyncIterator[Envelope]) -> None:
        replay = ReplayBuffer(self._paint)
        async for envelope in envelopes:
            event, new = envelope.event, envelope.seq > self.session.opened_after_seq
            if new:
                self._console.show(replay.flush())
            self._scroll.show_prompts = not (self._console.echoes_input and _prompt_id(event) in self.input.notices)
            lines = self._scroll.render(event)
            self.commands.on_event(envelope)
            self._status.on_event(event)
            if not new:
                replay.add(event, lines)
                continue
            self._show(lines if self._console.has_status else [*lines, *self._waiting.render(event)])
            self._dialogs.on_event(event)
            self._show([])
            self.turns.on_event(event)
            self.on_event(event)

    def _show(self, lines: list[str]) -> None:
        """Show lines, but defer them while a dialog is open, so that nothing appears between it and its answer."""
        self._deferred_lines += lines
        if not self._dialogs and self._deferred_lines:
            deferred, self._deferred_lines = self._deferred_lines, []
            self._console.show(deferred)

    def on_event(self, event: Event) -> None:
        if isinstance(event, PermissionAsked):
            self._scroll.calls.mark_previewed(event.permission.preview)
        super().on_event(event)

    def on_change(self) -> None:
        super().on_change()
        if not self._dialogs:
            self._console.set_menu(None if self.turns.busy else IDLE_MENU)
        self._show_status()
        self._changed.set()

    def _show_status(self) -> None:
        """Update the status. Activity is hidden while a dialog is open, because text of the model could imitate one."""
        busy = self.turns.busy
        activity = EXIT_HINT if self._warned else ""
        if busy:
            activity = "" if self._dialogs else self._status.activity(self._scroll)
        asking, queued, labels = self._dialogs.has_unanswered, self.turns.queued, self.environment_labels
        self._console.set_status(activity, self._status.summary(labels, busy=busy, asking=asking, queued=queued))

    # -- input ---------------------------------------------------------------------------------------------------

    async def _listen(self) -> ChatExit:
        while True:
            if not self._console.reads_while_busy:
                await self._wait_until(lambda: self._dialogs.has_unanswered or not self.turns.busy)
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
                if text := self.turns.withdraw_last():
                    self._console.restore_draft(text)
                else:
                    self.show_notice(["nothing is queued"])
            case DetailsToggled():
                self.toggle_details()
            case NextModeRequested():
                await self._switch_to_next_mode()
            case SteerEntered(text, pasted):
                await (self.input.submit(text, pasted) if self._dialogs else self.input.steer(text, pasted))
            case _ if self._dialogs:
                self._dialogs.answer(event.text)
            case _:
                await self.input.submit(event.text, event.pasted)
                self._show_status()
        return None

    async def _leave(self, status: int) -> ChatExit:
        while self.turns.busy and not self._console.reads_while_busy:
            self._dialogs.deny_all("the input has ended")
            self._changed.clear()
            await self._changed.wait()
        return ChatExit(status)

    def _interrupt(self) -> bool:
        """Cancel what is running. Return whether to quit."""
        if self.turns.cancel():
            again, self._cancelled = self._cancelled, True
            return again
        again, self._warned = self._warned, True
        if self._console.echoes_input and not again:
            self._console.show([EXIT_HINT])
        self.on_change()
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

    def show_lines(self, lines: Sequence[str]) -> None:
        self._console.show([row for line in lines for row in wrap_notice(line, self._paint.columns())])

    def show_diff(self, diff: str) -> None:
        self._console.show([f"  {line}" for line in render_diff(sanitise(diff), self._paint)])

    def leave(self, chat_exit: ChatExit) -> None:
        self._chat_exit = chat_exit
        self._console.inject(ExitRequested())

    # -- output --------------------------------------------------------------------------------------------------

    def toggle_details(self) -> None:
        """Show tool calls in full, starting with the last one, or shortened again."""
        calls = self._scroll.calls
        calls.full_output = not calls.full_output
        self.show_notice([f"tool calls are now shown {'in full' if calls.full_output else 'shortened'}"])
        if calls.full_output:
            self._console.show(calls.render_last_call())

    async def _switch_to_next_mode(self) -> None:
        """Switch the mode, also during a turn, unless a dialog was opened after the key was pressed."""
        if not self._dialogs:
            self.show_notice([await self.commands.info.next_mode()])
            self._show_status()

    def set_theme(self, name: str) -> None:
        if name in THEMES:
            self._paint.theme = name
        elif name:
            self.show_notice([f"unknown theme: {name}"])
        self._console.show([f"  {'*' if theme == self._paint.theme else ' '} {theme}" for theme in THEMES])

    def echo(self, line: str) -> None:
        """Add the typed line to the scrollback, unless the console already shows it."""
        if not self._console.echoes_input:
            self._console.show(self._scroll.render_prompt(line))

    def show_notice(self, lines: Sequence[str]) -> None:
        rows = [row for line in lines for row in wrap_notice(f"  {sanitise(line)}", self._paint.columns())]
        self._console.show([self._paint(row, "dim") for row in rows])

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()


def _prompt_id(event: Event) -> str:
    return event.prompt.id if isinstance(event, TurnStarted) else ""
