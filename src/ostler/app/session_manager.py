"""Opens, lists and deletes sessions, in any number of folders."""

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from ostler import __version__
from ostler.access.active_agent import ActiveAgent
from ostler.access.session_policy import make_policy
from ostler.app.backend_kinds import backend_kind
from ostler.app.backends import BackendMaker, MadeBackend, SessionDraft
from ostler.app.composition import compose
from ostler.app.engine import tree_budget
from ostler.app.project import NOTHING_ELSEWHERE, FolderElsewhere, Project
from ostler.app.tool_host import make_mcp_source, make_tool_host
from ostler.app.workspace import make_workspace
from ostler.core.errors import UsageError
from ostler.core.protocols import Backend, HasChildTools, Journal, ToolRunner, Workspace
from ostler.core.sessions import OpenSessionRequest, SessionQuery, SessionSummary
from ostler.models.model_choice import ModelAnnouncer, ModelChoice, choose_model
from ostler.session.session import LocalSession, Spawner
from ostler.settings.env_layers import unknown_zero_variables
from ostler.settings.home import find_home
from ostler.settings.run_options import RunOptions
from ostler.storage.session_stores import EphemeralStore, FileStore
from ostler.workspace.session_workspace import SessionWorkspace, clean_up_killed_sessions

if TYPE_CHECKING:
    from ostler.app.subagents import Subagents
    from ostler.core.store import Store


def _journal(journal: Journal, made: MadeBackend) -> Journal:
    """Return the journal, without the conversation if the backend stores that elsewhere."""
    if made.texts is None:
        return journal
    from ostler.journal.call_journal import CallJournal

    return CallJournal(journal, made.texts)


def _on_server(backend: str, session_id: str) -> str:
    """Return the name of a server's backend with one of the server's sessions."""
    from ostler.backends.remote.server import SESSIONS

    return f"{backend if ':' in backend else f'{backend}:'}{SESSIONS}/{session_id}"


def _drop_journal(opening: "asyncio.Future[Journal]") -> None:
    """Close a journal that was opened for a session that nobody waits for any more."""
    if not opening.cancelled() and not opening.exception():
        opening.result().drop()


