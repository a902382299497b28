"""An agent as this side speaks to it: who it is, its sessions, its turns; its errors in our words."""

from typing import Any, TypeVar

import msgspec

from ostler.backends.acp.process import AgentProcess
from ostler.vocabulary.errors import BackendError, UsageError
from ostler.wire.acp import AUTH_REQUIRED, PROTOCOL_VERSION, Content, McpServer, Word
from ostler.wire.acp_calls import (
    ClientCapabilities,
    Implementation,
    Initialize,
    Initialized,
    ListedSession,
    ListSessions,
    OpenSession,
    PromptAnswer,
    PromptRequest,
    SessionOpen,
    SessionsListed,
    SetConfigOption,
    SetMode,
)
from ostler.wire.acp_read import read
from ostler.wire.jsonrpc import INTERNAL_ERROR, METHOD_NOT_FOUND, RpcError, Sayable

W = TypeVar("W", bound=Word)
_MOST_PAGES = 100


class Patience(msgspec.Struct, frozen=True):
    """How many seconds an agent may take to begin; a turn may take for ever."""

    initialize: float = 60.0
    session: float = 60.0
    change: float = 30.0
    close: float = 1.0


class Place(msgspec.Struct, frozen=True):
    """Where a session of the agent's works, and with which MCP servers."""

    cwd: str
    mcp_servers: tuple[McpServer, ...] = ()
    directories: tuple[str, ...] = ()


