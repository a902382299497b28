"""One session at the prompt: what is typed becomes turns, commands and answers, one after the other."""

import asyncio
from collections.abc import AsyncIterator, Callable

import msgspec

from ostler.commands.builtin_commands import requires_idle
from ostler.commands.completion import CompletionSource
from ostler.commands.dispatcher import CommandDispatcher
from ostler.commands.results import (
    ChangeDisplay,
    EditFile,
    Quit,
    ShowDiff,
    ShowLines,
    SlashCommandResult,
    StartTurn,
    SwitchSession,
)
from ostler.commands.services import CommandServices
from ostler.core.errors import OstlerError
from ostler.core.events import Envelope, Event, PermissionAsked, QuestionAsked, TurnEnded, TurnStarted
from ostler.core.protocols import Session
from ostler.core.sessions import Steer
from ostler.frontends.repl.console import (
    IDLE_MENU,
    Console,
    ConsoleEvent,
    DetailsToggled,
    ExitRequested,
    InterruptRequested,
    SteerEntered,
)
from ostler.frontends.repl.dialogs import DialogQueue
from ostler.frontends.repl.input_parser import PromptInput, ShellInput, SlashInput, parse_input
from ostler.frontends.repl.replay_buffer import ReplayBuffer
from ostler.frontends.repl.status_line import StatusLine
from ostler.frontends.repl.turn_queue import TurnQueue, new_id
from ostler.rendering.diffs import render_diff
from ostler.rendering.style import THEMES, Styler
from ostler.rendering.transcript_renderer import TranscriptRenderer
from ostler.rendering.wait_notices import WaitNotices
from ostler.rendering.wrapping import wrap_notice
from ostler.text.sanitise import sanitise

EXIT_HINT = "Ctrl-C again leaves"
NEW_SESSION_HINT = "a session that begins from now on is told it: /new"
BUSY_HINT = "something is running; cancel it first (Ctrl-C)"
ALERT_AFTER_SECONDS = 5.0


class ChatExit(msgspec.Struct, frozen=True):
    """The session is left; without a status, for the session named, or for a new one."""

    status: int | None
    session: str = ""