class LocalSessionManager:
    """Opens sessions with the settings of their folder, or with the tools of a client elsewhere."""

    def __init__(
        self,
        options: RunOptions,
        notify: Callable[[str], None],
        model: ModelChoice | None = None,
        backend: Backend | None = None,
        store: "Store | None" = None,
        elsewhere: FolderElsewhere = NOTHING_ELSEWHERE,
    ) -> None:
        """`notify` receives messages for the user. `model`, `backend` and `store` replace those of the settings; a
        given `backend` can serve only one session. `elsewhere` is what the folder defines if a client has the tools."""
        self._options = options
        self._notify = notify
        self._model = model
        self._models: dict[str, ModelChoice] = {}  # by project, because each may configure another one
        self._store = store
        self._elsewhere = elsewhere
        self.project: Project  # of the session that was opened last
        self._announcer = ModelAnnouncer(notify if model is None else lambda line: None)
        self._backends = BackendMaker(self._choose_model, self._announcer, notify, backend, model is None)

    async def open(
        self, request: OpenSessionRequest, *, tools: ToolRunner | None = None, workspace: Workspace | None = None
    ) -> LocalSession:
        """Open a session. With `tools` its files are elsewhere, and no folder on this machine is read."""
        project = Project.elsewhere(request.cwd, self._elsewhere) if tools else await self._load_project(request.cwd)
        store = self._store_for(project)
        session_id = self._find(project, store, request)
        request = self._with_backend(request, store, session_id)
        if backend_kind(request.backend).uses_zero_settings and project.folder:
            project = project.for_agent_zero()
            unknown = [f"${name} is not supported" for name in unknown_zero_variables(os.environ)]
            for note in (*project.settings.zero_notes, *unknown):
                self._notify(note)
        self.project = project
        if tools is None and workspace is None:
            workspace = make_workspace(project, self._options, interactive=request.interactive)
        draft = self._draft(project, request, store, workspace, tools)
        made = await self._backends.make(draft)
        rules = project.grants() if workspace and not self._options.ephemeral else None
        mask = project.mask(self._options.model.get("api_key", ""))
        journal = await self._open_journal(
            lambda: store.open(project.id, store.fork(session_id) if request.fork else session_id)
        )
        session = compose(
            project,
            backend=made.backend,
            tools=made.tools,
            access=draft.access,
            standing_rules=rules,
            undo=draft.undo,
            spawner=draft.spawner,
            mask=mask,
            journal=lambda: _journal(journal, made),
        )
        options = self._initial_options(request, session)
        takeover = (request.takeover or backend_kind(made.name).is_elsewhere) and not request.fork
        await session.open(version=__version__, backend=made.name, options=options, takeover=takeover)
        if made.on_open:
            made.on_open(session)
        return session

    def _draft(
        self,
        project: Project,
        request: OpenSessionRequest,
        store: "Store",
        workspace: Workspace | None,
        tools: ToolRunner | None,
    ) -> SessionDraft:
        """Make what does not depend on the backend: access, subagents, tools and undo."""
        own = workspace if isinstance(workspace, SessionWorkspace) else None  # in which this session runs commands
        access = self._make_access(project, request, own)
        task_agents = project.task_agents() if own or isinstance(tools, HasChildTools) else {}
        mcp = None if tools else make_mcp_source(project, request.mcp_servers, interactive=request.interactive)
        if tools is None:
            assert workspace is not None
            for_server = backend_kind(request.backend).is_elsewhere
            tools = make_tool_host(project, workspace, access.allows_tool, task_agents, mcp, for_server=for_server)
        budget = tree_budget(project.settings, self._options)
        draft = SessionDraft(project, request, self._options, access, store, budget, workspace, tools, mcp)
        if task_agents:
            draft.spawner = self._make_spawner(draft)
        if workspace and self._may_change(project, request, access):
            from ostler.app.workspace import make_undo

            draft.undo = make_undo(project, self._options, own)
        return draft

    def _make_spawner(self, draft: SessionDraft) -> Spawner:
        """Return the function that runs tasks in child sessions; what it needs is imported at the first task."""

        @cache
        def subagents() -> "Subagents":
            from ostler.app.subagents import Subagents

            return Subagents(draft, self._announcer, self._models)

        return lambda parent, task: subagents().spawn(parent, task)

    async def _load_project(self, cwd: str) -> Project:
        project = Project.load(cwd, trust=self._options.trust)
        project.report_problems(self._notify)
        await clean_up_killed_sessions(self._notify)
        return project

    async def _open_journal(self, make: Callable[[], Journal]) -> Journal:
        """Open a journal, of a server's session in a thread: the other sessions do not wait for its disk."""
        if self._store is None:
            return make()
        opening = asyncio.ensure_future(asyncio.to_thread(make))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_drop_journal)
            raise

    def _store_for(self, project: Project) -> "Store":
        if self._store:
            return self._store
        if self._options.ephemeral:
            return EphemeralStore()
        return FileStore(project.settings, self._options.model.get("api_key", ""))

    def _find(self, project: Project, store: "Store", request: OpenSessionRequest) -> str:
        """Return the id of the session to resume, or an empty string: a new one, or one that only the server has."""
        if not request.resume:
            return ""
        try:
            return store.find(project.id, request.resume)
        except UsageError:
            is_remote = backend_kind(request.backend or self._options.backend).is_elsewhere
            if not is_remote or request.resume == "last" or request.fork:
                raise
            return ""

    def _with_backend(self, request: OpenSessionRequest, store: "Store", session_id: str) -> OpenSessionRequest:
        """Fill in the backend of the flags, of the resumed session, or the engine, if the request names none."""
        backend = request.backend or self._options.backend
        if not backend and session_id:
            previous = store.backend(session_id)
            if backend_kind(previous).has_own_history:
                self._notify(f"backend: {previous} (this session was started with it)")
                backend = previous
        if request.resume and not session_id:  # only the server has it
            return msgspec.structs.replace(request, backend=_on_server(backend, request.resume), resume="")
        return msgspec.structs.replace(request, backend=backend or "engine")

    def _make_access(
        self, project: Project, request: OpenSessionRequest, workspace: SessionWorkspace | None
    ) -> ActiveAgent:
        if workspace:
            workspace.grant_folders(request.directories)
        policy = make_policy(
            project.settings,
            self._options,
            request.directories,
            interactive=request.interactive,
            is_elsewhere=backend_kind(request.backend).is_elsewhere,
        )
        return ActiveAgent(project.agents, policy, self._options, workspace.shell if workspace else None)

    def _may_change(self, project: Project, request: OpenSessionRequest, access: ActiveAgent) -> bool:
        """Return whether the session may change files: with tools of the agent itself, the user, a flag or a rule."""
        if backend_kind(request.backend).runs_own_tools or request.interactive or request.resume:
            return True
        flags = self._options.write or self._options.allow or self._options.mode
        return bool(flags) or access.has_permissions() or self._has_standing_rules(project)

    def _has_standing_rules(self, project: Project) -> bool:
        """Return whether the user set rules for this project. Creates no folder."""
        home = None if self._options.ephemeral else find_home(os.environ)
        return bool(home and home.is_dir() and project.grants().rules())

    async def _choose_model(self, project: Project) -> ModelChoice:
        if project.root not in self._models:
            self._models[project.root] = self._model or await choose_model(
                project.settings, self._options.model, os.environ
            )
        return self._models[project.root]

    def _initial_options(self, request: OpenSessionRequest, session: LocalSession) -> dict[str, str]:
        """Return the options to set at the start: flags override what a resumed session recorded."""
        flags = self._options.model
        own = {"agent": self._options.agent, "mode": self._options.mode}
        options = {name: value for name, value in own.items() if value}
        if backend_kind(request.backend).takes_model:
            overridden = {"model": flags.get("model") or flags.get("base_url"), "thinking": flags.get("thinking")}
            options |= {name: "" for name, flag in overridden.items() if flag and session.state.options.get(name)}
        return {**options, **request.options}

    async def list(self, query: SessionQuery) -> Sequence[SessionSummary]:
        if self._store:
            return await asyncio.to_thread(self._store.list, query)
        project = Project.load(query.cwd or self._options.cwd)
        scope = msgspec.structs.replace(query, cwd=project.root if query.cwd else "")
        return await asyncio.to_thread(self._store_for(project).list, scope)

    async def delete(self, session_id: str) -> None:
        store = self._store or self._store_for(Project.load(self._options.cwd))
        await asyncio.to_thread(store.delete, session_id)
