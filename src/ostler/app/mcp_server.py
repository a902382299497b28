"""Builds and runs Ostler as an MCP server for one folder."""

import asyncio
import os
import sys
from collections.abc import Sequence

from ostler import __version__
from ostler.app.manual_calls import open_manual_calls
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
    async def run_prompt(prompt: str, session_id: str) -> tuple[str, str, bool]:
        from ostler.app.session_manager import LocalSessionManager
        from ostler.frontends.python.conversation import Conversation

        request = OpenSessionRequest(options.cwd, resume=session_id, interactive=False)
        session = await LocalSessionManager(options, notify).open(request)
        try:
            result = await Conversation(session, [], None).run(prompt)
        finally:
            await session.aclose()
        return result.answer or str(result.ended.fault or result.reason), session.id, result.reason == "done"

    async with open_manual_calls(options, notify=notify, with_mcp=False) as manual_calls:
        handler = McpServerHandler(manual_calls.session, run_prompt, __version__, tools or ("*",))
        return await serve(transport, handler)
