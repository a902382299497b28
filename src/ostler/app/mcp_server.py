"""Builds and runs Ostler as an MCP server for one folder."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial

from ostler import __version__
from ostler.app.manual_calls import open_manual_calls
from ostler.core.protocols import Session
from ostler.core.sessions import OpenSessionRequest
from ostler.frontends.acp_agent.stdio import StdioTransport
from ostler.frontends.mcp_server.frontend import serve
from ostler.frontends.mcp_server.handler import McpServerHandler
from ostler.settings.run_options import RunOptions
from ostler.text.stderr import notify


def run_mcp_server(options: RunOptions, tools: Sequence[str]) -> int:
    """Serve until the input ends, then exit the process at once, without waiting for threads."""
    transport = StdioTransport()
    status = asyncio.run(_run(transport, options, tools))
    sys.stderr.flush()
    os._exit(status)


async def _run(transport: StdioTransport, options: RunOptions, tools: Sequence[str]) -> int:
    async with AsyncExitStack() as closing:
        sessions = _CallSessions(options, closing)
        await sessions.open(False)  # reports problems of the settings before the first request
        handler = McpServerHandler(sessions.open, partial(_open_run, options), __version__, tools or ("*",))
        return await serve(transport, handler)


class _CallSessions:
    """The sessions for tool calls: one whose user can be asked, one for clients that cannot ask."""

    def __init__(self, options: RunOptions, closing: AsyncExitStack) -> None:
        self._options = options
        self._closing = closing
        self._opening = asyncio.Lock()
        self._sessions: dict[bool, Session] = {}

    async def open(self, interactive: bool) -> Session:
        async with self._opening:
            if interactive not in self._sessions:
                report = (lambda note: None) if self._sessions else notify  # the same problems once
                opened = open_manual_calls(self._options, notify=report, with_mcp=False, interactive=interactive)
                self._sessions[interactive] = (await self._closing.enter_async_context(opened)).session
            return self._sessions[interactive]


@asynccontextmanager
async def _open_run(options: RunOptions, session_id: str, interactive: bool) -> AsyncIterator[Session]:
    """Open a session for the tool `run`: a new one, or the one with the id."""
    from ostler.app.session_manager import LocalSessionManager

    request = OpenSessionRequest(options.cwd, resume=session_id, interactive=interactive)
    manager = LocalSessionManager(options if interactive else options.unattended(), notify)
    async with aclosing(await manager.open(request)) as session:
        yield session
