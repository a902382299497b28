"""The ACP backend: one agent process and one session of it."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import msgspec

from ostler.backends.acp.agent_client import AcpAgentClient, AgentSessionPlace, AgentTimeouts
from ostler.backends.acp.client_requests import ClientRequestHandler, ClientServices
from ostler.backends.acp.options import AgentOptions
from ostler.backends.acp.replay_end import ReplayEnd
from ostler.backends.acp.update_translator import UpdateTranslator
from ostler.core.errors import BackendError, Fault, OstlerError, UsageError
from ostler.core.events import Delivered, InfoChanged, Notice, RemoteCursor, TurnEnded
from ostler.core.prompt import EmbeddedResource, ImageContent, Prompt, PromptContent, ResourceLink, TextContent
from ostler.core.protocols import BackendContext
from ostler.core.sessions import McpServerRequest, SessionChange, SessionInfo, SessionStart, SetOption, Steer
from ostler.stdio_rpc.program import Launch, start_program
from ostler.wire.acp import AcpMcpServer, ContentBlock, ResourceContents, text_content
from ostler.wire.acp_observer import AcpObserver
from ostler.wire.acp_requests import (
    ClientCapabilities,
    FileSystemCapabilities,
    InitializeResponse,
    OpenSessionResponse,
    PromptResponse,
)
from ostler.wire.acp_updates import SessionUpdate, decode_update
from ostler.wire.jsonrpc import Mirror, Params

DRAIN_SECONDS = 0.1  # some agents send the last chunks after the response; it ends when none comes for this time
MAX_DRAIN_SECONDS = 2.0
CANCEL_WAIT = 5.0
# gemini-cli reads a file through the client before it creates it, and takes every error for a failure of the file
# system. Other agents need the error to know that a file does not exist.
_EXPECT_EMPTY_CONTENT = ("gemini-cli",)
_LIMITS = {"max_tokens": "tokens", "max_turn_requests": "steps"}


class AcpSessionPlan(msgspec.Struct, frozen=True):
    """What to open: the program, the agent's session and its settings. `required_options` must be accepted."""

    launch: Launch
    version: str
    mcp_servers: tuple[McpServerRequest, ...] = ()
    directories: tuple[str, ...] = ()
    resume: str = ""
    fork: bool = False
    login: str = ""
    timeouts: AgentTimeouts = AgentTimeouts()
    supports_elicitation: bool = True
    required_options: tuple[tuple[str, str], ...] = ()


