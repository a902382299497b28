"""The agent's side of the protocol: each method an editor may call, and the sessions it has open."""

import asyncio
import base64
import binascii
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from ostler.core.errors import OstlerError, UsageError
from ostler.core.protocols import SessionManager
from ostler.core.sessions import OpenSessionRequest, SessionQuery
from ostler.frontends.acp_agent.editor_client import EditorClient, WorkspaceProvider
from ostler.frontends.acp_agent.editor_session import EditorSession
from ostler.text.sanitise import sanitise
from ostler.wire.acp import NOT_FOUND, PROTOCOL_VERSION
from ostler.wire.acp_decode import decode_lenient
from ostler.wire.acp_requests import (
    AcpSessionInfo,
    AgentCapabilities,
    ClientCapabilities,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    ListSessionsRequest,
    ListSessionsResponse,
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
    load_session=True,
    prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
    session_capabilities=SessionCapabilities(
        list={}, resume={}, close={}, delete={}, fork={}, additional_directories={}
    ),
)
ParamsT = TypeVar("ParamsT", bound=msgspec.Struct)


class SessionRef(msgspec.Struct, frozen=True, rename="camel"):
    """Which session."""

    session_id: str


class AcpAgentHandler:
    """The peer's handler. Several sessions may be open; each is found by its id."""

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
            raise RpcError(METHOD_NOT_FOUND, f"there is no method {method[:200]!r}", {"method": method[:200]})
        if self._client_capabilities is None:
            raise RpcError(INVALID_REQUEST, "initialize comes first")
        if method == "session/prompt":
            asked = decode_params(PromptRequest, params)
            return _as_rpc_error(self._get_session(asked.session_id).prompt(asked.prompt))
        return _as_rpc_error(self._methods[method](params))

    def handle_notification(self, method: str, params: Params) -> None:
        live = self._sessions.get(str(params.get("sessionId")))
        if method == "session/cancel" and live:
            live.cancel()

    async def aclose(self) -> None:
        """Close whatever is open."""
        live, self._sessions = [*self._sessions.values()], {}
        await asyncio.gather(*(session.aclose() for session in live), return_exceptions=True)

    # -- to begin with ---------------------------------------------------------------------------------------------

    def _read_capabilities(self, params: Params) -> None:
        """At once: an editor need not wait for the answer with what it asks next."""
        if not _is_version(params.get("protocolVersion")):
            raise RpcError(INVALID_PARAMS, "protocolVersion must be a number")
        self._client_capabilities = decode_lenient(InitializeRequest, params).client_capabilities

    async def _initialize(self) -> dict[str, Any]:
        """We speak one version, whatever the editor would like."""
        told = InitializeResponse(PROTOCOL_VERSION, CAPABILITIES, (), Implementation("ostler", self._version, "Ostler"))
        # Older editors want the list although it is empty.
        return {**msgspec.to_builtins(told), "authMethods": [], "_meta": {"steering": {"supported": True}}}

    async def _authenticate(self, params: Params) -> Any:
        raise RpcError(INVALID_PARAMS, "there is nothing to log in to; keys are in Ostler's settings")

    # -- sessions --------------------------------------------------------------------------------------------------

    async def _new(self, params: Params) -> OpenSessionResponse:
        asked = decode_params(OpenSessionParams, params)
        opening = OpenSessionRequest(_require_folder(asked.cwd), directories=_additional_directories(asked))
        return await self._open_session(opening, asked, replay=False)

    async def _load(self, params: Params) -> OpenSessionResponse:
        return _without_session_id(await self._reopen(params, replay=True))

    async def _resume(self, params: Params) -> OpenSessionResponse:
        return _without_session_id(await self._reopen({"mcpServers": [], **params}, replay=False))

    async def _fork(self, params: Params) -> OpenSessionResponse:
        return await self._reopen({"mcpServers": [], **params}, replay=False, fork=True)

    async def _reopen(self, params: Params, *, replay: bool, fork: bool = False) -> OpenSessionResponse:
        """With a session that was kept; one that this editor has open already is opened anew."""
        asked, session_id = decode_params(OpenSessionParams, params), decode_params(SessionRef, params).session_id
        cwd, directories = _require_folder(asked.cwd), _additional_directories(asked)
        await self._require_session(cwd, session_id)
        if not fork and (live := self._sessions.pop(session_id, None)):
            await live.aclose()
        opening = OpenSessionRequest(cwd, resume=session_id, fork=fork, directories=directories)
        return await self._open_session(opening, asked, replay=replay)

    async def _require_session(self, cwd: str, session_id: str) -> None:
        """A session is meant by its whole id, and by nothing else."""
        try:
            found = await self._workspaces.services(cwd).find_session(session_id)
        except UsageError as error:
            raise RpcError(NOT_FOUND, "Resource not found", {"details": str(error)}) from None
        if found != session_id:
            raise RpcError(NOT_FOUND, "Resource not found", {"details": f"there is no session {session_id[:80]!r}"})

    async def _open_session(
        self, opening: OpenSessionRequest, params: OpenSessionParams, *, replay: bool
    ) -> OpenSessionResponse:
        assert self._client_capabilities is not None
        editor = EditorClient(self.peer, self._client_capabilities)
        workspace = self._workspaces.workspace(opening.cwd, editor)
        session = await self._manager.open(opening, workspace=workspace)
        editor.session_id = session.id
        live = EditorSession(session, opening.cwd, self._workspaces.services(opening.cwd), editor, opening.directories)
        self._sessions[session.id] = live
        if told := unused_mcp_servers_notice(params, session.info.backend):
            self._workspaces.log(told)
            live.add_notice(told)
        return await live.start(replay=replay)

    async def _list(self, params: Params) -> ListSessionsResponse:
        asked = decode_params(ListSessionsRequest, params)
        at = _decode_cursor(asked.cursor)
        cwd = _require_folder(asked.cwd) if asked.cwd else ""
        found = await self._manager.list(SessionQuery(cwd, limit=at + PAGE_SIZE + 1))
        page = [
            AcpSessionInfo(one.id, one.cwd, one.title or None, one.changed or None)
            for one in found[at : at + PAGE_SIZE]
        ]
        return ListSessionsResponse(
            tuple(page), _encode_cursor(at + PAGE_SIZE) if len(found) > at + PAGE_SIZE else None
        )

    async def _close(self, params: Params) -> dict[str, Any]:
        live = self._get_session(decode_params(SessionRef, params).session_id)
        del self._sessions[live.id]
        await live.aclose()
        return {}

    async def _delete(self, params: Params) -> dict[str, Any]:
        """One that is not there is as good as deleted."""
        session_id = decode_params(SessionRef, params).session_id
        if live := self._sessions.pop(session_id, None):
            await live.aclose()
        await self._manager.delete(session_id)
        return {}

    async def _set_mode(self, params: Params) -> dict[str, Any]:
        asked = decode_params(SetSessionModeRequest, params)
        live = self._get_session(asked.session_id)
        await live.choose(live.mode_option, asked.mode_id)
        return {}

    async def _set_config_option(self, params: Params) -> dict[str, Any]:
        asked = decode_params(SetSessionConfigOptionRequest, params)
        if not isinstance(asked.value, str):
            raise RpcError(INVALID_PARAMS, f"the value of {asked.config_id[:80]!r} is a text")
        return {"configOptions": await self._get_session(asked.session_id).choose(asked.config_id, asked.value)}

    async def _steer(self, params: Params) -> dict[str, str]:
        asked = decode_params(PromptRequest, params)
        wish = (asked.meta or {}).get("steering")
        waits = isinstance(wish, dict) and wish.get("idleBehavior") == "promptRequired"
        return await self._get_session(asked.session_id).steer(asked.prompt, require_turn=waits)

    def _get_session(self, session_id: str) -> EditorSession:
        found = self._sessions.get(session_id)
        if found is None:
            raise RpcError(NOT_FOUND, "Resource not found", {"details": f"no session {session_id[:80]!r} is open"})
        return found


