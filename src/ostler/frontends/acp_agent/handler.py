"""Handles the ACP methods that an editor calls and keeps track of its open sessions."""

import asyncio
import base64
import binascii
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from ostler.core.errors import OstlerError, UsageError
from ostler.core.protocols import SessionManager
from ostler.core.sessions import OpenSessionRequest, SessionInfo, SessionQuery
from ostler.frontends.acp_agent.editor_client import EditorClient, WorkspaceProvider
from ostler.frontends.acp_agent.editor_session import EditorSession
from ostler.text.sanitise import sanitise
from ostler.wire.acp import NOT_FOUND, PROTOCOL_VERSION, AcpMcpServer
from ostler.wire.acp_decode import decode_lenient, decode_params
from ostler.wire.acp_requests import (
    AcpSessionInfo,
    AgentCapabilities,
    ClientCapabilities,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    ListSessionsRequest,
    ListSessionsResponse,
    McpCapabilities,
    OpenSessionParams,
    OpenSessionResponse,
    PromptCapabilities,
    PromptRequest,
    SessionCapabilities,
    SetSessionConfigOptionRequest,
    SetSessionModeRequest,
)
from ostler.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    JsonRpcPeer,
    Params,
    RpcError,
)

PAGE_SIZE = 100
MAX_NAMED_SERVERS = 10
STEERING_METHOD = "_session/steering"
CAPABILITIES = AgentCapabilities(
    mcp_capabilities=McpCapabilities(http=True),
    load_session=True,
    prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
    session_capabilities=SessionCapabilities(
        list={}, resume={}, close={}, delete={}, fork={}, additional_directories={}
    ),
)


class SessionRef(msgspec.Struct, frozen=True, rename="camel"):
    """Parameters that only identify a session."""

    session_id: str


