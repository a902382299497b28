"""Makes the backend of a session: the engine with a model, an ACP agent, Agent Zero, an Ostler server, or none."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ostler.access.active_agent import ActiveAgent
from ostler.access.run_permissions import own_tools_note
from ostler.app.backend_kinds import ACP_PREFIX, REMOTE, ZERO
from ostler.app.composition import with_hooks
from ostler.app.engine import make_engine, make_internal_agents
from ostler.app.project import Project
from ostler.backends.engine.internal_agents import InternalAgents
from ostler.backends.engine.plugins.budget import Budget
from ostler.backends.engine.plugins.validation import ChangedFiles, no_changed_files
from ostler.core.errors import UsageError
from ostler.core.protocols import Backend, Session, ToolRunner, Workspace
from ostler.core.sessions import OpenSessionRequest
from ostler.models.model_choice import ModelAnnouncer, ModelChoice
from ostler.session.session import Spawner
from ostler.settings.run_options import RunOptions

if TYPE_CHECKING:
    from ostler.core.store import Store
    from ostler.journal.call_journal import ConversationTexts
    from ostler.mcp.tool_source import McpToolSource
    from ostler.workspace.session_undo import SessionUndo


class SessionDraft(msgspec.Struct):
    """The parts of a session before its backend is made. `workspace` is None if its files are elsewhere."""

    project: Project
    request: OpenSessionRequest
    options: RunOptions
    access: ActiveAgent
    store: "Store"
    budget: Budget
    workspace: Workspace | None
    tools: ToolRunner
    mcp: "McpToolSource | None" = None
    undo: "SessionUndo | None" = None
    spawner: Spawner | None = None

    @property
    def changed_files(self) -> ChangedFiles:
        return self.undo.changed_files if self.undo else no_changed_files


class MadeBackend(msgspec.Struct, frozen=True):
    """A backend with its name and the tools that it uses.

    `texts`: the conversation is not stored on this machine. `on_open` gets the opened session.
    """

    name: str
    backend: Backend
    tools: ToolRunner
    texts: "ConversationTexts | None" = None
    on_open: Callable[[Session], None] | None = None


class BackendMaker(msgspec.Struct, frozen=True):
    """Makes backends. `custom` replaces them all; `choose_model` is called only for the engine."""

    choose_model: Callable[[Project], Awaitable[ModelChoice]]
    announcer: ModelAnnouncer
    notify: Callable[[str], None]
    custom: Backend | None
    makes_titles: bool

    async def make(self, draft: SessionDraft) -> MadeBackend:
        """Make the backend that the request names. Raises `UsageError` for an unknown name."""
        made = await self._make(draft)
        return msgspec.structs.replace(made, backend=with_hooks(draft.project, made.backend))

    async def _make(self, draft: SessionDraft) -> MadeBackend:
        name = draft.request.backend
        if self.custom:
            return MadeBackend(name, self.custom, draft.tools)
        if name.startswith(ACP_PREFIX) and draft.workspace:
            return self._make_acp(draft, draft.workspace)
        if name == ZERO and draft.workspace:
            from ostler.app.zero_backend import make_zero_backend

            return MadeBackend(ZERO, *make_zero_backend(draft, draft.workspace))
        if name.partition(":")[0] == REMOTE and draft.workspace:
            from ostler.app.remote_backend import make_remote_backend

            return await make_remote_backend(draft)
        if name == "none":
            from ostler.backends.none import NoBackend

            return MadeBackend(name, NoBackend(), draft.tools)
        if name != "engine":
            raise UsageError(f"unknown backend {name!r}", hint="use engine, acp:NAME, remote:URL, agent_zero or none")
        return MadeBackend(name, await self._make_engine(draft), draft.tools)

    def _make_acp(self, draft: SessionDraft, workspace: Workspace) -> MadeBackend:
        from ostler.app.acp_backend import make_acp_parts

        parts = make_acp_parts(draft.project, draft.request, workspace, draft.options.model)
        self.notify(own_tools_note(parts.agent, ephemeral=draft.options.ephemeral))
        return MadeBackend(parts.name, parts.backend, parts.tools)

    async def _make_engine(self, draft: SessionDraft) -> Backend:
        project, options, access = draft.project, draft.options, draft.access
        agents = InternalAgents(access.internal_role)
        if self.makes_titles:
            agents = make_internal_agents(project.settings, options, access.internal_role)
        model = await self.choose_model(project)
        engine = make_engine(project, model, draft.tools, options, access, draft.budget, agents, draft.changed_files)
        engine.announce_model = partial(self.announcer.announce, model)
        return engine
