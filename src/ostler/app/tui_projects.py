"""The projects of the full-screen client: opening them, their sessions, backends and worktrees."""

import asyncio
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ostler.app.interactive import LazySessionManager, keeps_prompts
from ostler.core.sessions import SessionSummary
from ostler.frontends.tui.projects import Activity, OpenedProject, StoredState
from ostler.interaction.services import CommandServices
from ostler.knowledge.trusted_settings import load_settings
from ostler.settings.effective import Settings
from ostler.settings.known_secrets import contains_secret
from ostler.settings.project_paths import project_folder, workspace_path
from ostler.settings.run_options import RunOptions

if TYPE_CHECKING:
    from ostler.app.server_sessions import ServerSession

MAX_SESSIONS = 1000


class LocalProjects:
    """Implements `ProjectAccess` with the folders of this machine."""

    def __init__(self, options: RunOptions) -> None:
        """`options` are those of the command line, which the user gave for one project."""
        self._options = options
        self._root = workspace_path(options.cwd)
        self._opened: dict[tuple[Path, str], OpenedProject] = {}

    def open(self, cwd: str, backend: str = "", resume: str = "") -> OpenedProject:
        path = workspace_path(os.path.expanduser(cwd))
        trust = self._options.trust and path == self._root
        name = _stored_backend(load_settings(path, trust=trust), resume) if resume else backend
        options = self._options_for(path, name)
        key = (path, options.backend)
        if key not in self._opened:
            self._opened[key] = self._open(path, options)
        return self._opened[key]

    def _open(self, path: Path, options: RunOptions) -> OpenedProject:
        settings = load_settings(path, trust=options.trust)
        manager = LazySessionManager(options, lambda line: None)
        return OpenedProject(
            str(path),
            manager,
            partial(_make_services, path, options, manager),
            project_folder(path) / "prompt_history" if keeps_prompts(options) else None,
            partial(contains_secret, settings, self._options.model.get("api_key", "")),
        )

    def _options_for(self, path: Path, backend: str) -> RunOptions:
        """Return the options of a session: in another folder than the first, only those that extend no permissions."""
        options = msgspec.structs.replace(self._options, cwd=str(path))
        if path != self._root:
            from ostler.policy.profiles import MODES, PROFILES

            profiles = [name for name, profile in PROFILES.items() if profile.only_restricts]
            modes = [name for name, mode in MODES.items() if mode.only_restricts]
            options = msgspec.structs.replace(
                options,
                trust=False,
                write=False,
                yolo=False,
                allow=(),
                profile=options.profile if options.profile in profiles else "",
                mode=options.mode if options.mode in modes else "",
            )
        if (backend or "engine") == (options.backend or "engine"):
            return options
        return msgspec.structs.replace(options, backend=backend, model={})

    async def sessions(self) -> Sequence[StoredState]:
        return await asyncio.to_thread(self._list_sessions)

    def _list_sessions(self) -> list[StoredState]:
        from ostler.core.sessions import SessionQuery
        from ostler.knowledge.environment_info import git_branch
        from ostler.storage.session_states import open_session_states
        from ostler.storage.session_stores import FileStore

        settings = load_settings(self._root, trust=self._options.trust)
        found = FileStore(settings).list(SessionQuery("", "", MAX_SESSIONS))
        states = open_session_states(settings, [summary.id for summary in found])
        branches = {cwd: git_branch(Path(cwd)) for cwd in {summary.cwd for summary in found}}
        return [
            StoredState(s, states.get(s.id, "done"), s.id in states, branches.get(s.cwd, ""))
            for s in found
            if os.path.isdir(s.cwd)
        ]

    async def backends(self, cwd: str) -> Sequence[str]:
        from ostler.app.server_sessions import known_servers
        from ostler.knowledge.acp_agents import agent_names

        path = workspace_path(cwd)
        settings = load_settings(path, trust=self._options.trust and path == self._root)
        names = ["engine", *(f"acp:{name}" for name in await asyncio.to_thread(agent_names, path, settings))]
        if os.environ.get("AGENTZERO_API_URL") or settings.config.connection.api_url:
            names.append("agent_zero")
        return [*names, *(f"remote:{name}" for name in await asyncio.to_thread(known_servers, self._options.backend))]

    async def server_sessions(self) -> Sequence[StoredState]:
        from ostler.app.server_sessions import list_server_sessions

        return [self._server_state(found) for found in await list_server_sessions(self._options.backend)]

    def _server_state(self, found: "ServerSession") -> StoredState:
        session = found.session
        cwd = session.workspace_root if os.path.isdir(session.workspace_root) else str(self._root)
        summary = SessionSummary(session.session_id, cwd, session.title, "", session.updated_at, session.turns)
        activities: dict[str, Activity] = {"working": "working", "waiting": "waiting"}
        return StoredState(
            summary, activities.get(session.activity, "done"), backend=found.backend, server=found.server
        )

    async def make_worktree(self, cwd: str, name: str) -> str:
        from ostler.workspace.worktrees import add_worktree

        return str(await asyncio.to_thread(add_worktree, Path(cwd), name))


def _stored_backend(settings: Settings, session_id: str) -> str:
    from ostler.storage.session_stores import FileStore

    return FileStore(settings).backend(session_id)


def _make_services(path: Path, options: RunOptions, manager: LazySessionManager) -> CommandServices:
    from ostler.app.command_services import LocalCommandServices  # after the first frame

    return LocalCommandServices(path, options, manager)
