"""An agent as this side speaks to it: who it is, its sessions, its turns; its errors in our words."""

from typing import Any, TypeVar

import msgspec

from ostler.backends.acp.process import AgentProcess
from ostler.core.errors import BackendError, UsageError
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
from ostler.wire.jsonrpc import INTERNAL_ERROR, METHOD_NOT_FOUND, OutgoingParams, RpcError

W = TypeVar("W", bound=AcpStruct)
_MAX_PAGES = 100


class AgentTimeouts(msgspec.Struct, frozen=True):
    """How many seconds an agent may take to begin; a turn may take for ever."""

    initialize: float = 60.0
    session: float = 60.0
    change: float = 30.0
    close: float = 1.0


class AgentSessionPlace(msgspec.Struct, frozen=True):
    """Where a session of the agent's works, and with which MCP servers."""

    cwd: str
    mcp_servers: tuple[AcpMcpServer, ...] = ()
    directories: tuple[str, ...] = ()


class AcpAgentClient:
    """The typed side of a conversation."""

    def __init__(self, process: AgentProcess, timeouts: AgentTimeouts | None = None) -> None:
        self.process = process
        self.timeouts = timeouts or AgentTimeouts()
        self.info = InitializeResponse(PROTOCOL_VERSION)
        self.raw_info: Any = {}

    @property
    def name(self) -> str:
        return self.process.launch.name

    async def initialize(self, capabilities: ClientCapabilities, version: str) -> InitializeResponse:
        """Agree on the protocol; `BackendError` when the agent speaks another version of it."""
        hello = InitializeRequest(PROTOCOL_VERSION, capabilities, Implementation("ostler", version, "Ostler"))
        self.raw_info = await self._request("initialize", hello, self.timeouts.initialize)
        self.info = decode_lenient(InitializeResponse, self.raw_info)
        if self.info.protocol_version != PROTOCOL_VERSION:
            spoken = self.info.protocol_version
            message = f"{self.name} speaks version {spoken} of the protocol and Ostler version {PROTOCOL_VERSION}"
            raise BackendError(message, code="protocol", hint="use another version of the agent")
        return self.info

    async def authenticate(self, method_id: str) -> None:
        """Log in by one of the agent's methods."""
        known = [method.id for method in self.info.auth_methods]
        if method_id not in known:
            ways = f"it has {', '.join(known)}" if known else "it has none"
            raise UsageError(f"{self.name} has no way to log in called {method_id!r}", hint=ways)
        await self._call(AcpStruct, "authenticate", {"methodId": method_id}, self.timeouts.session)

    # -- sessions --------------------------------------------------------------------------------------------------

    async def new_session(self, place: AgentSessionPlace) -> OpenSessionResponse:
        return self._require_id(await self._open_session("session/new", place, None))

    @property
    def can_resume(self) -> bool:
        """Whether it can go on with an earlier session."""
        return self.info.agent_capabilities.load_session or self.info.agent_capabilities.can("resume")

    async def resume_session(self, session_id: str, place: AgentSessionPlace) -> OpenSessionResponse:
        """An earlier session: resumed where that is offered, else loaded, which replays it."""
        method = "session/resume" if self.info.agent_capabilities.can("resume") else "session/load"
        opened = await self._open_session(method, place, session_id)
        return msgspec.structs.replace(opened, session_id=session_id)

    async def fork_session(self, session_id: str, place: AgentSessionPlace) -> OpenSessionResponse:
        """A copy of an earlier session, with an id of its own."""
        return self._require_id(await self._open_session("session/fork", place, session_id))

    def _require_id(self, opened: OpenSessionResponse) -> OpenSessionResponse:
        if not opened.session_id:
            raise BackendError(f"{self.name} opened a session without an id", code="protocol")
        return opened

    async def _open_session(self, method: str, place: AgentSessionPlace, session_id: str | None) -> OpenSessionResponse:
        can_add = self.info.agent_capabilities.can("additional_directories")
        more = place.directories if place.directories and can_add else None
        asked = OpenSessionParams(place.cwd, place.mcp_servers, session_id, more)
        return await self._call(OpenSessionResponse, method, asked, self.timeouts.session)

    async def list_sessions(self, cwd: str | None = None) -> list[AcpSessionInfo]:
        """All of them, page by page."""
        found: list[AcpSessionInfo] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await self._call(
                ListSessionsResponse, "session/list", ListSessionsRequest(cwd, cursor), self.timeouts.session
            )
            found += page.sessions
            cursor = page.next_cursor
            if not cursor:
                break
        return found

    async def delete_session(self, session_id: str) -> None:
        await self._call(AcpStruct, "session/delete", {"sessionId": session_id}, self.timeouts.session)

    async def close_session(self, session_id: str) -> None:
        """Say good-bye where the agent wants to hear it; that it does not answer is no failure."""
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
        """Whether it takes words during a turn: no part of the protocol yet, but what several agents agreed on."""
        told = (self.info.meta or {}).get("steering")
        return isinstance(told, dict) and told.get("supported") is True

    async def steer(self, session_id: str, blocks: tuple[ContentBlock, ...]) -> bool:
        """Words for the turn that runs; False where none did any more."""
        asked = PromptRequest(session_id, blocks, meta={"steering": {"idleBehavior": "promptRequired"}})
        told = await self._request("_session/steering", asked, self.timeouts.change)
        return isinstance(told, dict) and told.get("outcome") == "injected"

    def cancel(self, session_id: str) -> None:
        self.process.peer.notify("session/cancel", {"sessionId": session_id})

    # -- options ---------------------------------------------------------------------------------------------------

    async def set_mode(self, session_id: str, mode_id: str) -> None:
        await self._call(
            AcpStruct, "session/set_mode", SetSessionModeRequest(session_id, mode_id), self.timeouts.change
        )

    async def set_option(self, session_id: str, option_id: str, value: str | bool) -> OpenSessionResponse:
        """The options as they are after that; agents that tell nothing give an empty answer."""
        kind = "boolean" if isinstance(value, bool) else None
        change = SetSessionConfigOptionRequest(session_id, option_id, value, kind)
        return await self._call(OpenSessionResponse, "session/set_config_option", change, self.timeouts.change)

    async def set_model(self, session_id: str, model_id: str) -> None:
        """The way of agents from before there were config options."""
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
            return BackendError(f"{self.name} wants a login: {error.details}", code="login", hint=self._login_hint())
        if error.code == METHOD_NOT_FOUND:
            return BackendError(f"{self.name} does not know {method}", code="protocol")
        said = f"{self.name} answered {method} with an error: {error.details}"
        bare = error.code == INTERNAL_ERROR and error.data is None  # then its log is all there is to go by
        return BackendError(f"{said}{self.process.stderr_tail()}" if bare else said, code="agent_error")

    def _login_hint(self) -> str:
        ways = [_describe_login(method) for method in self.info.auth_methods]
        return f"log in with its own program, or by --auth with {' or '.join(ways)}" if ways else "use its own program"


def _describe_login(method: Any) -> str:
    return f"{method.id} ({method.name})" if method.name and method.name != method.id else str(method.id)
