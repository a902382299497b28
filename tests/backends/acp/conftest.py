"""Sessions with the echo agent: a real process, the real tool host, any policy."""

import asyncio
import os
import sys

import pytest

from ostler.app.acp_backend import AcpParts, OfferedServices
from ostler.app.project import Project
from ostler.backends.acp.agent_client import AgentTimeouts
from ostler.backends.acp.backend import AcpSessionPlan
from ostler.journal.memory_journal import MemoryJournal
from ostler.session.session import LocalSession
from ostler.settings.load import load
from ostler.stdio_rpc.program import Launch
from ostler.testing.session_fixture import ALLOW_ALL
from ostler.workspace.session_workspace import SessionShell, SessionWorkspace


class Echo:
    """Opens sessions with the echo agent in a temporary folder, and closes them all."""

    def __init__(self, folder):
        self.folder = folder / "workspace"
        self.folder.mkdir()
        self.home = folder
        self._open = []

    def launch(self, *flags, env=None, command=None):
        environ = {**os.environ, "HOME": str(self.home), **(env or {})}
        if command:
            return Launch(command[0], tuple(command[1:]), environ, str(self.folder), "echo")
        return Launch(sys.executable, ("-m", "ostler.testing.echo_agent", *flags), environ, str(self.folder), "echo")

    async def open(
        self,
        *flags,
        policy=ALLOW_ALL,
        journal=None,
        services=None,
        observer=None,
        mirror=None,
        env=None,
        command=None,
        options=None,
        **plan,
    ):
        plan.setdefault("timeouts", AgentTimeouts(60, 60, 60))
        session_plan = AcpSessionPlan(self.launch(*flags, env=env, command=command), "0", **plan)
        shell = SessionShell(str(self.folder), writable=True, sandbox="off")
        workspace = SessionWorkspace(str(self.folder), shell, read_anywhere=False)
        project = Project.with_settings(self.folder, load(self.folder, {"HOME": str(self.home)}))
        parts = AcpParts(session_plan, workspace, project, services or OfferedServices(), observer, mirror)
        session = LocalSession(
            backend=parts.backend,
            tools=parts.tools,
            journal=journal or MemoryJournal("session-1"),
            policy=policy,
            cwd=str(self.folder),
        )
        session.acp = parts.backend
        self._open.append(session)
        await session.open(version="test", backend="acp:echo", options=options or {})
        return session

    async def close(self):
        await asyncio.gather(*(session.aclose() for session in self._open))


@pytest.fixture
async def echo(tmp_path):
    """`session = await echo.open("--models"); events, ended = await run_turn(session, "hi")`."""
    sessions = Echo(tmp_path)
    yield sessions
    await sessions.close()