class Agent:
    """The typed side of a conversation."""

    def __init__(self, process: AgentProcess, patience: Patience | None = None) -> None:
        self.process = process
        self.patience = patience or Patience()
        self.told = Initialized(PROTOCOL_VERSION)
        self.raw: Any = {}

    @property
    def name(self) -> str:
        return self.process.launch.name

    async def initialize(self, capabilities: ClientCapabilities, version: str) -> Initialized:
        """Agree on the protocol; `BackendError` when the agent speaks another version of it."""
        hello = Initialize(PROTOCOL_VERSION, capabilities, Implementation("ostler", version, "Ostler"))
        self.raw = await self._answer("initialize", hello, self.patience.initialize)
        self.told = read(Initialized, self.raw)
        if self.told.protocol_version != PROTOCOL_VERSION:
            spoken = self.told.protocol_version
            message = f"{self.name} speaks version {spoken} of the protocol and Ostler version {PROTOCOL_VERSION}"
            raise BackendError(message, code="protocol", hint="use another version of the agent")
        return self.told

    async def authenticate(self, method_id: str) -> None:
        """Log in by one of the agent's methods."""
        known = [method.id for method in self.told.auth_methods]
        if method_id not in known:
            ways = f"it has {', '.join(known)}" if known else "it has none"
            raise UsageError(f"{self.name} has no way to log in called {method_id!r}", hint=ways)
        await self._ask(Word, "authenticate", {"methodId": method_id}, self.patience.session)

    # -- sessions --------------------------------------------------------------------------------------------------

    async def new_session(self, place: Place) -> SessionOpen:
        return self._named(await self._open("session/new", place, None))

    @property
    def can_go_on(self) -> bool:
        """Whether it can go on with an earlier session."""
        return self.told.agent_capabilities.load_session or self.told.agent_capabilities.can("resume")

    async def go_on(self, session_id: str, place: Place) -> SessionOpen:
        """An earlier session: resumed where that is offered, else loaded, which replays it."""
        method = "session/resume" if self.told.agent_capabilities.can("resume") else "session/load"
        opened = await self._open(method, place, session_id)
        return msgspec.structs.replace(opened, session_id=session_id)

    async def fork(self, session_id: str, place: Place) -> SessionOpen:
        """A copy of an earlier session, with an id of its own."""
        return self._named(await self._open("session/fork", place, session_id))

    def _named(self, opened: SessionOpen) -> SessionOpen:
        if not opened.session_id:
            raise BackendError(f"{self.name} opened a session without an id", code="protocol")
        return opened

    async def _open(self, method: str, place: Place, session_id: str | None) -> SessionOpen:
        can_add = self.told.agent_capabilities.can("additional_directories")
        more = place.directories if place.directories and can_add else None
        asked = OpenSession(place.cwd, place.mcp_servers, session_id, more)
        return await self._ask(SessionOpen, method, asked, self.patience.session)

    async def list_sessions(self, cwd: str | None = None) -> list[ListedSession]:
        """All of them, page by page."""
        found: list[ListedSession] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._ask(SessionsListed, "session/list", ListSessions(cwd, cursor), self.patience.session)
            found += page.sessions
            cursor = page.next_cursor
            if not cursor:
                break
        return found

    async def delete_session(self, session_id: str) -> None:
        await self._ask(Word, "session/delete", {"sessionId": session_id}, self.patience.session)

    async def close_session(self, session_id: str) -> None:
        """Say good-bye where the agent wants to hear it; that it does not answer is no failure."""
        if self.told.agent_capabilities.can("close") and not self.process.peer.gone:
            try:
                await self._ask(Word, "session/close", {"sessionId": session_id}, self.patience.close)
            except BackendError:
                return

    # -- turns -----------------------------------------------------------------------------------------------------

    async def prompt(self, session_id: str, blocks: tuple[Content, ...]) -> PromptAnswer:
        return await self._ask(PromptAnswer, "session/prompt", PromptRequest(session_id, blocks), None)

    @property
    def can_steer(self) -> bool:
        """Whether it takes words during a turn: no part of the protocol yet, but what several agents agreed on."""
        told = (self.told.meta or {}).get("steering")
        return isinstance(told, dict) and told.get("supported") is True

    async def steer(self, session_id: str, blocks: tuple[Content, ...]) -> bool:
        """Words for the turn that runs; False where none did any more."""
        asked = PromptRequest(session_id, blocks, meta={"steering": {"idleBehavior": "promptRequired"}})
        told = await self._answer("_session/steering", asked, self.patience.change)
        return isinstance(told, dict) and told.get("outcome") == "injected"

    def cancel(self, session_id: str) -> None:
        self.process.peer.notify("session/cancel", {"sessionId": session_id})

    # -- options ---------------------------------------------------------------------------------------------------

    async def set_mode(self, session_id: str, mode_id: str) -> None:
        await self._ask(Word, "session/set_mode", SetMode(session_id, mode_id), self.patience.change)

    async def set_option(self, session_id: str, option_id: str, value: str | bool) -> SessionOpen:
        """The options as they are after that; agents that tell nothing give an empty answer."""
        kind = "boolean" if isinstance(value, bool) else None
        change = SetConfigOption(session_id, option_id, value, kind)
        return await self._ask(SessionOpen, "session/set_config_option", change, self.patience.change)

    async def set_model(self, session_id: str, model_id: str) -> None:
        """The way of agents from before there were config options."""
        change = {"sessionId": session_id, "modelId": model_id}
        await self._ask(Word, "session/set_model", change, self.patience.change)

    async def _ask(self, kind: type[W], method: str, params: Sayable, timeout: float | None) -> W:
        return read(kind, await self._answer(method, params, timeout))

    async def _answer(self, method: str, params: Sayable, timeout: float | None) -> Any:
        try:
            return await self.process.request(method, params, timeout)
        except RpcError as error:
            raise self._failure(method, error) from None

    def _failure(self, method: str, error: RpcError) -> BackendError:
        if error.code == AUTH_REQUIRED:
            return BackendError(
                f"{self.name} wants a login: {error.details}", code="login", hint=self._ways_to_log_in()
            )
        if error.code == METHOD_NOT_FOUND:
            return BackendError(f"{self.name} does not know {method}", code="protocol")
        said = f"{self.name} answered {method} with an error: {error.details}"
        bare = error.code == INTERNAL_ERROR and error.data is None  # then its log is all there is to go by
        return BackendError(f"{said}{self.process.last_words()}" if bare else said, code="agent_error")

    def _ways_to_log_in(self) -> str:
        ways = [_way(method) for method in self.told.auth_methods]
        return f"log in with its own program, or by --auth with {' or '.join(ways)}" if ways else "use its own program"


def _way(method: Any) -> str:
    return f"{method.id} ({method.name})" if method.name and method.name != method.id else str(method.id)
