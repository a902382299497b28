"""Starts child sessions for tasks; several may run in parallel, and children cannot start others."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from ostler import __version__
from ostler.access.active_agent import ActiveAgent
from ostler.app.composition import compose
from ostler.app.engine import make_engine
from ostler.app.project import Project
from ostler.app.tool_host import make_tool_host
from ostler.backends.engine.plugins.budget import Budget
from ostler.core.display import Display
from ostler.core.errors import UsageError
from ostler.core.protocols import HasChildTools, ToolRunner
from ostler.core.store import Store
from ostler.core.tools import ChildTask, ToolResult
from ostler.models.model_choice import ModelAnnouncer, ModelChoice
from ostler.policy.profiles import PROFILES
from ostler.policy.verdict import Policy
from ostler.session.child_session import ChildSession, run_child
from ostler.session.session import LocalSession
from ostler.settings.run_options import RunOptions
from ostler.workspace.session_workspace import SessionWorkspace

if TYPE_CHECKING:
    from ostler.mcp.tool_source import McpToolSource


class Subagents:
    """The children of one session. Each has its own context, journal and processes."""

    def __init__(
        self,
        project: Project,
        options: RunOptions,
        access: ActiveAgent,
        place: "SessionWorkspace | HasChildTools",
        store: Store,
        budget: Budget,
        announcer: ModelAnnouncer,
        models: Mapping[str, ModelChoice],
        mcp: "McpToolSource | None" = None,
    ) -> None:
        """`place` is the workspace, or the tools of a client elsewhere. `models` has the project's model once it was
        chosen."""
        self._project = project
        self._options = options
        self._access = access
        self._place = place
        self._store = store
        self._budget = budget
        self._announcer = announcer
        self._models = models
        self._mcp = mcp
        self._slots = asyncio.Semaphore(project.settings.config.limits.subagents)

    async def spawn(self, parent: LocalSession, task: ChildTask) -> ToolResult:
        """Run a task and return its answer. If it is interrupted, the result has the output so far."""
        async with self._slots:
            try:
                child = await self._open_child(parent, task)
            except UsageError as error:
                return ToolResult(task.id, "failed", f"Error: {error}", Display(str(error)), fault=error.fault)
            return await run_child(parent, child, task)

    async def _open_child(self, parent: LocalSession, task: ChildTask) -> ChildSession:
        project, model = self._project, self._models.get(self._project.root)
        available = project.task_agents()
        if model is None or task.agent not in available:
            raise UsageError(
                f"agent {task.agent[:80]!r} cannot be used as a subagent", hint=f"available: {', '.join(available)}"
            )
        policy = self._access.policy()
        access, tools = self._make_tools(policy)
        engine = make_engine(
            project, model, tools, self._options, access.role, self._budget, may_write=access.may_write, is_child=True
        )
        engine.announce_model = partial(self._announcer.announce_child, model, task.agent)
        deny_asks = bool(PROFILES[policy.profile].allows) and project.agents[task.agent].read_only
        child = compose(
            project,
            backend=engine,
            tools=tools,
            access=access,
            mask=parent.mask,
            journal=lambda: self._store.open(project.id),
            make_session=partial(ChildSession, parent, task, deny_asks=deny_asks),
        )
        assert isinstance(child, ChildSession)
        inherited = "" if access.role(task.agent).model else parent.state.options.get("model", "")
        child_options = {"agent": task.agent, **({"model": inherited} if inherited else {})}
        await child.open(version=__version__, backend="engine", options=child_options, parent_id=parent.id)
        return child

    def _make_tools(self, policy: Policy) -> tuple[ActiveAgent, ToolRunner]:
        """Return what a child may do, and its tools."""
        project, options, place = self._project, self._options, self._place
        if isinstance(place, SessionWorkspace):
            workspace = place.for_child()
            access = ActiveAgent(project.agents, policy, options, workspace.shell, parent=self._access)
            return access, make_tool_host(project, workspace, access.allows_tool, mcp=self._mcp, owns_mcp=False)
        access = ActiveAgent(project.agents, policy, options, parent=self._access)
        return access, place.for_child(access.allows_tool)
