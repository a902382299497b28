"""Opens, lists and deletes sessions on this machine."""

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
from ostler.app.model_choice import ModelAnnouncer, ModelChoice, choose_model
from ostler.app.project_knowledge import ProjectKnowledge
from ostler.app.project_paths import project_folder as project_folder  # re-exported for callers
from ostler.app.project_paths import workspace_path as workspace_path
from ostler.app.run_options import RunOptions
from ostler.app.run_permissions import own_tools_note
from ostler.app.session_policy import make_policy
from ostler.app.session_storage import find_acp_backend, make_summary, open_journal, session_index, session_store
from ostler.app.session_workspace import SessionShell, SessionWorkspace, clean_up_killed_sessions, make_workspace
from ostler.app.tool_host import make_hook_runner, make_mcp_source, make_tool_host
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
from ostler.settings.known_secrets import secrets_in_use

if TYPE_CHECKING:
    from ostler.app.acp_backend import AcpParts
    from ostler.app.undo import WorkspaceUndo
    from ostler.mcp.tool_source import McpToolSource
    from ostler.workspace.change_detector import ChangeDetector

MAX_PROBLEMS_SHOWN = 8


class LocalSessionManager:
    """Builds sessions from settings, journal, workspace, tools, policy and backend."""

    def __init__(
        self,
        options: RunOptions,
        notify: Callable[[str], None],
        model: ModelChoice | None = None,
        backend: Backend | None = None,
    ) -> None:
        """`notify` receives messages for the user. `model` and `backend` replace those of the settings; a given
        `backend` can serve only one session."""
        self._options = options
        self._notify = notify
        self._model = model
        self._announcer = ModelAnnouncer(notify if model is None else lambda line: None)
        self._makes_titles = model is None
        self._custom_backend = backend

    async def open(
        self, request: OpenSessionRequest, *, tools: ToolRunner | None = None, workspace: Workspace | None = None
    ) -> LocalSession:
        cwd = workspace_path(request.cwd)
        settings = self._load_settings(cwd)
        await clean_up_killed_sessions(self._notify)
        request = self._with_backend(request, cwd, settings)
        own_workspace = workspace if isinstance(workspace, SessionWorkspace) else None
        if not (workspace or tools):
            own_workspace = make_workspace(cwd, settings, self._options, interactive=request.interactive)
        agents = self._load_agents(cwd, settings)
        if own_workspace:
            own_workspace.grant_folders(request.directories)
        policy = make_policy(settings, self._options, request.directories, interactive=request.interactive)
        active_agent = ActiveAgent(agents, policy, self._options, own_workspace.shell if own_workspace else None)
        journal = partial(self._open_journal, settings, cwd)
        budget = tree_budget(settings, self._options)
        subagents = None
        mcp = None if tools else make_mcp_source(cwd, settings, request.mcp_servers, interactive=request.interactive)
        if own_workspace:
            from ostler.app.subagents import Subagents

            child_tools = partial(_child_tools, own_workspace, settings, mcp)
            subagents = Subagents(
                cwd, settings, self._options, agents, active_agent, journal, budget, child_tools, self._announcer
            )
        workspace = (
            workspace or own_workspace or make_workspace(cwd, settings, self._options, interactive=request.interactive)
        )
        task_agents = subagents.task_agents() if subagents else {}
        acp = self._acp_parts(request, cwd, workspace, settings)
        if acp:
            tools = acp.tools
            self._notify(own_tools_note(acp.name, ephemeral=self._options.ephemeral))
        tools = tools or make_tool_host(workspace, settings, active_agent.allows_tool, task_agents, mcp)
        may_change = bool(acp) or request.interactive or self._options.write
        custom = acp.backend if acp else self._custom_backend
        undo = self._make_undo(cwd, own_workspace) if may_change else None
        changed_files = undo.changed_files if undo else no_changed_files
        backend = await self._make_backend(
            custom, request.backend, cwd, tools, settings, active_agent, budget, changed_files
        )
        if subagents:
            subagents.model = self._model
        session = LocalSession(
            backend=backend,
            tools=tools,
            policy=active_agent,
            standing_rules=None if self._options.ephemeral else project_grants(cwd),
            undo=undo,
            spawner=subagents.spawn if subagents and task_agents else None,
            cwd=str(cwd),
            mask=make_mask(secrets_in_use(settings, os.environ, self._options.model.get("api_key", ""))),
            journal=journal(request.resume, fork=request.fork),  # last, so that an earlier failure leaves no lock
        )
        name = acp.name if acp else request.backend
        await session.open(version=__version__, backend=name, options=self._initial_options(request, session))
        return session

    def _with_backend(self, request: OpenSessionRequest, cwd: Path, settings: Settings) -> OpenSessionRequest:
        """Fill in the backend of the resumed session, or the engine, if the request names none."""
        if request.backend:
            return request
        resumes = request.resume and not self._options.ephemeral
        previous = find_acp_backend(settings, cwd, request.resume) if resumes else ""
        if previous:
            self._notify(f"backend: {previous} (this session was started with it)")
        return msgspec.structs.replace(request, backend=previous or "engine")

    def _initial_options(self, request: OpenSessionRequest, session: LocalSession) -> dict[str, str]:
        """Return the options to set at the start: flags override what a resumed session recorded."""
        flags, options = self._options.model, {"agent": self._options.agent} if self._options.agent else {}
        if request.backend == "engine":
            overridden = {"model": flags.get("model") or flags.get("base_url"), "thinking": flags.get("thinking")}
            options |= {name: "" for name, flag in overridden.items() if flag and session.state.options.get(name)}
        return {**options, **request.options}

    def _load_settings(self, cwd: Path) -> Settings:
        settings = load_settings(cwd, trust=self._options.trust)
        for note in (*settings.notes, *map(str, settings.problems)):
            self._notify(note)
        if count := count_untrusted(cwd, settings):
            self._notify(f"{count} project settings are ignored until you trust them: review them with `ostler trust`")
        return settings

    def _load_agents(self, cwd: Path, settings: Settings) -> dict[str, AgentDefinition]:
        """Load the agents and report problems in the workspace's files."""
        knowledge = ProjectKnowledge(str(cwd), settings)
        agents = knowledge.agents(trusted=settings.trusted)
        problems = knowledge.problems(trusted=settings.trusted)
        for problem in problems[:MAX_PROBLEMS_SHOWN]:
            self._notify(problem)
        if len(problems) > MAX_PROBLEMS_SHOWN:
            self._notify(
                f"and {len(problems) - MAX_PROBLEMS_SHOWN} more problems in this workspace's configuration files"
            )
        return agents

    def _acp_parts(
        self, request: OpenSessionRequest, cwd: Path, workspace: Workspace, settings: Settings
    ) -> "AcpParts | None":
        """Build the backend and the tool host of an ACP agent; None for other backends."""
        if not request.backend.startswith("acp:"):
            return None
        from ostler.app.acp_backend import make_acp_parts

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
        backend = custom or await self._make_engine(name, cwd, tools, settings, active_agent, budget, changed_files)
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
            raise UsageError(f"unknown backend {name!r}", hint="use engine or acp:NAME")
        internal_agents = (
            make_internal_agents(settings, self._options, active_agent.internal_role)
            if self._makes_titles
            else InternalAgents(active_agent.internal_role)
        )
        if self._model is None:
            self._model = await choose_model(settings, self._options.model, os.environ)
        return make_engine(
            str(cwd),
            self._model,
            tools.specs,
            settings,
            self._options,
            active_agent.role,
            budget,
            internal_agents,
            changed_files,
            partial(self._announcer.announce, self._model),
        )

    async def list(self, query: SessionQuery) -> Sequence[SessionSummary]:
        return await asyncio.to_thread(self._list_sessions, query)

    async def delete(self, session_id: str) -> None:
        await asyncio.to_thread(self._delete_session, session_id)

    def _delete_session(self, session_id: str) -> None:
        """Delete the session with exactly this id, of any workspace, from disk and from the index."""
        settings = load_settings(workspace_path(self._options.cwd))
        store, index = session_store(settings), session_index(settings)
        try:
            session = store.find_exact(session_id)
            if session is None:
                raise UsageError(f"session {session_id[:120]!r} not found")
            store.delete(session)
            index.purge()
        finally:
            index.close()

    def _list_sessions(self, query: SessionQuery) -> Sequence[SessionSummary]:
        cwd = workspace_path(query.cwd or self._options.cwd)
        index = session_index(load_settings(cwd))
        project = project_id(cwd) if query.cwd else ""
        try:
            if query.text:
                return [make_summary(hit.session) for hit in index.search(query.text, project, query.limit)]
            return [make_summary(session) for session in index.sessions(project, query.limit)]
        finally:
            index.close()

    def _make_undo(self, cwd: Path, own_workspace: SessionWorkspace | None) -> "WorkspaceUndo | ChangeDetector":
        """Return the checkpoints of a session that may change files; an ephemeral one only detects changes."""
        if self._options.ephemeral:
            from ostler.workspace.change_detector import ChangeDetector

            return ChangeDetector(str(cwd))
        from ostler.app.undo import WorkspaceUndo, open_checkpoints
        from ostler.app.undo_gaps import ReportedGaps

        checkpoints, gaps = open_checkpoints(cwd, project_folder(cwd)), ReportedGaps(project_folder(cwd))
        if own_workspace is None:
            return WorkspaceUndo(checkpoints, gaps)
        undo = WorkspaceUndo(checkpoints, gaps, own_workspace.shell.is_busy)
        own_workspace.before_change = undo.save_before
        return undo

    def _open_journal(self, settings: Settings, cwd: Path, resume: str = "", *, fork: bool = False) -> Journal:
        if not self._options.ephemeral:
            return open_journal(settings, cwd, resume, fork, self._options.model.get("api_key", ""))
        if resume:
            raise UsageError("an --ephemeral run cannot resume a session", hint="remove --ephemeral")
        return MemoryJournal(new_session_id())


def _child_tools(
    workspace: SessionWorkspace, settings: Settings, mcp: "McpToolSource | None", active_agent: ActiveAgent
) -> tuple[ToolRunner, SessionShell]:
    """Return the tool host and the shell of a child session, on the parent's files and with its MCP servers."""
    child_workspace = workspace.for_child()
    host = make_tool_host(child_workspace, settings, active_agent.allows_tool, mcp=mcp, owns_mcp=False)
    return host, child_workspace.shell


def project_grants(cwd: Path) -> ProjectGrants:
    """Return the store of the standing rules that the user set for a workspace."""
    return ProjectGrants(project_folder(cwd))
