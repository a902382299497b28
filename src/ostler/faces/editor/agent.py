"""The agent's side of the protocol: each method an editor may call, and the sessions it has open."""

import asyncio
import base64
import binascii
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from ostler.faces.editor.live import LiveSession
from ostler.faces.editor.premises import Editor, Premises
from ostler.text.sanitise import sanitise
from ostler.vocabulary.errors import OstlerError, UsageError
from ostler.vocabulary.seams import House
from ostler.vocabulary.sessions import Opening, Query
from ostler.wire.acp import NOT_FOUND, PROTOCOL_VERSION
from ostler.wire.acp_calls import (
    AgentCapabilities,
    ClientCapabilities,
    Implementation,
    Initialize,
    Initialized,
    ListedSession,
    ListSessions,
    OpenSession,
    PromptCapabilities,
    PromptRequest,
    SessionCapabilities,
    SessionOpen,
    SessionsListed,
    SetConfigOption,
    SetMode,
)
from ostler.wire.acp_read import read
from ostler.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Params,
    Peer,
    RpcError,
)

PAGE = 100
MOST_NAMED = 10
STEERING = "_session/steering"
CAN = AgentCapabilities(
    load_session=True,
    prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
    session_capabilities=SessionCapabilities(
        list={}, resume={}, close={}, delete={}, fork={}, additional_directories={}
    ),
)
W = TypeVar("W", bound=msgspec.Struct)


class SessionRef(msgspec.Struct, frozen=True, rename="camel"):
    """Which session."""

    session_id: str


class EditorAgent:
    """The peer's handler. Several sessions may be open; each is found by its id."""

    def __init__(self, house: House, premises: Premises, version: str) -> None:
        self._house = house
        self._version = version
        self._premises = premises
        self.peer: Peer
        self._can: ClientCapabilities | None = None
        self._open: dict[str, LiveSession] = {}
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
            STEERING: self._steer,
            "session/set_config_option": self._set_config_option,
        }

    # -- the peer's handler ----------------------------------------------------------------------------------------

    def requested(self, method: str, params: Params) -> Awaitable[Any]:
        if method == "initialize":
            self._take(params)
            return self._initialize()
        known = method in self._methods or method == "session/prompt"
        if not known:
            raise RpcError(METHOD_NOT_FOUND, f"there is no method {method[:200]!r}", {"method": method[:200]})
        if self._can is None:
            raise RpcError(INVALID_REQUEST, "initialize comes first")
        if method == "session/prompt":
            asked = strict(PromptRequest, params)
            return _in_their_words(self._live(asked.session_id).prompt(asked.prompt))
        return _in_their_words(self._methods[method](params))

    def notified(self, method: str, params: Params) -> None:
        live = self._open.get(str(params.get("sessionId")))
        if method == "session/cancel" and live:
            live.cancel()

    async def aclose(self) -> None:
        """Close whatever is open."""
        live, self._open = [*self._open.values()], {}
        await asyncio.gather(*(session.aclose() for session in live), return_exceptions=True)

    # -- to begin with ---------------------------------------------------------------------------------------------

    def _take(self, params: Params) -> None:
        """At once: an editor need not wait for the answer with what it asks next."""
        if not _is_version(params.get("protocolVersion")):
            raise RpcError(INVALID_PARAMS, "protocolVersion must be a number")
        self._can = read(Initialize, params).client_capabilities

    async def _initialize(self) -> dict[str, Any]:
        """We speak one version, whatever the editor would like."""
        told = Initialized(PROTOCOL_VERSION, CAN, (), Implementation("ostler", self._version, "Ostler"))
        # Older editors want the list although it is empty.
        return {**msgspec.to_builtins(told), "authMethods": [], "_meta": {"steering": {"supported": True}}}

    async def _authenticate(self, params: Params) -> Any:
        raise RpcError(INVALID_PARAMS, "there is nothing to log in to; keys are in Ostler's settings")

    # -- sessions --------------------------------------------------------------------------------------------------

    async def _new(self, params: Params) -> SessionOpen:
        asked = strict(OpenSession, params)
        opening = Opening(_folder(asked.cwd), directories=_directories(asked))
        return await self._opened(opening, asked, replay=False)

    async def _load(self, params: Params) -> SessionOpen:
        return _unnamed(await self._go_on(params, replay=True))

    async def _resume(self, params: Params) -> SessionOpen:
        return _unnamed(await self._go_on({"mcpServers": [], **params}, replay=False))

    async def _fork(self, params: Params) -> SessionOpen:
        return await self._go_on({"mcpServers": [], **params}, replay=False, fork=True)

    async def _go_on(self, params: Params, *, replay: bool, fork: bool = False) -> SessionOpen:
        """With a session that was kept; one that this editor has open already is opened anew."""
        asked, session_id = strict(OpenSession, params), strict(SessionRef, params).session_id
        cwd, directories = _folder(asked.cwd), _directories(asked)
        await self._find(cwd, session_id)
        if not fork and (live := self._open.pop(session_id, None)):
            await live.aclose()
        opening = Opening(cwd, resume=session_id, fork=fork, directories=directories)
        return await self._opened(opening, asked, replay=replay)

    async def _find(self, cwd: str, session_id: str) -> None:
        """A session is meant by its whole id, and by nothing else."""
        try:
            found = await self._premises.services(cwd).find(session_id)
        except UsageError as error:
            raise RpcError(NOT_FOUND, "Resource not found", {"details": str(error)}) from None
        if found != session_id:
            raise RpcError(NOT_FOUND, "Resource not found", {"details": f"there is no session {session_id[:80]!r}"})

    async def _opened(self, opening: Opening, asked: OpenSession, *, replay: bool) -> SessionOpen:
        assert self._can is not None
        editor = Editor(self.peer, self._can)
        ground = self._premises.ground(opening.cwd, editor)
        session = await self._house.open(opening, ground=ground)
        editor.session_id = session.id
        live = LiveSession(session, opening.cwd, self._premises.services(opening.cwd), editor, opening.directories)
        self._open[session.id] = live
        if told := unused(asked, session.info.backend):
            self._premises.say(told)
            live.mention(told)
        return await live.begin(replay=replay)

    async def _list(self, params: Params) -> SessionsListed:
        asked = strict(ListSessions, params)
        at = _place(asked.cursor)
        cwd = _folder(asked.cwd) if asked.cwd else ""
        found = await self._house.list(Query(cwd, limit=at + PAGE + 1))
        page = [ListedSession(one.id, one.cwd, one.title or None, one.changed or None) for one in found[at : at + PAGE]]
        return SessionsListed(tuple(page), _cursor(at + PAGE) if len(found) > at + PAGE else None)

    async def _close(self, params: Params) -> dict[str, Any]:
        live = self._live(strict(SessionRef, params).session_id)
        del self._open[live.id]
        await live.aclose()
        return {}

    async def _delete(self, params: Params) -> dict[str, Any]:
        """One that is not there is as good as deleted."""
        session_id = strict(SessionRef, params).session_id
        if live := self._open.pop(session_id, None):
            await live.aclose()
        await self._house.delete(session_id)
        return {}

    async def _set_mode(self, params: Params) -> dict[str, Any]:
        asked = strict(SetMode, params)
        live = self._live(asked.session_id)
        await live.choose(live.mode_option, asked.mode_id)
        return {}

    async def _set_config_option(self, params: Params) -> dict[str, Any]:
        asked = strict(SetConfigOption, params)
        if not isinstance(asked.value, str):
            raise RpcError(INVALID_PARAMS, f"the value of {asked.config_id[:80]!r} is a text")
        return {"configOptions": await self._live(asked.session_id).choose(asked.config_id, asked.value)}

    async def _steer(self, params: Params) -> dict[str, str]:
        asked = strict(PromptRequest, params)
        wish = (asked.meta or {}).get("steering")
        waits = isinstance(wish, dict) and wish.get("idleBehavior") == "promptRequired"
        return await self._live(asked.session_id).steer(asked.prompt, waits=waits)

    def _live(self, session_id: str) -> LiveSession:
        found = self._open.get(session_id)
        if found is None:
            raise RpcError(NOT_FOUND, "Resource not found", {"details": f"no session {session_id[:80]!r} is open"})
        return found