class AcpAgentHandler:
    """Handles the requests and notifications of one editor, which may open several sessions."""

    def __init__(self, manager: SessionManager, workspaces: WorkspaceProvider, version: str) -> None:
        self._manager = manager
        self._version = version
        self._workspaces = workspaces
        self.peer: JsonRpcPeer
        self._client_capabilities: ClientCapabilities | None = None
        self._sessions: dict[str, EditorSession] = {}
        self._methods: Mapping[str, Callable[[Params], Awaitable[Any]]] = {
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/fork": self._fork,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/set_mode": self._set_mode,
            STEERING_METHOD: self._steer,
            "session/set_config_option": self._set_config_option,
        }

    # -- the peer's handler ----------------------------------------------------------------------------------------

    def handle_request(self, method: str, params: Params) -> Awaitable[Any]:
        if method == "initialize":
            self._read_capabilities(params)
            return self._initialize()
        known = method in self._methods or method == "session/prompt"
        if not known:
            raise RpcError(METHOD_NOT_FOUND, f"unknown method {method[:200]!r}", {"method": method[:200]})
        if self._client_capabilities is None:
            raise RpcError(INVALID_REQUEST, "call initialize first")
        if method == "session/prompt":
            request = decode_params(PromptRequest, params)
            return _as_rpc_error(self._get_session(request.session_id).prompt(request.prompt))
        return _as_rpc_error(self._methods[method](params))

    def handle_notification(self, method: str, params: Params) -> None:
        session = self._sessions.get(str(params.get("sessionId")))
        if method == "session/cancel" and session:
            session.cancel()

    async def aclose(self) -> None:
        """Close all sessions."""
        sessions, self._sessions = [*self._sessions.values()], {}
        await asyncio.gather(*(session.aclose() for session in sessions), return_exceptions=True)

    # -- initialization --------------------------------------------------------------------------------------------

    def _read_capabilities(self, params: Params) -> None:
        """Read the capabilities synchronously: an editor may send requests before it gets the response."""
        if not _is_version(params.get("protocolVersion")):
            raise RpcError(INVALID_PARAMS, "protocolVersion must be a number")
        self._client_capabilities = decode_lenient(InitializeRequest, params).client_capabilities

    async def _initialize(self) -> dict[str, Any]:
        """Return the capabilities. Ostler supports one protocol version, also if the editor requests another."""
        implementation = Implementation("ostler", self._version, "Ostler")
        response = InitializeResponse(PROTOCOL_VERSION, CAPABILITIES, (), implementation)
        # Older editors require the list even if it is empty.
        return {**msgspec.to_builtins(response), "authMethods": [], "_meta": {"steering": {"supported": True}}}

    async def _authenticate(self, params: Params) -> Any:
        raise RpcError(INVALID_PARAMS, "Ostler has no login; set API keys in its settings")

    # -- sessions --------------------------------------------------------------------------------------------------

    async def _new(self, params: Params) -> OpenSessionResponse:
        request = decode_params(OpenSessionParams, params)
        _check_mcp_servers(request.mcp_servers)
        opening = OpenSessionRequest(
            _require_folder(request.cwd),
            directories=_additional_directories(request),
            mcp_servers=tuple(server.to_request() for server in request.mcp_servers),
        )
        return await self._open_session(opening, request, replay=False)

    async def _load(self, params: Params) -> OpenSessionResponse:
        return _without_session_id(await self._reopen(params, replay=True))

    async def _resume(self, params: Params) -> OpenSessionResponse:
        return _without_session_id(await self._reopen({"mcpServers": [], **params}, replay=False))

    async def _fork(self, params: Params) -> OpenSessionResponse:
        return await self._reopen({"mcpServers": [], **params}, replay=False, fork=True)

    async def _reopen(self, params: Params, *, replay: bool, fork: bool = False) -> OpenSessionResponse:
        """Open a stored session. If this editor already has it open, it is closed first."""
        request, session_id = decode_params(OpenSessionParams, params), decode_params(SessionRef, params).session_id
        _check_mcp_servers(request.mcp_servers)
        cwd, directories = _require_folder(request.cwd), _additional_directories(request)
        await self._require_session(cwd, session_id)
        if not fork and (session := self._sessions.pop(session_id, None)):
            await session.aclose()
        servers = tuple(server.to_request() for server in request.mcp_servers)
        opening = OpenSessionRequest(cwd, resume=session_id, fork=fork, directories=directories, mcp_servers=servers)
        return await self._open_session(opening, request, replay=replay)

    async def _require_session(self, cwd: str, session_id: str) -> None:
        """Raise `RpcError` unless the folder has a session with exactly this id."""
        try:
            found = await self._workspaces.services(cwd).has_session(session_id)
        except UsageError as error:
            raise RpcError(NOT_FOUND, "Resource not found", {"details": str(error)}) from None
        if not found:
            details = f"{cwd[:200]} has no session {session_id[:80]!r}"
            raise RpcError(NOT_FOUND, "Resource not found", {"details": details})

    async def _open_session(
        self, opening: OpenSessionRequest, params: OpenSessionParams, *, replay: bool
    ) -> OpenSessionResponse:
        assert self._client_capabilities is not None
        editor = EditorClient(self.peer, self._client_capabilities)
        workspace = self._workspaces.workspace(opening.cwd, editor)
        try:
            session = await self._manager.open(opening, workspace=workspace)
        except OstlerError as error:  # about settings and files, because the parameters are valid
            raise RpcError(INTERNAL_ERROR, str(error), {"code": error.fault.code}) from None
        editor.session_id = session.id
        services = self._workspaces.services(opening.cwd)
        editor_session = EditorSession(session, opening.cwd, services, editor, opening.directories)
        self._sessions[session.id] = editor_session
        if notice := unused_mcp_servers_notice(params, session.info):
            self._workspaces.log(notice)
            editor_session.add_notice(notice)
        return await editor_session.start(replay=replay)

    async def _list(self, params: Params) -> ListSessionsResponse:
        request = decode_params(ListSessionsRequest, params)
        start = _decode_cursor(request.cursor)
        end = start + PAGE_SIZE
        cwd = _require_folder(request.cwd) if request.cwd else ""
        found = await self._manager.list(SessionQuery(cwd, limit=end + 1))
        page = [
            AcpSessionInfo(session.id, session.cwd, session.title or None, session.changed or None)
            for session in found[start:end]
        ]
        return ListSessionsResponse(tuple(page), _encode_cursor(end) if len(found) > end else None)

    async def _close(self, params: Params) -> dict[str, Any]:
        session = self._get_session(decode_params(SessionRef, params).session_id)
        del self._sessions[session.id]
        await session.aclose()
        return {}

    async def _delete(self, params: Params) -> dict[str, Any]:
        """Delete a session; a missing one is not an error."""
        session_id = decode_params(SessionRef, params).session_id
        if session := self._sessions.pop(session_id, None):
            await session.aclose()
        try:
            await self._manager.delete(session_id)
        except UsageError as error:  # the editor may not know that the session is gone
            self._workspaces.log(str(error))
        return {}

    async def _set_mode(self, params: Params) -> dict[str, Any]:
        request = decode_params(SetSessionModeRequest, params)
        session = self._get_session(request.session_id)
        await session.choose_mode(request.mode_id)
        return {}

    async def _set_config_option(self, params: Params) -> dict[str, Any]:
        request = decode_params(SetSessionConfigOptionRequest, params)
        if not isinstance(request.value, str):
            raise RpcError(INVALID_PARAMS, f"the value of {request.config_id[:80]!r} must be a string")
        session = self._get_session(request.session_id)
        return {"configOptions": await session.choose(request.config_id, request.value)}

    async def _steer(self, params: Params) -> dict[str, str]:
        request = decode_params(PromptRequest, params)
        options = (request.meta or {}).get("steering")
        require_turn = isinstance(options, dict) and options.get("idleBehavior") == "promptRequired"
        return await self._get_session(request.session_id).steer(request.prompt, require_turn=require_turn)

    def _get_session(self, session_id: str) -> EditorSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise RpcError(NOT_FOUND, "Resource not found", {"details": f"no session {session_id[:80]!r} is open"})
        return session


