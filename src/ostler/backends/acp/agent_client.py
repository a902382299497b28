"""Typed client for one ACP agent: initialize, sessions, prompts, options; RPC errors become `BackendError`."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from ostler.core.errors import BackendError, UsageError
from ostler.stdio_rpc.program import LEAVE_TIMEOUT, Launch, RpcProgram, start_program
from ostler.wire.acp import AUTH_REQUIRED, PROTOCOL_VERSION, AcpMcpServer, AcpStruct, ContentBlock
from ostler.wire.acp_decode import decode_lenient
from ostler.wire.acp_requests import (
    AcpSessionInfo,
    ClientCapabilities,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    ListSessionsRequest,
    ListSessionsResponse,
    OpenSessionParams,
    OpenSessionResponse,
    PromptRequest,
    PromptResponse,
    SetSessionConfigOptionRequest,
    SetSessionModeRequest,
)
from ostler.wire.jsonrpc import INTERNAL_ERROR, METHOD_NOT_FOUND, Mirror, OutgoingParams, Params, RpcError

W = TypeVar("W", bound=AcpStruct)
_MAX_PAGES = 100


class AgentTimeouts(msgspec.Struct, frozen=True):
    """Timeouts of requests in seconds; turns have none. `leave` is the time to exit after the input is closed."""

    initialize: float = 60.0
    session: float = 60.0
    change: float = 30.0
    close: float = 1.0
    leave: float = LEAVE_TIMEOUT


class AgentSessionPlace(msgspec.Struct, frozen=True):
    """The folders and MCP servers of an agent's session."""

    cwd: str
    mcp_servers: tuple[AcpMcpServer, ...] = ()
    directories: tuple[str, ...] = ()