def strict(kind: type[W], params: Params) -> W:
    """Parameters as they must be; what is wrong is said, and where."""
    try:
        return msgspec.convert(params, kind)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {error}") from None


async def _in_their_words(work: Awaitable[Any]) -> Any:
    try:
        return await work
    except OstlerError as error:
        code = INVALID_PARAMS if isinstance(error, UsageError) else INTERNAL_ERROR
        raise RpcError(code, str(error), {"code": error.fault.code}) from None


def _is_version(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _folder(cwd: str, what: str = "cwd") -> str:
    if not os.path.isabs(cwd):
        raise RpcError(INVALID_PARAMS, f"{what} must be an absolute path, {cwd[:200]!r} is none")
    if not os.path.isdir(cwd):
        raise RpcError(INVALID_PARAMS, f"there is no folder {cwd[:200]!r}")
    return cwd


def _directories(asked: OpenSession) -> tuple[str, ...]:
    return tuple(os.path.realpath(_folder(folder, "a directory")) for folder in asked.additional_directories or ())


def unused(asked: OpenSession, backend: str) -> str:
    """What a person should know of MCP servers that the editor hands over: they are not used, whoever works."""
    if not asked.mcp_servers:
        return ""
    names = ", ".join(sanitise(server.name[:80]) for server in asked.mcp_servers[:MOST_NAMED])
    more = f" and {len(asked.mcp_servers) - MOST_NAMED} more" if len(asked.mcp_servers) > MOST_NAMED else ""
    return f"the editor's MCP servers are not used by {backend} here yet: {names}{more}"


def _unnamed(opened: SessionOpen) -> SessionOpen:
    """The editor knows the id already."""
    return msgspec.structs.replace(opened, session_id=None)


def _cursor(at: int) -> str:
    return base64.urlsafe_b64encode(str(at).encode()).decode()


def _place(cursor: str | None) -> int:
    try:
        at = int(base64.urlsafe_b64decode(cursor or _cursor(0)))
    except (ValueError, binascii.Error):
        at = -1
    if not 0 <= at < 1_000_000:
        raise RpcError(INVALID_PARAMS, "this cursor is none of ours")
    return at
