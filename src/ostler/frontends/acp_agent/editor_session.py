"""One session as an editor has it open: prompts become turns, events become updates, asks become requests."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Coroutine, Sequence
from typing import Any

from msgspec.structs import replace

from ostler.commands.dispatcher import CommandDispatcher
from ostler.commands.results import StartTurn
from ostler.commands.services import CommandServices
from ostler.core.errors import OstlerError
from ostler.core.events import Envelope, InfoChanged, OptionChanged, TurnEnded, UsageReported
from ostler.core.prompt import Prompt, PromptContent, TextContent
from ostler.core.protocols import Session, Turn
from ostler.core.sessions import SetOption, Steer
from ostler.frontends.acp_agent.config_options import EditorOptions
from ostler.frontends.acp_agent.editor_client import EditorClient
from ostler.frontends.acp_agent.editor_requests import EditorRequests
from ostler.frontends.acp_agent.prompt_content import convert_prompt, prompt_text
from ostler.frontends.acp_agent.session_updates import SessionUpdateBuilder, effective_records
from ostler.frontends.acp_agent.slash_commands import EditorSlashCommands, result_markdown
from ostler.frontends.acp_agent.stop_reason import add_usage, prompt_response
from ostler.wire.acp import ContentBlock, SessionConfigOption, text_content
from ostler.wire.acp_requests import OpenSessionResponse, PromptResponse, PromptUsage
from ostler.wire.acp_updates import (
    AgentMessageChunk,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    KnownUpdate,
    UsageUpdate,
)
from ostler.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, RpcError

MODELS_TIMEOUT_SECONDS = 1.0


class PromptRun:
    """One prompt from its arrival to its answer; it can be called off at any moment."""

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
    """Follows a session from its first event; `opened_at` parts what was from what is."""

    def __init__(
        self,
        session: Session,
        cwd: str,
        services: CommandServices,
        editor: EditorClient,
        directories: Sequence[str] = (),
    ) -> None:
        """`directories` can be read besides `cwd`; whoever works is told of them with the first prompt."""
        self._directories = directories
        self._session = session
        self._services = services
        self._editor = editor
        self._updates = SessionUpdateBuilder(cwd)
        self._options = EditorOptions(session.info)
        self._mode = self._options.mode
        self._commands = CommandDispatcher(session, services, new_id)
        self._slash_commands = EditorSlashCommands(self._commands, services, session)
        self._requests = EditorRequests(editor, cwd, session.answer, self._updates.find_call)
        editor.on_terminal_created = self._on_terminal_created
        self._run: PromptRun | None = None
        self._turn_ends: dict[str, asyncio.Future[TurnEnded]] = {}
        self._usage = PromptUsage()
        self._history: list[Envelope] = []
        self._deferred_updates: list[KnownUpdate] | None = []
        self._caught_up = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def id(self) -> str:
        return self._session.id

    # -- opening ---------------------------------------------------------------------------------------------------

    async def start(self, *, replay: bool) -> OpenSessionResponse:
        """Follow it, tell what was if that is wanted, and say what can be chosen."""
        self._spawn(self._follow())
        await self._load_options()
        await self._caught_up.wait()
        self._replay_history(replay=replay)
        asyncio.get_running_loop().call_soon(self._flush_updates)
        return OpenSessionResponse(self.id, self._options.modes(), self._options.config_options())

    def add_notice(self, text: str) -> None:
        """Something for the person, before anything else is said in the session."""
        self._send(AgentMessageChunk(text_content(text), new_id()))

    def _replay_history(self, *, replay: bool) -> None:
        """What was: told, or only taken in."""
        self._updates.replaying = True
        usage: KnownUpdate | None = None
        for envelope in effective_records(self._history):
            for update in self._updates.updates_for(envelope.event):
                if isinstance(update, UsageUpdate):
                    usage = update
                elif replay:
                    self._editor.send_update(update)
        if usage and replay:
            self._editor.send_update(usage)
        self._updates.replaying = False
        self._history = []

    def _flush_updates(self) -> None:
        """The editor knows the session now, so it can be told of it."""
        held, self._deferred_updates = self._deferred_updates or [], None
        for update in held:
            self._editor.send_update(update)
        self._spawn(self._send_commands())

    async def _load_options(self) -> None:
        """The choices; models are asked of a server, which may take its time."""
        asking = asyncio.ensure_future(self._services.models())
        asking.add_done_callback(self._on_models_loaded)
        self._options.agents = await self._services.agents()
        await asyncio.wait({asking}, timeout=MODELS_TIMEOUT_SECONDS)

    def _on_models_loaded(self, future: "asyncio.Future[Sequence[str]]") -> None:
        if future.cancelled() or future.exception():
            return
        self._options.models = future.result()
        if self._deferred_updates is None:
            self._editor.send_update(ConfigOptionUpdate(self._options.config_options()))

    async def _send_commands(self) -> None:
        self._editor.send_update(AvailableCommandsUpdate(await self._slash_commands.available_commands()))

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine, name=f"session {self.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- what happens ----------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        try:
            async for envelope in self._session.subscribe(0):
                self._commands.on_event(envelope)
                if envelope.seq > self._session.opened_after_seq:
                    self._caught_up.set()
                    self._on_event(envelope)
                else:
                    self._history.append(envelope)
        finally:
            self._caught_up.set()
            for over in self._turn_ends.values():
                if not over.done():  # whoever waited may have been called off first
                    over.set_exception(RpcError(INTERNAL_ERROR, "the session has ended"))

    def _on_event(self, envelope: Envelope) -> None:
        event = envelope.event
        for update in self._updates.updates_for(event):
            self._send(update)
        if self._options.on_event(event):
            self._send_options()
        self._requests.on_event(event)
        match event:
            case UsageReported():
                self._usage = add_usage(self._usage, event)
            case InfoChanged() if self._deferred_updates is None:
                self._spawn(self._send_commands())
            case TurnEnded(turn_id) if turn_id in self._turn_ends:
                self._turn_ends.pop(turn_id).set_result(event)
            case _:
                pass

    def _on_terminal_created(self, command: str, terminal_id: str) -> None:
        if update := self._updates.attach_terminal(command, terminal_id):
            self._send(update)

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

    # -- what the editor wants -------------------------------------------------------------------------------------

    def prompt(self, content: Sequence[ContentBlock]) -> Awaitable[PromptResponse]:
        """Begin at once, so that a cancel right behind it finds it."""
        if self._run:
            raise RpcError(INVALID_REQUEST, "a turn is still running in this session; wait for it, or cancel it")
        blocks = convert_prompt(content)
        self._run = PromptRun()
        return self._run_prompt(self._run, blocks)

    async def steer(self, content: Sequence[ContentBlock], *, require_turn: bool) -> dict[str, str]:
        """Words for the turn that runs; where none does, the editor sends them itself if it `waits`, else one begins.

        This is no part of the protocol yet, but what several agents and editors have agreed on.
        """
        if not (self._run and self._run.turn):
            if require_turn:
                return {"outcome": "promptRequired", "reason": "noRunningTurn"}
            self._spawn(_run_detached(self.prompt(content)))
            return {"outcome": "startedNewTurn"}
        blocks = convert_prompt(content)
        ready = await self._services.build_prompt(prompt_text(blocks))
        prompt = replace(ready.prompt, blocks=(*blocks, *ready.prompt.blocks[1:]))
        if not await self._session.apply(Steer(prompt)):
            raise RpcError(INVALID_REQUEST, "this backend takes no words during a turn")
        return {"outcome": "injected"}

    def cancel(self) -> None:
        if self._run:
            self._run.cancel()

    @property
    def mode_option(self) -> str:
        return self._options.mode_option

    async def choose(self, option_id: str, choice: str) -> tuple[SessionConfigOption, ...]:
        """Choose something; what is not among the choices is refused."""
        value = self._options.resolve_choice(option_id, choice)
        if value is None:
            raise RpcError(INVALID_PARAMS, f"there is no {choice[:80]!r} to choose for {option_id[:80]!r}")
        if not await self._session.apply(SetOption(option_id, value)):
            raise RpcError(INTERNAL_ERROR, f"{option_id} cannot be changed in this session")
        if self._options.on_event(OptionChanged(option_id, value)):
            self._send_options()
        return self._options.config_options()

    async def aclose(self) -> None:
        """End what runs, and let the session go."""
        self.cancel()
        await self._session.aclose()
        await self._requests.aclose()
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    # -- a turn ----------------------------------------------------------------------------------------------------

    async def _run_prompt(self, run: PromptRun, blocks: list[PromptContent]) -> PromptResponse:
        work = run.task = asyncio.ensure_future(self._handle_prompt(run, blocks))
        if run.cancelled:
            work.cancel()
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            run.cancel()
            await asyncio.gather(work, return_exceptions=True)  # how a cancelled turn failed interests nobody
            return PromptResponse("cancelled")
        finally:
            self._run = None

    async def _handle_prompt(self, run: PromptRun, blocks: list[PromptContent]) -> PromptResponse:
        typed = prompt_text(blocks)
        outcome = await self._slash_commands.run(typed)
        if outcome is None:
            ready = await self._services.build_prompt(typed)
            return await self._run_turn(run, replace(ready.prompt, blocks=(*blocks, *ready.prompt.blocks[1:])))
        if isinstance(outcome, StartTurn):
            others = [block for block in blocks if not isinstance(block, TextContent)]
            return await self._run_turn(run, replace(outcome.prompt, blocks=(*outcome.prompt.blocks, *others)))
        self._editor.send_update(AgentMessageChunk(text_content(result_markdown(outcome)), new_id()))
        return PromptResponse("end_turn")

    async def _run_turn(self, run: PromptRun, prompt: Prompt) -> PromptResponse:
        self._usage = PromptUsage()
        if self._directories:
            prompt = replace(
                prompt, blocks=(*prompt.blocks, TextContent(additional_directories_note(self._directories)))
            )
            self._directories = ()
        turn = run.turn = self._session.start(prompt)
        over = self._turn_ends[turn.id] = asyncio.get_running_loop().create_future()
        return prompt_response(await over, self._usage, cancelled=run.cancelled)


async def _run_detached(turn: Awaitable[PromptResponse]) -> None:
    """A turn that nobody waits for; what comes of it is told in updates."""
    with contextlib.suppress(RpcError, OstlerError):
        await turn


def additional_directories_note(directories: Sequence[str]) -> str:
    """What a model is told of folders that belong to the work too."""
    return f"\n\n[Besides the workspace these folders can be read, but not changed: {', '.join(directories)}]"


def new_id() -> str:
    """An id that no other has."""
    return f"editor-{os.urandom(6).hex()}"
