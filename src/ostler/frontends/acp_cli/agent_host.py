"""What `app` provides for a run: the agent's process and a session with it, as protocols."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from ostler.core.sessions import SlashCommand
from ostler.session.session import LocalSession
from ostler.wire.acp import SessionModeState
from ostler.wire.acp_observer import AcpObserver
from ostler.wire.acp_requests import AcpSessionInfo, InitializeResponse, PromptResponse
from ostler.wire.jsonrpc import Mirror


class ConnectedAgent(Protocol):
    """An initialized agent. `raw_info` is its answer to `initialize` as sent."""

    info: InitializeResponse
    raw_info: Any

    @property
    def name(self) -> str: ...

    async def list_sessions(self, cwd: str) -> Sequence[AcpSessionInfo]: ...

    async def delete_session(self, session_id: str) -> None: ...


class AgentUpdates(Protocol):
    """The slash commands that the agent has sent so far."""

    commands: tuple[SlashCommand, ...]
    commands_received: asyncio.Event


class AgentModes(Protocol):
    """The agent's modes."""

    @property
    def modes(self) -> SessionModeState | None: ...


class AgentBackend(Protocol):
    """The backend of an open session; `response` answers its last prompt, None if that failed."""

    response: PromptResponse | None

    @property
    def agent(self) -> ConnectedAgent: ...

    @property
    def options(self) -> AgentModes: ...

    @property
    def updates(self) -> AgentUpdates: ...

    @property
    def agent_session_id(self) -> str: ...

    async def kill(self) -> None: ...


class AgentSession(Protocol):
    """A session that is opened with `open` and closed with `session.aclose`."""

    session: LocalSession

    @property
    def backend(self) -> AgentBackend: ...

    async def open(self) -> None: ...


class AgentHost(Protocol):
    """The agent of a run. `connect` initializes it without a session and stops it at the end."""

    cwd: str
    name: str
    command: str

    def connect(self, mirror: Mirror | None) -> AbstractAsyncContextManager[ConnectedAgent]: ...

    def make_session(self, observer: AcpObserver, mirror: Mirror | None) -> AgentSession: ...