class ChatController:
    """What the person does, and what they see of what happens."""

    def __init__(
        self, session: Session, console: Console, paint: Styler, services: CommandServices, details: bool = False
    ) -> None:
        self._session = session
        self._console = console
        self._paint = paint
        self._services = services
        self._scroll = TranscriptRenderer(paint)
        self._scroll.calls.full_output = details
        self._dialogs = DialogQueue(console, paint, session.answer)
        self._commands = CommandDispatcher(session, services, new_id)
        self._status = StatusLine(session, self._commands.usage)
        self._waiting = WaitNotices()
        self._turns = TurnQueue(session, self._continue, self._return_unsent)
        self._typed_prompts: dict[str, list[str]] = {}  # what was typed here, and what is told of it below
        self._deferred_lines: list[str] = []
        self._changed = asyncio.Event()
        self._cancelled = self._warned = False
        self._turn_started_at = 0.0
        self._chat_exit: ChatExit | None = None

    async def run(self) -> ChatExit:
        """Until the session is left."""
        following = asyncio.create_task(self._follow(self._session.subscribe(0)), name="follow")
        following.add_done_callback(self._on_session_end)
        self._status.environment_labels = self._services.environment_labels()
        self._console.set_completion(CompletionSource(self._services, self._commands, tuple(THEMES)))
        self._restore_queue()
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
        """The session ended by itself, or what shows it failed."""
        self._console.inject(ExitRequested(1))

    def _restore_queue(self) -> None:
        """What an earlier process could not send any more is given back."""
        if left := self._turns.restore_queue() or self._services.take_unsent_prompts():
            self._show_notice(["this was waiting to be sent when Ostler ended:"])
            self._console.restore_draft(left)

    # -- what happens --------------------------------------------------------------------------------------------

    async def _follow(self, envelopes: AsyncIterator[Envelope]) -> None:
        past = ReplayBuffer(self._paint)
        async for envelope in envelopes:
            event, new = envelope.event, envelope.seq > self._session.opened_after_seq
            if new:
                self._console.show(past.flush())
            self._scroll.show_prompts = not (self._console.echoes_input and _prompt_id(event) in self._typed_prompts)
            lines = self._scroll.render(event)
            self._commands.on_event(envelope)
            self._status.on_event(event)
            if not new:
                past.add(event, lines)
                continue
            self._show(lines if self._console.has_status else [*lines, *self._waiting.render(event)])
            self._dialogs.on_event(event)
            self._show([])
            self._turns.on_event(event)
            self._on_event(event)

    def _show(self, lines: list[str]) -> None:
        """While a person is asked, nothing that a model goes on to say comes between the ask and its answer."""
        self._deferred_lines += lines
        if not self._dialogs and self._deferred_lines:
            held, self._deferred_lines = self._deferred_lines, []
            self._console.show(held)

    def _on_event(self, event: Event) -> None:
        match event:
            case TurnStarted(_, prompt):
                self._turn_started_at = asyncio.get_running_loop().time()
                self._show_notice(self._typed_prompts.get(prompt.id, []))
            case TurnEnded(_, reason):
                self._status.environment_labels = self._services.environment_labels()
                if reason == "cancelled" and (left := self._turns.drain()):
                    self._console.restore_draft(left)
                if asyncio.get_running_loop().time() - self._turn_started_at >= ALERT_AFTER_SECONDS:
                    self._console.alert(f"Ostler: {reason}")
            case PermissionAsked(_, permission):
                self._scroll.calls.mark_previewed(permission.preview)
                self._console.alert(f"Ostler asks: {permission.title[:100]}")
            case QuestionAsked():
                self._console.alert("Ostler has a question")
            case _:
                pass
        self._continue()

    def _continue(self) -> None:
        """Go on with what waits, or wait for the person."""
        if not self._turns.busy:
            self._cancelled = False
            self._turns.start_next()
        if not self._dialogs:
            self._console.set_menu(None if self._turns.busy else IDLE_MENU)
        self._show_status()
        self._changed.set()

    def _show_status(self) -> None:
        """What passes is not shown beside an ask, for which a model's words could be taken."""
        busy = self._turns.busy
        passing = EXIT_HINT if self._warned else ""
        if busy:
            passing = "" if self._dialogs else self._status.activity(self._scroll)
        asking, queued = self._dialogs.has_unanswered, self._turns.queued
        self._console.set_status(passing, self._status.summary(busy=busy, asking=asking, queued=queued))

    # -- what the person does ------------------------------------------------------------------------------------

    async def _listen(self) -> ChatExit:
        while True:
            if not self._console.reads_while_busy:
                await self._wait_until(lambda: self._dialogs.has_unanswered or not self._turns.busy)
            over = await self._handle_input(await self._console.read())
            if over:
                return over

    async def _handle_input(self, event: ConsoleEvent) -> ChatExit | None:
        if isinstance(event, InterruptRequested):
            return ChatExit(0) if self._interrupt() else None
        self._warned = False
        match event:
            case ExitRequested(status):
                return self._chat_exit or await self._leave(status)
            case DetailsToggled():
                self._toggle_details()
            case SteerEntered(text):
                await self._steer(text)
            case _ if self._dialogs:
                self._dialogs.answer(event.text)
            case _:
                await self._submit(event.text)
        return None

    async def _leave(self, status: int) -> ChatExit:
        while self._turns.busy and not self._console.reads_while_busy:
            self._dialogs.deny_all("the input has ended")
            self._changed.clear()
            await self._changed.wait()
        return ChatExit(status)

    def _interrupt(self) -> bool:
        """Cancel what runs; whether to leave."""
        if self._turns.cancel():
            again, self._cancelled = self._cancelled, True
            return again
        again, self._warned = self._warned, True
        if self._console.echoes_input and not again:
            self._console.show([EXIT_HINT])
        self._continue()
        return again

    async def _submit(self, line: str) -> None:
        said = parse_input(line)
        try:
            match said:
                case None:
                    self._show_status()
                case ShellInput(""):
                    self._console.show(["  there is no command after the !"])
                case ShellInput():
                    self._echo(line)
                    self._turns.enqueue(said)
                case SlashInput(name, rest):
                    self._start_command(name, rest)
                case PromptInput(text):
                    ready = await self._services.build_prompt(text)
                    self._send_prompt(StartTurn(ready.prompt, tuple(ready.notices)))
        except OstlerError as error:
            self._return_unsent(str(error), line)

    async def _steer(self, text: str) -> None:
        """Words for the turn that runs; where none does, they begin one."""
        if self._dialogs or not self._turns.in_turn:
            await self._submit(text)
            return
        try:
            ready = await self._services.build_prompt(text)
            if await self._session.apply(Steer(ready.prompt)):
                shown = [f"  ↳ {sanitise(line)}" for line in text.strip().split("\n")]
                self._console.show([self._paint(line, "bold") for line in shown])
            elif self._session.info.can_steer:  # the turn is about to end
                self._send_prompt(StartTurn(ready.prompt, tuple(ready.notices)))
            else:
                self._return_unsent("this backend cannot be steered; Enter sends it after the turn", text)
        except OstlerError as error:
            self._return_unsent(str(error), text)

    def _start_command(self, name: str, rest: str) -> None:
        """In a task of its own, so that keys are heard meanwhile."""
        self._echo(f"/{name} {rest}".rstrip())
        if requires_idle(name) and self._turns.may_change_files:
            self._show_notice([BUSY_HINT])
        else:
            self._turns.run_task(self._run_command(name, rest))

    async def _run_command(self, name: str, rest: str) -> None:
        try:
            await self._apply_result(await self._commands.run(name, rest))
        except OstlerError as error:
            self._show_notice([str(error)])

    async def _apply_result(self, result: SlashCommandResult) -> None:
        match result:
            case ShowLines(lines, draft):
                self._console.show([row for line in lines for row in wrap_notice(line, self._paint.columns())])
                if draft:
                    self._console.restore_draft(draft)
            case ShowDiff(diff):
                self._console.show([f"  {line}" for line in render_diff(sanitise(diff), self._paint)])
            case StartTurn():
                self._send_prompt(result)
            case EditFile(path):
                edited = await self._console.edit(path)
                self._show_notice(
                    [NEW_SESSION_HINT if edited else f"no editor could be run on {path}; set EDITOR to yours"]
                )
            case ChangeDisplay("theme", value):
                self._set_theme(value)
            case ChangeDisplay():
                self._toggle_details()
            case SwitchSession(session):
                self._request_exit(ChatExit(None, session))
            case Quit():
                self._request_exit(ChatExit(0))

    def _send_prompt(self, start: StartTurn) -> None:
        self._typed_prompts[start.prompt.id] = [*start.notices]
        self._turns.enqueue(start.prompt)

    def _request_exit(self, chat_exit: ChatExit) -> None:
        self._chat_exit = chat_exit
        self._console.inject(ExitRequested())

    # -- what is shown -------------------------------------------------------------------------------------------

    def _toggle_details(self) -> None:
        """From now on calls in full, beginning with the last; or in short again."""
        calls = self._scroll.calls
        calls.full_output = not calls.full_output
        self._show_notice([f"calls are shown in {'full' if calls.full_output else 'short'} from now on"])
        if calls.full_output:
            self._console.show(calls.render_last_call())

    def _set_theme(self, name: str) -> None:
        if name in THEMES:
            self._paint.theme = name
        elif name:
            self._show_notice([f"there is no theme {name}"])
        self._console.show([f"  {'*' if theme == self._paint.theme else ' '} {theme}" for theme in THEMES])

    def _echo(self, line: str) -> None:
        """What was typed goes into the scrollback, unless it stands there already."""
        if not self._console.echoes_input:
            self._console.show(self._scroll.render_prompt(line))

    def _return_unsent(self, reason: str, text: str) -> None:
        self._show_notice([reason])
        if text:
            self._console.restore_draft(text)

    def _show_notice(self, lines: list[str]) -> None:
        rows = [row for line in lines for row in wrap_notice(f"  {sanitise(line)}", self._paint.columns())]
        self._console.show([self._paint(row, "dim") for row in rows])

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()


def _prompt_id(event: Event) -> str:
    return event.prompt.id if isinstance(event, TurnStarted) else ""
