"""One session opened by an editor: prompts start turns, events become ACP updates."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Coroutine, Sequence
from typing import Any

from msgspec.structs import replace

from ostler.core.errors import OstlerError
from ostler.core.events import (
    Event,
    InfoChanged,
    OptionChanged,
    Renamed,
    Reverted,
    ToolsChanged,
    TurnEnded,
    TurnStarted,
    UsageReported,
)
from ostler.core.prompt import Prompt, PromptContent, TextContent
from ostler.core.protocols import Session, Turn
from ostler.core.sessions import SetOption, Steer
from ostler.frontends.acp_agent.config_options import EditorOptions
from ostler.frontends.acp_agent.editor_client import EditorClient
from ostler.frontends.acp_agent.editor_requests import EditorRequests
from ostler.frontends.acp_agent.prompt_content import convert_prompt, later_text, prompt_text, starts_with_command
from ostler.frontends.acp_agent.session_updates import SessionUpdateBuilder
from ostler.frontends.acp_agent.slash_commands import EditorSlashCommands, result_markdown
from ostler.frontends.acp_agent.stop_reason import add_usage, prompt_response
from ostler.interaction.dispatcher import CommandDispatcher
from ostler.interaction.results import StartTurn
from ostler.interaction.services import CommandServices, PromptSource, active_agent, current_title, left_out_notices
from ostler.text.session_title import session_title
from ostler.wire.acp import AvailableCommand, ContentBlock, SessionConfigOption, text_content
from ostler.wire.acp_requests import OpenSessionResponse, PromptResponse, PromptUsage
from ostler.wire.acp_updates import (
    AgentMessageChunk,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    KnownUpdate,
    SessionInfoUpdate,
    UsageUpdate,
)
from ostler.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, RpcError

MODELS_TIMEOUT_SECONDS = 1.0


class PromptRun:
    """One prompt from its arrival to its response; it can be cancelled at any time."""

    def __init__(self) -> None:
        self.cancelled = False
        self.turn: Turn | None = None
        self.task: asyncio.Future[PromptResponse] | None = None

    def cancel(self) -> None:
        self.cancelled = True
        if self.turn:
            self.turn.cancel()
        elif self.task:
            self.task.cancel()


class EditorSession:
    """Follows a session from its first event; events up to `opened_after_seq` are history."""

    def __init__(
        self,
        session: Session,
        cwd: str,
        services: CommandServices,
        editor: EditorClient,
        directories: Sequence[str] = (),
    ) -> None:
        """`directories` can be read in addition to `cwd`; the first prompt names them."""
        self._directories = directories
        self._session = session
        self._services = services
        self._editor = editor
        self._updates = SessionUpdateBuilder(cwd)
        self._title = ""  # as the editor knows it
        self._options = EditorOptions(session.info)
        self._mode = self._options.mode
        self._commands = CommandDispatcher(session, services, new_id)
        self._commands.may_be_pasted = True
        self._slash_commands = EditorSlashCommands(self._commands, services, session)
        self._requests = EditorRequests(editor, cwd, session.answer, self._updates.find_call)
        editor.on_terminal_created = self._on_terminal_created
        self._sent_commands: tuple[AvailableCommand, ...] | None = None
        self._run: PromptRun | None = None
        self._turn_ends: dict[str, asyncio.Future[TurnEnded]] = {}
        self._usage = PromptUsage()
        self._deferred_updates: list[KnownUpdate] | None = []
        self._caught_up = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def id(self) -> str:
        return self._session.id

    # -- opening ---------------------------------------------------------------------------------------------------

    async def start(self, *, replay: bool) -> OpenSessionResponse:
        """Start following the session, replay its history if requested, and return its options."""
        self._spawn(self._follow())
        await self._load_options()
        await self._caught_up.wait()
        self._replay_history(replay=replay)
        asyncio.get_running_loop().call_soon(self._flush_updates)
        return OpenSessionResponse(self.id, self._options.modes(), self._options.config_options())

    def add_notice(self, text: str) -> None:
        """Send a notice to the user before all other updates."""
        self._send(AgentMessageChunk(text_content(text), new_id()))

    def _replay_history(self, *, replay: bool) -> None:
        """Process the history; send it to the editor only if `replay` is set."""
        self._updates.replaying = True
        usage: KnownUpdate | None = None
        records = self._session.records()
        for index in range(records.index_after(self._session.opened_after_seq)):
            for update in self._updates.updates_for(records[index].event):
                if isinstance(update, UsageUpdate):
                    usage = update
                elif replay:
                    self._editor.send_update(update)
        if usage and replay:
            self._editor.send_update(usage)
        self._send_title()
        self._updates.replaying = False

    def _flush_updates(self) -> None:
        """Send the deferred updates, now that the editor knows the session."""
        updates, self._deferred_updates = self._deferred_updates or [], None
        for update in updates:
            self._editor.send_update(update)
        self._spawn(self._send_commands())

    async def _load_options(self) -> None:
        """Load the choices. The list of models comes from a server, so wait only briefly for it."""
        models = asyncio.ensure_future(self._services.models())
        models.add_done_callback(self._on_models_loaded)
        self._options.agents = await self._services.agents()
        await asyncio.wait({models}, timeout=MODELS_TIMEOUT_SECONDS)

    def _on_models_loaded(self, future: "asyncio.Future[Sequence[str]]") -> None:
        if future.cancelled() or future.exception():
            return
        self._options.models = future.result()
        if self._deferred_updates is None:
            self._editor.send_update(ConfigOptionUpdate(self._options.config_options()))

    async def _send_commands(self) -> None:
        """Send the commands if they changed; the prompts of MCP servers become known later than the others."""
        commands = await self._slash_commands.available_commands()
        if commands != self._sent_commands:
            self._sent_commands = commands
            self._editor.send_update(AvailableCommandsUpdate(commands))

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine, name=f"session {self.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- events ----------------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        try:
            async for envelope in self._session.subscribe(0):
                self._commands.on_event(envelope)
                if envelope.seq > self._session.opened_after_seq:
                    self._caught_up.set()
                    self._on_event(envelope.event)
        finally:
            self._caught_up.set()
            for turn_end in self._turn_ends.values():
                if not turn_end.done():  # the waiting prompt may have been cancelled
                    turn_end.set_exception(RpcError(INTERNAL_ERROR, "the session has ended"))

    def _on_event(self, event: Event) -> None:
        for update in self._updates.updates_for(event):
            self._send(update)
        if self._options.on_event(event):
            self._send_options()
        self._requests.on_event(event)
        match event:
            case UsageReported():
                self._usage = add_usage(self._usage, event)
            case TurnStarted() | Renamed() | Reverted():
                self._send_title()
            case InfoChanged() | ToolsChanged() if self._deferred_updates is None:
                self._spawn(self._send_commands())
            case TurnEnded(turn_id) if turn_id in self._turn_ends:
                self._turn_ends.pop(turn_id).set_result(event)
            case _:
                pass

    def _on_terminal_created(self, command: str, terminal_id: str) -> None:
        if update := self._updates.attach_terminal(command, terminal_id):
            self._send(update)

    def _send_title(self) -> None:
        """Tell the editor the title, as the list of sessions shows it, if it changed to another one."""
        title = session_title(current_title(self._session))
        if title not in ("", self._title):
            self._title = title
            self._send(SessionInfoUpdate(title))

    def _send_options(self) -> None:
        self._send(ConfigOptionUpdate(self._options.config_options()))
        if self._options.mode != self._mode:
            self._mode = self._options.mode
            self._send(CurrentModeUpdate(self._mode))

    def _send(self, update: KnownUpdate) -> None:
        if self._deferred_updates is not None:
            self._deferred_updates.append(update)
        else:
            self._editor.send_update(update)

    # -- requests of the editor ------------------------------------------------------------------------------------

    def prompt(self, content: Sequence[ContentBlock]) -> Awaitable[PromptResponse]:
        """Start a prompt immediately, so that a cancel that follows finds it."""
        if self._run:
            raise RpcError(INVALID_REQUEST, "a turn is still running in this session; wait for it, or cancel it")
        blocks = convert_prompt(content)
        self._run = PromptRun()
        return self._run_prompt(self._run, blocks)

    async def steer(self, content: Sequence[ContentBlock], *, require_turn: bool) -> dict[str, str]:
        """Send input to the running turn. Without a turn, start one unless `require_turn` is set.

        This is an extension of ACP that several agents and editors support.
        """
        if not (self._run and self._run.turn):
            if require_turn:
                return {"outcome": "promptRequired", "reason": "noRunningTurn"}
            self._spawn(_run_detached(self.prompt(content)))
            return {"outcome": "startedNewTurn"}
        if not await self._session.apply(Steer(await self._build_prompt(convert_prompt(content)))):
            raise RpcError(INVALID_REQUEST, "this backend does not accept input during a turn")
        return {"outcome": "injected"}

    def cancel(self) -> None:
        if self._run:
            self._run.cancel()

    async def choose_mode(self, mode_id: str) -> None:
        """Set the mode. Raises `RpcError` if there is no such mode."""
        await self.choose(*self._options.mode_choice(mode_id))

    async def choose(self, option_id: str, choice: str) -> tuple[SessionConfigOption, ...]:
        """Set an option and return all options. Raises `RpcError` for an invalid choice."""
        value = self._options.resolve_choice(option_id, choice)
        if value is None:
            raise RpcError(INVALID_PARAMS, f"{choice[:80]!r} is not a choice for {option_id[:80]!r}")
        if not await self._session.apply(SetOption(option_id, value)):
            raise RpcError(INTERNAL_ERROR, f"{option_id} cannot be changed in this session")
        if self._options.on_event(OptionChanged(option_id, value)):
            self._send_options()
        return self._options.config_options()

    async def aclose(self) -> None:
        """Cancel the running prompt and close the session."""
        self.cancel()
        await self._session.aclose()
        await self._requests.aclose()
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    # -- a turn ----------------------------------------------------------------------------------------------------

    async def _run_prompt(self, run: PromptRun, blocks: list[PromptContent]) -> PromptResponse:
        task = run.task = asyncio.ensure_future(self._handle_prompt(run, blocks))
        if run.cancelled:
            task.cancel()
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            run.cancel()
            await asyncio.gather(task, return_exceptions=True)  # the error of a cancelled turn is not needed
            return PromptResponse("cancelled")
        finally:
            self._run = None

    async def _handle_prompt(self, run: PromptRun, blocks: list[PromptContent]) -> PromptResponse:
        result = await self._slash_commands.run(prompt_text(blocks)) if starts_with_command(blocks) else None
        if result is None:
            return await self._run_turn(run, await self._build_prompt(blocks))
        if isinstance(result, StartTurn):
            self._send_notices(result.notices)
            others = [block for block in blocks if not isinstance(block, TextContent)]
            return await self._run_turn(run, replace(result.prompt, blocks=(*result.prompt.blocks, *others)))
        self._editor.send_update(AgentMessageChunk(text_content(result_markdown(result)), new_id()))
        return PromptResponse("end_turn")

    async def _build_prompt(self, blocks: list[PromptContent]) -> Prompt:
        """Build the prompt; ask the user about mentioned agents, and files that are outside or may contain secrets."""
        text = prompt_text(blocks, "\n")  # a mention does not continue in the next block
        agent, pasted = active_agent(self._session), later_text(blocks)
        source = PromptSource(agent, pasted, may_be_pasted=True, session_id=self._session.id)
        built = await self._services.build_prompt(text, source)
        if built.questions:
            approved = await self._requests.confirm(new_id(), f"Your prompt would {' and '.join(built.questions)}.")
            built = await self._services.build_prompt(text, replace(source, approved=approved))
        self._send_notices(left_out_notices(built))
        return replace(built.prompt, blocks=(*blocks, *built.prompt.blocks[1:]))

    def _send_notices(self, notices: Sequence[str]) -> None:
        for notice in notices:
            self._send(self._updates.notice(notice))

    async def _run_turn(self, run: PromptRun, prompt: Prompt) -> PromptResponse:
        self._usage = PromptUsage()
        if self._directories:
            prompt = replace(
                prompt, blocks=(*prompt.blocks, TextContent(additional_directories_note(self._directories)))
            )
            self._directories = ()
        if earlier := self._session.turn:  # of an earlier process or another client, which a server goes on with
            try:
                await earlier.wait()
            except asyncio.CancelledError:
                earlier.cancel()
                raise
        turn = run.turn = self._session.start(prompt)
        turn_end = self._turn_ends[turn.id] = asyncio.get_running_loop().create_future()
        return prompt_response(await turn_end, self._usage, cancelled=run.cancelled)


async def _run_detached(turn: Awaitable[PromptResponse]) -> None:
    """Run a turn without a response; its results and errors are sent as updates."""
    with contextlib.suppress(RpcError, OstlerError):
        await turn


def additional_directories_note(directories: Sequence[str]) -> str:
    """Return the note for the model about additional folders."""
    return f"\n\n[You can also read, but not change, these folders: {', '.join(directories)}]"


def new_id() -> str:
    """Return a new unique id."""
    return f"editor-{os.urandom(6).hex()}"
