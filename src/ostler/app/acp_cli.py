"""Composes `ostler acp run`: the agent of the settings, and a session with it."""

import asyncio
import os
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec

from ostler import __version__
from ostler.access.session_policy import acp_policy
from ostler.app.acp_backend import AcpParts, OfferedServices
from ostler.app.composition import compose, with_hooks
from ostler.app.project import Project
from ostler.backends.acp.agent_client import AcpAgentClient, connect_agent
from ostler.backends.acp.backend import AcpBackend, AcpSessionPlan
from ostler.core.errors import UsageError
from ostler.frontends.acp_cli.flags import AcpFlags
from ostler.frontends.acp_cli.run import AcpCliRun
from ostler.journal.memory_journal import MemoryJournal
from ostler.knowledge.acp_agents import find_agent, read_mcp_servers
from ostler.knowledge.acp_trust import project_file
from ostler.knowledge.trusted_settings import count_untrusted, find_trust_store
from ostler.session.session import LocalSession
from ostler.stdio_rpc.program import Launch
from ostler.text.stderr import notify
from ostler.wire.acp_observer import AcpObserver
from ostler.wire.jsonrpc import Mirror
from ostler.workspace.session_workspace import SessionShell, SessionWorkspace


def run_acp(flags: AcpFlags) -> int:
    """Run the prompt or the listings and return the exit status."""
    return asyncio.run(make_run(flags).run())


def make_run(flags: AcpFlags) -> AcpCliRun:
    """Return the run of these flags."""
    return AcpCliRun(flags, ConfiguredAgent(flags))


class ConfiguredAgent:
    """The agent that the flags select, with what they allow it."""

    def __init__(self, flags: AcpFlags) -> None:
        self._flags = flags
        project = self._project = Project.load(flags.cwd, trust=flags.trust)
        if (
            not flags.settings
            and count_untrusted(project.path, project.settings)
            and (file := project_file(project.path)).is_file()
        ):
            text = f"{file} is ignored until you trust it: run `ostler trust`, or pass --trust-project to use it once"
            notify(text, flags.program)
        self._agent = find_agent(flags.agent, flags.settings, project.path, project.settings)
        self.cwd = project.root
        self.name = self._agent.name
        self.command = self._agent.entry.command

    def connect(self, mirror: Mirror | None) -> AbstractAsyncContextManager[AcpAgentClient]:
        """Start the agent without a session."""
        return connect_agent(self._launch(), __version__, mirror)

    def make_session(self, observer: AcpObserver, mirror: Mirror | None) -> "ConfiguredAgentSession":
        """Return a session with the agent, which is not open yet."""
        flags = self._flags
        if flags.text:
            self._record_changes()
        parts = AcpParts(
            self._plan(),
            self._workspace(),
            self._project,
            OfferedServices(flags.files, flags.terminal, network=True, answers=flags.answers),
            observer,
            mirror,
        )
        policy = acp_policy(
            self._project.settings,
            write=flags.write,
            yolo=flags.yolo,
            directories=self._directories(),
            policy_file=flags.policy,
        )
        session = compose(
            self._project,
            backend=with_hooks(self._project, parts.backend),
            tools=parts.tools,
            access=policy,
            journal=lambda: MemoryJournal("acp-run"),
        )
        return ConfiguredAgentSession(session, parts.backend, parts.name)

    def _record_changes(self) -> None:
        """Record that the agent may change files of these folders, because its own tools are not seen here."""
        if trust := find_trust_store():
            for folder in self._directories():
                trust.record_changes(Path(folder), has_hooks=False)

    def _launch(self) -> Launch:
        entry = self._agent.entry
        return Launch(entry.command, entry.args, self._agent.environment(os.environ), self.cwd, self._agent.name)

    def _plan(self) -> AcpSessionPlan:
        flags = self._flags
        more = tuple(server for file in flags.mcp for server in read_mcp_servers(file))
        return AcpSessionPlan(
            self._launch(),
            __version__,
            (*self._agent.mcp_servers, *more),
            self._directories(),
            flags.resume,
            flags.fork,
            flags.login,
            supports_elicitation=False,
            required_options=flags.options,
        )

    def _directories(self) -> tuple[str, ...]:
        return tuple(str(_resolve_folder(name)) for name in self._flags.directories)

    def _workspace(self) -> SessionWorkspace:
        flags, root = self._flags, self.cwd
        security = self._project.settings.config.security
        readable = ("/",) if flags.yolo else security.sandbox_readable
        shell = SessionShell(root, writable=flags.write or flags.yolo, sandbox=security.sandbox, readable=readable)
        workspace = SessionWorkspace(root, shell, read_anywhere=flags.yolo)
        workspace.grant_folders(self._directories())
        return workspace


class ConfiguredAgentSession(msgspec.Struct):
    """A session with the agent and its backend."""

    session: LocalSession
    backend: AcpBackend
    backend_name: str

    async def open(self) -> None:
        await self.session.open(version=__version__, backend=self.backend_name, options={})


def _resolve_folder(name: str) -> Path:
    path = Path(name).expanduser().resolve()
    if not path.is_dir():
        raise UsageError(f"--add-dir {name}: no such folder")
    return path
