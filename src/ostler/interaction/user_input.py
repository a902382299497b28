"""Handles what the user enters: prompts, shell commands, slash commands, input for the running turn."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from ostler.core.errors import OstlerError
from ostler.core.events import QuestionAnswered, QuestionAsked
from ostler.core.permission import Decision, QuestionReply, is_confirmed, make_confirmation
from ostler.core.protocols import Session
from ostler.core.sessions import Steer
from ostler.interaction.builtin_commands import requires_idle
from ostler.interaction.dispatcher import CommandDispatcher
from ostler.interaction.input_parser import PromptInput, ShellInput, SlashInput, parse_input
from ostler.interaction.results import SlashCommandResult, StartTurn
from ostler.interaction.services import CommandServices, PromptSource, active_agent, left_out_notices
from ostler.interaction.turn_queue import TurnQueue, new_id

UNDO_COMMANDS = ("/undo", "/redo")
BUSY_HINT = "something is running; press Ctrl-C to cancel it first"


class InputView(Protocol):
    """How a frontend shows the effects of input."""

    def echo(self, line: str) -> None:
        """Show a command that the user entered."""

    def show_notice(self, lines: Sequence[str]) -> None: ...

    def show_steered(self, text: str) -> None:
        """Show text that was sent to the running turn."""

    def return_unsent(self, reason: str, text: str) -> None:
        """Show why text was not sent, and put it back into the editor."""

    def ask(self, question: QuestionAsked) -> None:
        """Ask a question that is not of the session; its answer goes to `UserInput.answer`."""

    def close_question(self, answer: QuestionAnswered) -> None: ...

    async def apply_result(self, result: SlashCommandResult) -> None: ...


class UserInput:
    """Turns lines into turns and commands of one session."""

    def __init__(
        self,
        session: Session,
        services: CommandServices,
        commands: CommandDispatcher,
        turns: TurnQueue,
        view: InputView,
        busy_hint: str = BUSY_HINT,
    ) -> None:
        """`busy_hint` is shown for commands that cannot run during a turn."""
        self._session = session
        self._services = services
        self._commands = commands
        self._turns = turns
        self._view = view
        self._busy_hint = busy_hint
        self._unapproved: dict[str, tuple[str, PromptSource]] = {}  # prompts by the id of the question about them
        self.notices: dict[str, list[str]] = {}  # to show when a prompt that was entered here starts, by its id
        self.returned_prompt = ""  # the prompt that /undo put into the editor

    async def submit(self, line: str, pasted: str = "") -> None:
        """Handle a line: start or queue a prompt or a shell command, or start a slash command."""
        parsed = parse_input(self._without_returned_prompt(line))
        self._commands.pasted = pasted
        try:
            match parsed:
                case None:
                    pass
                case ShellInput(""):
                    self._view.show_notice(["type a command after the !"])
                case ShellInput():
                    self._view.echo(line)
                    self._turns.enqueue(parsed)
                case SlashInput(name, rest):
                    self._start_command(name, rest)
                case PromptInput(text):
                    source = PromptSource(active_agent(self._session), pasted, session_id=self._session.id)
                    ready = await self._services.build_prompt(text, source)
                    if ready.questions:
                        self._ask_before_sending(text, source, ready.questions)
                    else:
                        self.send(StartTurn(ready.prompt, tuple(ready.notices)))
        except OstlerError as error:
            self._view.return_unsent(str(error), line)

    def _without_returned_prompt(self, line: str) -> str:
        """Return only the command if it was typed after the prompt that `/undo` put into the editor."""
        prompt, self.returned_prompt = self.returned_prompt, ""
        command = line.removeprefix(prompt).strip()
        return command if prompt and command in UNDO_COMMANDS else line

    def _ask_before_sending(self, text: str, source: PromptSource, questions: Sequence[str]) -> None:
        """Ask about the files and the agent that a prompt mentions; a `no` sends it without them."""
        ask_id = new_id()
        self._unapproved[ask_id] = (text, source)
        question = make_confirmation(f"Your prompt would {' and '.join(questions)}.", "allow")
        self._view.ask(QuestionAsked(msgspec.structs.replace(question, id=ask_id)))

    def answer(self, ask_id: str, answer: Decision | QuestionReply) -> bool:
        """Pass an answer to the session, or send the prompt that it is about."""
        if ask_id not in self._unapproved:
            return self._session.answer(ask_id, answer)
        text, source = self._unapproved.pop(ask_id)
        reply = answer if isinstance(answer, QuestionReply) else QuestionReply("decline")
        approved = is_confirmed(reply)
        self._view.close_question(QuestionAnswered(ask_id, reply if approved else QuestionReply("decline")))
        self._turns.run_task(self._send_built(text, msgspec.structs.replace(source, approved=approved)))
        return True

    async def _send_built(self, text: str, source: PromptSource) -> None:
        try:
            ready = await self._services.build_prompt(text, source)
            self.send(StartTurn(ready.prompt, tuple(ready.notices)))
        except OstlerError as error:
            self._view.return_unsent(str(error), text)

    async def steer(self, text: str, pasted: str = "") -> None:
        """Send input to the running turn, or start a turn if none is running."""
        if not self._turns.in_turn:
            await self.submit(text, pasted)
            return
        try:
            source = PromptSource(active_agent(self._session), pasted, session_id=self._session.id)
            ready = await self._services.build_prompt(text, source)
            if await self._session.apply(Steer(ready.prompt)):
                self._view.show_steered(text)
                self._view.show_notice(left_out_notices(ready))
            elif self._session.info.can_steer:  # the turn is about to end
                self.send(StartTurn(ready.prompt, left_out_notices(ready)))
            else:
                self._view.return_unsent(
                    "not sent: this backend accepts no input during a turn; press Enter to send it afterwards", text
                )
        except OstlerError as error:
            self._view.return_unsent(str(error), text)

    def _start_command(self, name: str, rest: str) -> None:
        """Run a command in its own task, so that keys are handled meanwhile."""
        if not self._commands.is_prompt(name):  # its turn shows it
            self._view.echo(f"/{name} {rest}".rstrip())
        if requires_idle(name) and self._turns.may_change_files:
            self._view.show_notice([self._busy_hint])
        else:
            self._turns.run_task(self._run_command(name, rest))

    async def _run_command(self, name: str, rest: str) -> None:
        try:
            await self._view.apply_result(await self._commands.run(name, rest))
        except OstlerError as error:
            self._view.show_notice([str(error)])

    def send(self, start: StartTurn) -> None:
        """Queue a prompt; it starts when nothing else is running."""
        self.notices[start.prompt.id] = [*start.notices]
        self._turns.enqueue(start.prompt)
