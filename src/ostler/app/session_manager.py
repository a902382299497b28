"""The house on this machine: it opens sessions by joining settings, journal, ground, tools, policy and backend."""

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ostler import __version__
from ostler.app.active_agent import ActiveAgent
from ostler.app.engine import make_engine, tree_budget
from ostler.app.internal_agents import make_internal_agents
from ostler.app.known_secrets import secrets_in_use
from ostler.app.model_choice import ModelChoice, choose_model
from ostler.app.profile_option import ProfileOptionBackend
from ostler.app.project_knowledge import ProjectKnowledge
from ostler.app.project_paths import project_folder as project_folder  # many ask the house for both
from ostler.app.project_paths import workspace_path as workspace_path
from ostler.app.run_options import RunOptions
from ostler.app.session_policy import make_policy
from ostler.app.session_storage import find_acp_backend, make_summary, open_journal, session_index, session_store
from ostler.app.session_workspace import SessionShell, SessionWorkspace, clean_up_killed_sessions, make_workspace
from ostler.app.tool_host import make_hook_runner, make_tool_host
from ostler.app.trusted_settings import count_untrusted, load_settings
from ostler.backends.engine.internal_agents import InternalAgents
from ostler.backends.engine.plugins.budget import Budget
from ostler.backends.engine.plugins.validation import ChangedFiles, no_changed_files
from ostler.core.errors import UsageError
from ostler.core.protocols import Backend, Journal, ToolRunner, Workspace
from ostler.core.sessions import OpenSessionRequest, SessionQuery, SessionSummary
from ostler.journal.journal_store import new_session_id
from ostler.journal.memory_journal import MemoryJournal
from ostler.knowledge.agent_definition import AgentDefinition
from ostler.session.masking import make_mask
from ostler.session.session import LocalSession
from ostler.settings.effective import Settings
from ostler.settings.grants import ProjectGrants
from ostler.settings.home import project_id

if TYPE_CHECKING:
    from ostler.app.acp_backend import AcpParts
    from ostler.app.undo import WorkspaceUndo
    from ostler.workspace.change_detector import ChangeDetector

MAX_PROBLEMS_SHOWN = 8