async def _as_rpc_error(awaitable: Awaitable[Any]) -> Any:
    try:
        return await awaitable
    except OstlerError as error:
        code = INVALID_PARAMS if isinstance(error, UsageError) else INTERNAL_ERROR
        raise RpcError(code, str(error), {"code": error.fault.code}) from None


def _is_version(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _require_folder(cwd: str, label: str = "cwd") -> str:
    if not os.path.isabs(cwd):
        raise RpcError(INVALID_PARAMS, f"{label} must be an absolute path, not {cwd[:200]!r}")
    if not os.path.isdir(cwd):
        raise RpcError(INVALID_PARAMS, f"the folder {cwd[:200]!r} does not exist")
    return cwd


def _additional_directories(params: OpenSessionParams) -> tuple[str, ...]:
    return tuple(
        os.path.realpath(_require_folder(folder, "a directory")) for folder in params.additional_directories or ()
    )


def _check_mcp_servers(servers: Sequence[AcpMcpServer]) -> None:
    """Raise `RpcError` for an incomplete server."""
    for number, server in enumerate(servers):
        kind, place = server.type or "stdio", f"mcpServers[{number}]"
        if kind not in ("stdio", "http", "sse"):
            raise RpcError(INVALID_PARAMS, f"Invalid params: {place}.type must be stdio, http or sse")
        if not server.name:
            raise RpcError(INVALID_PARAMS, f"Invalid params: {place}.name must not be empty")
        field = "command" if kind == "stdio" else "url"
        if not getattr(server, field):
            raise RpcError(INVALID_PARAMS, f"Invalid params: {place}.{field} is missing")


def unused_mcp_servers_notice(params: OpenSessionParams, info: SessionInfo) -> str:
    """Return a notice that an agent with its own tools gets no MCP servers from the editor, or an empty string."""
    if not params.mcp_servers or not info.runs_own_tools:
        return ""
    names = ", ".join(sanitise(server.name[:80]) for server in params.mcp_servers[:MAX_NAMED_SERVERS])
    more = (
        f" and {len(params.mcp_servers) - MAX_NAMED_SERVERS} more"
        if len(params.mcp_servers) > MAX_NAMED_SERVERS
        else ""
    )
    return f"MCP servers from the editor are not supported with {info.backend} yet: {names}{more}"


def _without_session_id(response: OpenSessionResponse) -> OpenSessionResponse:
    """Remove the session id, which the editor already knows."""
    return msgspec.structs.replace(response, session_id=None)


def _encode_cursor(offset: int) -> str:
    return base64.urlsafe_b64encode(str(offset).encode()).decode()


def _decode_cursor(cursor: str | None) -> int:
    try:
        offset = int(base64.urlsafe_b64decode(cursor or _encode_cursor(0)))
    except (ValueError, binascii.Error):
        offset = -1
    if not 0 <= offset < 1_000_000:
        raise RpcError(INVALID_PARAMS, "invalid cursor")
    return offset
