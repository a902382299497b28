"""Controls one session in the terminal: reads input, starts turns and commands, shows events."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

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
from ostler.commands.services import CommandServices, PromptSource, active_agent, left_out_notices
from ostler.core.errors import OstlerError
from ostler.core.events import (
    Envelope,
    Event,
    PermissionAsked,
    QuestionAnswered,
    QuestionAsked,
    TurnEnded,
    TurnStarted,
)
from ostler.core.permission import Decision, Question, QuestionReply
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

UNDO_COMMANDS = ("/undo", "/redo")
EXIT_HINT = "press Ctrl-C again to quit"
NEW_SESSION_HINT = "new sessions use it; start one with /new"
BUSY_HINT = "something is running; press Ctrl-C to cancel it first"
ALERT_AFTER_SECONDS = 5.0
APPROVED = "allow"


class ChatExit(msgspec.Struct, frozen=True):
    """How a chat ended. Without a status, continue with `session`, or with a new one if it is empty."""

    status: int | None
    session: str = ""


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
        self._dialogs = DialogQueue(console, paint, self._answer)
        self._unapproved: dict[str, tuple[str, PromptSource]] = {}  # prompts by the id of the question about them
        self._commands = CommandDispatcher(session, services, new_id)
        self._status = StatusLine(session, self._commands.usage)
        self._waiting = WaitNotices()
        self._turns = TurnQueue(session, self._continue, self._return_unsent)
        self._typed_prompts: dict[str, list[str]] = {}  # notices to show when a prompt typed here starts
        self._deferred_lines: list[str] = []
        self._changed = asyncio.Event()
        self._cancelled = self._warned = False
        self._turn_started_at = 0.0
        self._chat_exit: ChatExit | None = None
        self._returned_prompt = ""  # the prompt that /undo put into the editor

    async def run(self) -> ChatExit:
        """Run until the user leaves the session."""
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
        """Exit because the session ended or following it failed."""
        self._console.inject(ExitRequested(1))

    def _restore_queue(self) -> None:
        """Put prompts that an earlier process could not send back into the editor."""
        if unsent := self._turns.restore_queue() or self._services.take_unsent_prompts():
            self._show_notice(["not sent because Ostler exited:"])
            self._console.restore_draft(unsent)

    # -- events --------------------------------------------------------------------------------------------------

    async def _follow(self, envelopes: AsyncIterator[Envelope]) -> None:
        replay = ReplayBuffer(self._paint)
        async for envelope in envelopes:
            event, new = envelope.event, envelope.seq > self._session.opened_after_seq
            if new:
                self._console.show(replay.flush())
            self._scroll.show_prompts = not (self._console.echoes_input and _prompt_id(event) in self._typed_prompts)
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
                self._show_notice(self._typed_prompts.get(prompt.id, []))
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
        if isinstance(event, InterruptRequested):
            return ChatExit(0) if self._interrupt() else None
        self._warned = False
        match event:
            case ExitRequested(status):
                return self._chat_exit or await self._leave(status)
            case DetailsToggled():
                self._toggle_details()
            case SteerEntered(text, pasted):
                await self._steer(text, pasted)
            case _ if self._dialogs:
                self._dialogs.answer(event.text)
            case _:
                await self._submit(event.text, event.pasted)
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

    async def _submit(self, line: str, pasted: str = "") -> None:
        parsed = parse_input(self._without_returned_prompt(line))
        self._commands.pasted = pasted
        try:
            match parsed:
                case None:
                    self._show_status()
                case ShellInput(""):
                    self._console.show(["  type a command after the !"])
                case ShellInput():
                    self._echo(line)
                    self._turns.enqueue(parsed)
                case SlashInput(name, rest):
                    self._start_command(name, rest)
                case PromptInput(text):
                    source = PromptSource(active_agent(self._session), pasted)
                    ready = await self._services.build_prompt(text, source)
                    if ready.questions:
                        self._ask_before_sending(text, source, ready.questions)
                    else:
                        self._send_prompt(StartTurn(ready.prompt, tuple(ready.notices)))
        except OstlerError as error:
            self._return_unsent(str(error), line)

    def _without_returned_prompt(self, line: str) -> str:
        """Return only the command if it was typed after the prompt that `/undo` put into the editor."""
        prompt, self._returned_prompt = self._returned_prompt, ""
        command = line.removeprefix(prompt).strip()
        return command if prompt and command in UNDO_COMMANDS else line

    def _ask_before_sending(self, text: str, source: PromptSource, questions: Sequence[str]) -> None:
        """Ask about the files and the agent that a prompt mentions; a `no` sends it without them."""
        ask_id = new_id()
        self._unapproved[ask_id] = (text, source)
        schema: dict[str, object] = {"properties": {APPROVED: {"type": "boolean", "title": "allow"}}}
        self._dialogs.on_event(QuestionAsked(Question(ask_id, f"Your prompt would {' and '.join(questions)}.", schema)))
        self._show_status()

    def _answer(self, ask_id: str, answer: Decision | QuestionReply) -> bool:
        """Pass an answer to the session, or send the prompt that it is about."""
        if ask_id not in self._unapproved:
            return self._session.answer(ask_id, answer)
        text, source = self._unapproved.pop(ask_id)
        reply = answer if isinstance(answer, QuestionReply) else QuestionReply("decline")
        approved = reply.action == "accept" and (reply.content or {}).get(APPROVED) is True
        self._dialogs.on_event(QuestionAnswered(ask_id, reply if approved else QuestionReply("decline")))
        self._turns.run_task(self._send_built(text, msgspec.structs.replace(source, approved=approved)))
        return True

    async def _send_built(self, text: str, source: PromptSource) -> None:
        try:
            ready = await self._services.build_prompt(text, source)
            self._send_prompt(StartTurn(ready.prompt, tuple(ready.notices)))
        except OstlerError as error:
            self._return_unsent(str(error), text)

    async def _steer(self, text: str, pasted: str = "") -> None:
        """Send input to the running turn, or start a turn if none is running."""
        if self._dialogs or not self._turns.in_turn:
            await self._submit(text, pasted)
            return
        try:
            ready = await self._services.build_prompt(text, PromptSource(active_agent(self._session), pasted))
            if await self._session.apply(Steer(ready.prompt)):
                lines = [f"  ↳ {sanitise(line)}" for line in text.strip().split("\n")]
                self._console.show([self._paint(line, "bold") for line in lines])
                self._show_notice(left_out_notices(ready))
            elif self._session.info.can_steer:  # the turn is about to end
                self._send_prompt(StartTurn(ready.prompt, left_out_notices(ready)))
            else:
                self._return_unsent(
                    "not sent: this backend accepts no input during a turn; press Enter to send it afterwards", text
                )
        except OstlerError as error:
            self._return_unsent(str(error), text)

    def _start_command(self, name: str, rest: str) -> None:
        """Run a command in its own task, so that keys are handled meanwhile."""
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
                    self._returned_prompt = draft
                    self._console.restore_draft(draft)
            case ShowDiff(diff):
                self._console.show([f"  {line}" for line in render_diff(sanitise(diff), self._paint)])
            case StartTurn():
                self._send_prompt(result)
            case EditFile(path):
                edited = await self._console.edit(path)
                self._show_notice(
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

    def _send_prompt(self, start: StartTurn) -> None:
        self._typed_prompts[start.prompt.id] = [*start.notices]
        self._turns.enqueue(start.prompt)

    def _request_exit(self, chat_exit: ChatExit) -> None:
        self._chat_exit = chat_exit
        self._console.inject(ExitRequested())

    # -- output --------------------------------------------------------------------------------------------------

    def _toggle_details(self) -> None:
        """Show tool calls in full, starting with the last one, or shortened again."""
        calls = self._scroll.calls
        calls.full_output = not calls.full_output
        self._show_notice([f"tool calls are now shown {'in full' if calls.full_output else 'shortened'}"])
        if calls.full_output:
            self._console.show(calls.render_last_call())

    def _set_theme(self, name: str) -> None:
        if name in THEMES:
            self._paint.theme = name
        elif name:
            self._show_notice([f"unknown theme: {name}"])
        self._console.show([f"  {'*' if theme == self._paint.theme else ' '} {theme}" for theme in THEMES])

    def _echo(self, line: str) -> None:
        """Add the typed line to the scrollback, unless the console already shows it."""
        if not self._console.echoes_input:
            self._console.show(self._scroll.render_prompt(line))

    def _return_unsent(self, reason: str, text: str) -> None:
        self._show_notice([reason])
        if text:
            self._console.restore_draft(text)

    def _show_notice(self, lines: Sequence[str]) -> None:
        rows = [row for line in lines for row in wrap_notice(f"  {sanitise(line)}", self._paint.columns())]
        self._console.show([self._paint(row, "dim") for row in rows])

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()


def _prompt_id(event: Event) -> str:
    return event.prompt.id if isinstance(event, TurnStarted) else ""