class LocalSessionManager:
    """What a face is given; made once per process."""

    def __init__(
        self,
        options: RunOptions,
        notify: Callable[[str], None],
        model: ModelChoice | None = None,
        backend: Backend | None = None,
    ) -> None:
        """`say` is told in a line each what a person should know; `model` is for whoever has chosen one already, and
        `backend` for whoever brings along what thinks in the one session that is opened."""
        self._options = options
        self._notify = notify
        self._model = model
        self._makes_titles = model is None
        self._custom_backend = backend

    async def open(
        self, request: OpenSessionRequest, *, tools: ToolRunner | None = None, workspace: Workspace | None = None
    ) -> LocalSession:
        cwd = workspace_path(request.cwd)
        settings = self._load_settings(cwd)
        await clean_up_killed_sessions(self._notify)
        request = self._with_backend(request, cwd, settings)
        own = workspace if isinstance(workspace, SessionWorkspace) else None
        if not (workspace or tools):
            own = make_workspace(cwd, settings, self._options, interactive=request.interactive)
        agents = self._load_agents(cwd, settings)
        if own:
            own.grant_folders(request.directories)
        policy = make_policy(settings, self._options, request.directories, interactive=request.interactive)
        choice = ActiveAgent(agents, policy, self._options, own.shell if own else None)
        journal = partial(self._open_journal, settings, cwd)
        budget = tree_budget(settings, self._options)
        below = None
        if own:
            from ostler.app.subagents import Subagents

            bench = partial(_child_tools, own, settings)
            below = Subagents(cwd, settings, self._options, agents, choice, journal, budget, bench)
        workspace = workspace or own or make_workspace(cwd, settings, self._options, interactive=request.interactive)
        joined = self._acp_parts(request, cwd, workspace, settings)
        if joined:
            tools = joined.tools
        tools = tools or make_tool_host(workspace, settings, choice.allows_tool, below.task_agents() if below else {})
        given, undo = joined.backend if joined else self._custom_backend, self._make_undo(cwd, request, own)
        news = undo.changed_files if undo else no_changed_files
        backend = await self._make_backend(given, request.backend, cwd, tools, settings, choice, budget, news)
        if below:
            below.model = self._model
        session = LocalSession(
            backend=backend,
            tools=tools,
            policy=choice.policy,
            standing_rules=None if self._options.ephemeral else project_grants(cwd),
            undo=undo,
            spawner=below.spawn if below and below.task_agents() else None,
            cwd=str(cwd),
            mask=make_mask(secrets_in_use(settings, os.environ, self._options.model.get("api_key", ""))),
            journal=journal(request.resume, fork=request.fork),  # last: whatever fails before it leaves nothing held
        )
        name = joined.name if joined else request.backend
        await session.open(version=__version__, backend=name, options=self._initial_options(request))
        return session

    def _with_backend(self, request: OpenSessionRequest, cwd: Path, settings: Settings) -> OpenSessionRequest:
        """Where no backend is named: the agent that the session was with before, else the engine."""
        if request.backend:
            return request
        resumes = request.resume and not self._options.ephemeral
        before = find_acp_backend(settings, cwd, request.resume) if resumes else ""
        if before:
            self._notify(f"backend: {before}, which this session is with")
        return msgspec.structs.replace(request, backend=before or "engine")

    def _initial_options(self, request: OpenSessionRequest) -> dict[str, str]:
        return {**({"agent": self._options.agent} if self._options.agent else {}), **request.options}

    def _load_settings(self, cwd: Path) -> Settings:
        settings = load_settings(cwd, trust=self._options.trust)
        for note in (*settings.notes, *map(str, settings.problems)):
            self._notify(note)
        if held := count_untrusted(cwd, settings):
            self._notify(f"{held} settings of this project wait for trust: ostler trust shows them")
        return settings

    def _load_agents(self, cwd: Path, settings: Settings) -> dict[str, AgentDefinition]:
        """Whoever can work here; what is wrong with the workspace's files is said meanwhile."""
        knowledge = ProjectKnowledge(str(cwd), settings)
        agents = knowledge.agents(trusted=settings.trusted)
        problems = knowledge.problems(trusted=settings.trusted)
        for problem in problems[:MAX_PROBLEMS_SHOWN]:
            self._notify(problem)
        if len(problems) > MAX_PROBLEMS_SHOWN:
            self._notify(f"and {len(problems) - MAX_PROBLEMS_SHOWN} more such things are wrong with files here")
        return agents

    def _acp_parts(
        self, request: OpenSessionRequest, cwd: Path, workspace: Workspace, settings: Settings
    ) -> "AcpParts | None":
        """Somebody's agent, with the door it needs; nothing where the backend is none."""
        if not request.backend.startswith("acp:"):
            return None
        from ostler.app.acp_parts import make_acp_parts

        return make_acp_parts(request, cwd, workspace, settings, self._options.model)

    async def _make_backend(
        self,
        custom: Backend | None,
        name: str,
        cwd: Path,
        tools: ToolRunner,
        settings: Settings,
        active_agent: ActiveAgent,
        budget: Budget,
        changed_files: ChangedFiles,
    ) -> Backend:
        backend = custom or ProfileOptionBackend(
            await self._make_engine(name, cwd, tools, settings, active_agent, budget, changed_files), active_agent
        )
        hooks = make_hook_runner(settings, str(cwd))
        if not hooks:
            return backend
        from ostler.app.hooks import HookedBackend

        return HookedBackend(backend, hooks)

    async def _make_engine(
        self,
        name: str,
        cwd: Path,
        tools: ToolRunner,
        settings: Settings,
        active_agent: ActiveAgent,
        budget: Budget,
        changed_files: ChangedFiles,
    ) -> Backend:
        if name != "engine":
            raise UsageError(f"there is no backend {name!r}", hint="there are: engine, acp:NAME")
        hidden = (
            make_internal_agents(settings, self._options, active_agent.internal_role)
            if self._makes_titles
            else InternalAgents(active_agent.internal_role)
        )
        if self._model is None:
            self._model = await choose_model(settings, self._options.model, os.environ)
            self._notify(f"model: {self._model.description}")
        roles = active_agent.select
        return make_engine(
            str(cwd), self._model, tools.specs, settings, self._options, roles, budget, hidden, changed_files
        )

    async def list(self, query: SessionQuery) -> Sequence[SessionSummary]:
        return await asyncio.to_thread(self._list_sessions, query)

    async def delete(self, session_id: str) -> None:
        await asyncio.to_thread(self._delete_session, session_id)

    def _delete_session(self, session_id: str) -> None:
        """For good: also what the index knows of it."""
        cwd = workspace_path(self._options.cwd)
        settings = load_settings(cwd)
        store, index = session_store(settings), session_index(settings)
        try:
            store.delete(store.find(session_id, project_id(cwd)))
            index.purge()
        finally:
            index.close()

    def _list_sessions(self, query: SessionQuery) -> Sequence[SessionSummary]:
        """In a thread: the index may have to be read up first."""
        cwd = workspace_path(query.cwd or self._options.cwd)
        index = session_index(load_settings(cwd))
        project = project_id(cwd) if query.cwd else ""
        try:
            if query.text:
                return [make_summary(hit.session) for hit in index.search(query.text, project, query.limit)]
            return [make_summary(listed) for listed in index.sessions(project, query.limit)]
        finally:
            index.close()

    def _make_undo(
        self, cwd: Path, request: OpenSessionRequest, own_workspace: SessionWorkspace | None
    ) -> "WorkspaceUndo | ChangeDetector | None":
        """Where something may be changed, what was there before is kept, or is at least known."""
        if not (request.interactive or self._options.write):
            return None
        if self._options.ephemeral:
            from ostler.workspace.change_detector import ChangeDetector

            return ChangeDetector(str(cwd))
        from ostler.app.undo import WorkspaceUndo, open_checkpoints
        from ostler.app.undo_gaps import ReportedGaps

        past, known = open_checkpoints(cwd, project_folder(cwd)), ReportedGaps(project_folder(cwd))
        if own_workspace is None:
            return WorkspaceUndo(past, known)
        undo = WorkspaceUndo(past, known, own_workspace.shell.is_busy)
        own_workspace.before_change = undo.save_before
        return undo

    def _open_journal(self, settings: Settings, cwd: Path, resume: str = "", *, fork: bool = False) -> Journal:
        if not self._options.ephemeral:
            return open_journal(settings, cwd, resume, fork, self._options.model.get("api_key", ""))
        if resume:
            raise UsageError(
                "--ephemeral keeps nothing, so it cannot go on with a session", hint="leave one of them out"
            )
        return MemoryJournal(new_session_id())


def _child_tools(
    workspace: SessionWorkspace, settings: Settings, active_agent: ActiveAgent
) -> tuple[ToolRunner, SessionShell]:
    """The built-in tools on what the parent sees."""
    own = workspace.for_child()
    return make_tool_host(own, settings, active_agent.allows_tool), own.shell


def project_grants(cwd: Path) -> ProjectGrants:
    """The standing rules a person gave for a workspace."""
    return ProjectGrants(project_folder(cwd))