class AcpAgentClient:
    """Sends typed requests to an agent."""

    def __init__(self, process: RpcProgram, timeouts: AgentTimeouts | None = None) -> None:
        self.process = process
        self.timeouts = timeouts or AgentTimeouts()
        self.info = InitializeResponse(PROTOCOL_VERSION)
        self.raw_info: Any = {}

    @property
    def name(self) -> str:
        return self.process.launch.name

    async def initialize(self, capabilities: ClientCapabilities, version: str) -> InitializeResponse:
        """Initialize the connection. Raises `BackendError` if the agent uses another protocol version."""
        request = InitializeRequest(PROTOCOL_VERSION, capabilities, Implementation("ostler", version, "Ostler"))
        self.raw_info = await self._request("initialize", request, self.timeouts.initialize)
        self.info = decode_lenient(InitializeResponse, self.raw_info)
        if self.info.protocol_version != PROTOCOL_VERSION:
            agent_version = self.info.protocol_version
            message = f"{self.name} uses protocol version {agent_version}; Ostler supports version {PROTOCOL_VERSION}"
            raise BackendError(message, code="protocol", hint="install another version of the agent")
        return self.info

    async def authenticate(self, method_id: str) -> None:
        """Log in with one of the agent's methods. Raises `UsageError` if the method is unknown."""
        known = [method.id for method in self.info.auth_methods]
        if method_id not in known:
            hint = f"available: {', '.join(known)}" if known else "this agent has no login methods"
            raise UsageError(f"{self.name} has no login method {method_id!r}", hint=hint)
        await self._call(AcpStruct, "authenticate", {"methodId": method_id}, self.timeouts.session)

    # -- sessions --------------------------------------------------------------------------------------------------

    async def new_session(self, place: AgentSessionPlace) -> OpenSessionResponse:
        return self._require_id(await self._open_session("session/new", place, None))

    @property
    def can_resume(self) -> bool:
        """Whether the agent can resume or load a session."""
        return self.info.agent_capabilities.load_session or self.info.agent_capabilities.can("resume")

    async def resume_session(self, session_id: str, place: AgentSessionPlace) -> OpenSessionResponse:
        """Resume a session or, if the agent cannot, load it, which replays it."""
        method = "session/resume" if self.info.agent_capabilities.can("resume") else "session/load"
        opened = await self._open_session(method, place, session_id)
        return msgspec.structs.replace(opened, session_id=session_id)

    async def fork_session(self, session_id: str, place: AgentSessionPlace) -> OpenSessionResponse:
        """Copy a session into a new one."""
        return self._require_id(await self._open_session("session/fork", place, session_id))

    def _require_id(self, opened: OpenSessionResponse) -> OpenSessionResponse:
        if not opened.session_id:
            raise BackendError(f"{self.name} opened a session without an id", code="protocol")
        return opened

    async def _open_session(self, method: str, place: AgentSessionPlace, session_id: str | None) -> OpenSessionResponse:
        can_add = self.info.agent_capabilities.can("additional_directories")
        directories = place.directories if place.directories and can_add else None
        params = OpenSessionParams(place.cwd, place.mcp_servers, session_id, directories)
        return await self._call(OpenSessionResponse, method, params, self.timeouts.session)

    async def list_sessions(self, cwd: str | None = None) -> list[AcpSessionInfo]:
        """Return all sessions, reading all pages."""
        sessions: list[AcpSessionInfo] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await self._call(
                ListSessionsResponse, "session/list", ListSessionsRequest(cwd, cursor), self.timeouts.session
            )
            sessions += page.sessions
            cursor = page.next_cursor
            if not cursor:
                break
        return sessions

    async def delete_session(self, session_id: str) -> None:
        await self._call(AcpStruct, "session/delete", {"sessionId": session_id}, self.timeouts.session)

    async def close_session(self, session_id: str) -> None:
        """Close the session if the agent supports it; failures are ignored."""
        if self.info.agent_capabilities.can("close") and not self.process.peer.closed:
            try:
                await self._call(AcpStruct, "session/close", {"sessionId": session_id}, self.timeouts.close)
            except BackendError:
                return

    # -- turns -----------------------------------------------------------------------------------------------------

    async def prompt(self, session_id: str, blocks: tuple[ContentBlock, ...]) -> PromptResponse:
        return await self._call(PromptResponse, "session/prompt", PromptRequest(session_id, blocks), None)

    @property
    def can_steer(self) -> bool:
        """Whether the agent accepts prompts during a turn, by an extension that several agents share."""
        steering = (self.info.meta or {}).get("steering")
        return isinstance(steering, dict) and steering.get("supported") is True

    async def steer(self, session_id: str, blocks: tuple[ContentBlock, ...]) -> bool:
        """Send a prompt to the running turn. Return False if no turn was running."""
        request = PromptRequest(session_id, blocks, meta={"steering": {"idleBehavior": "promptRequired"}})
        response = await self._request("_session/steering", request, self.timeouts.change)
        return isinstance(response, dict) and response.get("outcome") == "injected"

    def cancel(self, session_id: str) -> None:
        self.process.peer.notify("session/cancel", {"sessionId": session_id})

    # -- options ---------------------------------------------------------------------------------------------------

    async def set_mode(self, session_id: str, mode_id: str) -> None:
        await self._call(
            AcpStruct, "session/set_mode", SetSessionModeRequest(session_id, mode_id), self.timeouts.change
        )

    async def set_option(self, session_id: str, option_id: str, value: str | bool) -> OpenSessionResponse:
        """Set an option and return the agent's options, which some agents leave out."""
        kind = "boolean" if isinstance(value, bool) else None
        change = SetSessionConfigOptionRequest(session_id, option_id, value, kind)
        return await self._call(OpenSessionResponse, "session/set_config_option", change, self.timeouts.change)

    async def set_model(self, session_id: str, model_id: str) -> None:
        """Set the model by the request that older agents use instead of config options."""
        change = {"sessionId": session_id, "modelId": model_id}
        await self._call(AcpStruct, "session/set_model", change, self.timeouts.change)

    async def _call(self, kind: type[W], method: str, params: OutgoingParams, timeout: float | None) -> W:
        return decode_lenient(kind, await self._request(method, params, timeout))

    async def _request(self, method: str, params: OutgoingParams, timeout: float | None) -> Any:
        try:
            return await self.process.request(method, params, timeout)
        except RpcError as error:
            raise self._to_backend_error(method, error) from None

    def _to_backend_error(self, method: str, error: RpcError) -> BackendError:
        if error.code == AUTH_REQUIRED:
            return BackendError(f"{self.name} requires a login: {error.details}", code="login", hint=self._login_hint())
        if error.code == METHOD_NOT_FOUND:
            return BackendError(f"{self.name} does not support {method}", code="protocol")
        message = f"{self.name} answered {method} with an error: {error.details}"
        no_details = error.code == INTERNAL_ERROR and error.data is None  # then its log is the only source
        return BackendError(f"{message}{self.process.stderr_tail()}" if no_details else message, code="agent_error")

    def _login_hint(self) -> str:
        methods = " or ".join(_describe_login(method) for method in self.info.auth_methods)
        return "log in with the agent's own program" + (f", or pass --auth with {methods}" if methods else "")


def _describe_login(method: Any) -> str:
    return f"{method.id} ({method.name})" if method.name and method.name != method.id else str(method.id)


class _NoSessionHandler:
    """The client side of a connection without a session, which serves no requests."""

    def handle_request(self, method: str, params: Params) -> Awaitable[Any]:
        raise RpcError(METHOD_NOT_FOUND, f"method {method!r} is not supported by this client")

    def handle_notification(self, method: str, params: Params) -> None:
        """Ignore it: there is no session."""


@asynccontextmanager
async def connect_agent(launch: Launch, version: str, mirror: Mirror | None = None) -> AsyncIterator[AcpAgentClient]:
    """Start and initialize an agent, and stop it at the end."""
    process = await start_program(launch, _NoSessionHandler(), mirror=mirror)
    try:
        agent = AcpAgentClient(process)
        await agent.initialize(ClientCapabilities(), version)
        yield agent
    finally:
        await process.stop()