def decode_params(params_type: type[ParamsT], params: Params) -> ParamsT:
    """Parameters as they must be; what is wrong is said, and where."""
    try:
        return msgspec.convert(params, params_type)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {error}") from None


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
        raise RpcError(INVALID_PARAMS, f"{label} must be an absolute path, {cwd[:200]!r} is none")
    if not os.path.isdir(cwd):
        raise RpcError(INVALID_PARAMS, f"there is no folder {cwd[:200]!r}")
    return cwd


def _additional_directories(params: OpenSessionParams) -> tuple[str, ...]:
    return tuple(
        os.path.realpath(_require_folder(folder, "a directory")) for folder in params.additional_directories or ()
    )


def unused_mcp_servers_notice(params: OpenSessionParams, backend: str) -> str:
    """What a person should know of MCP servers that the editor hands over: they are not used, whoever works."""
    if not params.mcp_servers:
        return ""
    names = ", ".join(sanitise(server.name[:80]) for server in params.mcp_servers[:MAX_NAMED_SERVERS])
    more = (
        f" and {len(params.mcp_servers) - MAX_NAMED_SERVERS} more"
        if len(params.mcp_servers) > MAX_NAMED_SERVERS
        else ""
    )
    return f"the editor's MCP servers are not used by {backend} here yet: {names}{more}"


def _without_session_id(response: OpenSessionResponse) -> OpenSessionResponse:
    """The editor knows the id already."""
    return msgspec.structs.replace(response, session_id=None)


def _encode_cursor(offset: int) -> str:
    return base64.urlsafe_b64encode(str(offset).encode()).decode()


def _decode_cursor(cursor: str | None) -> int:
    try:
        at = int(base64.urlsafe_b64decode(cursor or _encode_cursor(0)))
    except (ValueError, binascii.Error):
        at = -1
    if not 0 <= at < 1_000_000:
        raise RpcError(INVALID_PARAMS, "this cursor is none of ours")
    return at