class AcpBackend:
    """One agent process with one session; `services` is what the agent may use of this client."""

    def __init__(
        self,
        plan: AcpSessionPlan,
        services: ClientServices,
        observer: AcpObserver | None = None,
        mirror: Mirror | None = None,
    ) -> None:
        self._plan = plan
        self._services = services
        self._observer = observer or AcpObserver()
        self._mirror = mirror
        self._early_updates: list[tuple[str, SessionUpdate]] | None = []
        self._session_id = ""
        self._replay: ReplayEnd | None = None
        self._fork_pending = plan.fork
        self._steered_ids: list[str] = []
        self._name = plan.launch.name
        self._start: SessionStart
        self._context: BackendContext
        self._updates: UpdateTranslator
        self._request_handler: ClientRequestHandler
        self.response: PromptResponse | None = None
        self.agent: AcpAgentClient
        self.options: AgentOptions

    @property
    def agent_session_id(self) -> str:
        """The agent's own id of the session."""
        return self._session_id

    @property
    def updates(self) -> UpdateTranslator:
        return self._updates

    # -- request handler -------------------------------------------------------------------------------------------

    def handle_request(self, method: str, params: Params) -> Awaitable[Any]:
        return self._request_handler.handle_request(method, params)

    def handle_notification(self, method: str, params: Params) -> None:
        """Handle a session update; other notifications are ignored.

        Updates that arrive before the session id is known are queued.
        """
        if method != "session/update":
            return
        update, session_id = decode_update(params.get("update")), str(params.get("sessionId"))
        if self._early_updates is not None and self._updates.phase != "replay":
            self._early_updates.append((session_id, update))
        elif self._updates.phase == "replay" or session_id == self._session_id:
            if self._replay:
                self._replay.on_update(update)
            self._updates.translate(update)

    # -- backend ---------------------------------------------------------------------------------------------------

    async def open(self, start: SessionStart, context: BackendContext) -> SessionInfo:
        self._start = start
        self._context = context
        self._updates = UpdateTranslator(self._name, start.cwd, context.emit, self._observer)
        self._request_handler = ClientRequestHandler(context, start.cwd, self._updates, self._services, self._observer)
        await self._connect(start)
        self._updates.on_info_changed = lambda: context.emit(InfoChanged(self._info()))
        return self._info()

    async def _connect(self, start: SessionStart) -> None:
        """Start the program and open the session. On failure the program is stopped."""
        self._early_updates = []
        process = await start_program(self._plan.launch, self, mirror=self._mirror)
        self.agent = AcpAgentClient(process, self._plan.timeouts)
        try:
            info = await self.agent.initialize(self._capabilities(), self._plan.version)
            name = info.agent_info.name if info.agent_info else ""
            self._request_handler.missing_files_are_empty = name in _EXPECT_EMPTY_CONTENT
            if self._plan.login:
                await self.agent.authenticate(self._plan.login)
            self._on_opened(await self._open_session(start))
            await self._restore_options(start.options)
            for name, value in self._plan.required_options:
                await self.options.set(name, value)
        except BaseException:
            await process.stop(0)
            raise
        self._context.emit(RemoteCursor(self._session_id, 0))

    async def run_turn(self, prompt: Prompt | None) -> TurnEnded:
        if prompt is None:
            raise BackendError(f"{self._name} has not started a turn", code="protocol")
        if self.agent.process.peer.closed:
            await self.agent.process.stop()
            await self._connect(self._start)  # the process ended in an earlier turn
        await self._finish_replay()
        self._updates.begin_turn()
        request = asyncio.ensure_future(self.agent.prompt(self._session_id, self._content_blocks(prompt)))
        interrupted, self.response = True, None
        try:
            self.response = response = await asyncio.shield(request)
            await self._drain()
            interrupted = False
        except asyncio.CancelledError:
            await self._cancel_turn(request)
            raise
        finally:
            self._updates.finish_turn(truncated=interrupted)
            self._services.on_turn_end()
            steered, self._steered_ids = self._steered_ids, []
            for prompt_id in steered:
                self._context.emit(Delivered(prompt_id))
        self._updates.report_usage(response, self._info().option("model"))
        return self._turn_end(response)

    def _content_blocks(self, prompt: Prompt) -> tuple[ContentBlock, ...]:
        """Return the prompt after everything that the agent has not been sent yet."""
        notes = tuple(map(text_content, self._context.unsent_notes()))
        return (*notes, *to_content_blocks(prompt, self.agent.info))

    async def _drain(self) -> None:
        """Wait until no more updates of the turn arrive."""
        for _ in range(round(MAX_DRAIN_SECONDS / DRAIN_SECONDS)):
            count = self._updates.count
            await asyncio.sleep(DRAIN_SECONDS)
            if self._updates.count == count:
                return

    async def apply(self, change: SessionChange) -> bool:
        try:
            match change:
                case SetOption(name, value):
                    await self.options.set(name, value)
                case Steer(prompt):
                    return await self._steer(prompt)
                case _:
                    return False
        except OstlerError as error:
            self._context.emit(Notice("warning", str(error)))
            return False
        self._context.emit(InfoChanged(self._info()))
        return True

    async def _steer(self, prompt: Prompt) -> bool:
        """Return whether the agent accepted the prompt; without a running turn it is not sent."""
        if self._updates.phase != "turn":
            return False
        accepted = await self.agent.steer(self._session_id, to_content_blocks(prompt, self.agent.info))
        self._steered_ids += [prompt.id] if accepted else []
        return accepted

    async def kill(self) -> None:
        """Stop the agent without waiting for its turn to end."""
        await self.agent.process.stop(0)

    async def aclose(self) -> None:
        if not self._session_id:
            return
        await self.agent.close_session(self._session_id)
        await self.agent.process.stop(self._plan.timeouts.leave)

    # -- internals -------------------------------------------------------------------------------------------------

    def _capabilities(self) -> ClientCapabilities:
        elicitation = self._plan.supports_elicitation or bool(self._services.answers)
        return ClientCapabilities(
            FileSystemCapabilities(self._services.files, self._services.files),
            self._services.terminal,
            {"form": {}, "url": {}} if elicitation else None,
            {"configOptions": {"boolean": {}}},
        )

    async def _open_session(self, start: SessionStart) -> OpenSessionResponse:
        """Open the requested session, the one of this journal, or a new one."""
        place = AgentSessionPlace(start.cwd, self._supported_mcp_servers(), self._plan.directories)
        session_id = self._plan.resume or self._last_session_id()
        if not session_id:
            return await self.agent.new_session(place)
        if self._fork_pending:
            return await self._copy(session_id, place)
        if not self.agent.can_resume:
            return await self._new_session_instead(place, UsageError(f"{self._name} cannot resume sessions"))
        self._updates.phase = "replay"
        self._replay = ReplayEnd(expected=not self.agent.info.agent_capabilities.can("resume"))
        try:
            opened = await self.agent.resume_session(session_id, place)
        except BackendError as error:
            self._updates.phase, self._replay = "idle", None
            return await self._new_session_instead(place, error)
        self._replay.on_opened()
        return opened

    async def _finish_replay(self) -> None:
        """Wait for the end of the replay of a resumed session, so that the turn does not contain a part of it."""
        if self._replay:
            await self._replay.wait()
            self._updates.phase, self._replay = "idle", None

    def _supported_mcp_servers(self) -> tuple[AcpMcpServer, ...]:
        """Return the MCP servers whose transport the agent supports, with a warning about the others."""
        offered = self.agent.info.agent_capabilities.mcp_capabilities
        supported = {None: True, "http": offered.http, "sse": offered.sse}
        servers = tuple(map(AcpMcpServer.from_request, self._plan.mcp_servers))
        omitted = [server for server in servers if not supported.get(server.type)]
        if omitted:
            names = ", ".join(f"{server.name} ({server.type})" for server in omitted)
            message = f"{self._name} does not support the transport of these MCP servers, so it does not get them"
            self._context.emit(Notice("warning", f"{message}: {names}"))
        return tuple(server for server in servers if server not in omitted)

    async def _copy(self, session_id: str, place: AgentSessionPlace) -> OpenSessionResponse:
        """Fork a session. The original is never used, so that it does not receive this session's prompts."""
        if not self.agent.info.agent_capabilities.can("fork"):
            return await self._new_session_instead(place, UsageError(f"{self._name} cannot fork sessions"))
        try:
            return await self.agent.fork_session(session_id, place)
        except BackendError as error:
            failure = error
        return await self._new_session_instead(place, failure)

    async def _new_session_instead(self, place: AgentSessionPlace, error: OstlerError) -> OpenSessionResponse:
        """Open a new agent session with a warning. Raises `error` if the user named the session to resume."""
        if self._plan.resume:
            raise error
        self._context.emit(Notice("warning", f"{error}; started a new agent session without the earlier conversation"))
        return await self.agent.new_session(place)

    def _last_session_id(self) -> str:
        session_ids = [event.epoch for event in self._context.events() if isinstance(event, RemoteCursor)]
        return session_ids[-1] if session_ids else ""

    def _on_opened(self, opened: OpenSessionResponse) -> None:
        self._session_id, self._fork_pending = opened.session_id or "", False
        self.options = AgentOptions(self.agent, self._session_id, opened)
        self._updates.options = self.options
        early, self._early_updates = self._early_updates or [], None
        for session_id, update in early:
            if session_id == self._session_id:
                self._updates.translate(update)

    async def _restore_options(self, options: dict[str, str]) -> None:
        """Set the options of a resumed session again, except those the agent no longer has."""
        current = {option.id: option.value for option in self.options.session_options()}
        for name, value in options.items():
            if name in current and current[name] != value:
                await self.options.set(name, value)

    def _info(self) -> SessionInfo:
        return SessionInfo(
            f"acp:{self._name}",
            self.options.session_options(),
            self._updates.commands,
            can_steer=self.agent.can_steer,
            runs_own_tools=True,
            title=self._updates.title,
        )

    async def _cancel_turn(self, request: "asyncio.Future[PromptResponse]") -> None:
        """Cancel the turn and wait for its end; an agent that does not respond is stopped."""
        self.agent.cancel(self._session_id)
        await asyncio.wait({request}, timeout=CANCEL_WAIT)
        if not request.done():
            request.cancel()
            await self.agent.process.stop(0)
        await asyncio.gather(request, return_exceptions=True)  # errors of a cancelled turn are irrelevant

    def _turn_end(self, response: PromptResponse) -> TurnEnded:
        reason = response.stop_reason
        if reason in _LIMITS:
            return TurnEnded("", "limit", limit=_LIMITS[reason])
        if reason == "cancelled":
            return TurnEnded("", "cancelled")
        if reason == "refusal":
            return TurnEnded("", "failed", Fault("refusal", f"{self._name} refused the request"))
        if reason != "end_turn":
            self._context.emit(Notice("info", f"{self._name} stopped with an unknown reason: {reason}"))
        return TurnEnded("", "done")


def to_content_blocks(prompt: Prompt, agent_info: InitializeResponse) -> tuple[ContentBlock, ...]:
    """Convert all blocks; unsupported ones become text."""
    return tuple(_to_content_block(block, agent_info) for block in prompt.blocks)


def _to_content_block(block: PromptContent, agent_info: InitializeResponse) -> ContentBlock:
    supported = agent_info.agent_capabilities.prompt_capabilities
    match block:
        case TextContent(text):
            return text_content(text)
        case ImageContent(mime, data, name):
            if not supported.image:
                return text_content(f"[image omitted, not supported by this agent: {name or mime}]")
            return ContentBlock("image", data=data, mime_type=mime)
        case EmbeddedResource(uri, text, mime):
            if not supported.embedded_context:
                return text_content(f"{uri}:\n{text}")
            return ContentBlock("resource", resource=ResourceContents(uri, text, mime_type=mime or None))
        case ResourceLink(uri, name, mime):
            return ContentBlock("resource_link", uri=uri, name=name or uri, mime_type=mime or None)
