"""Starts child sessions for tasks; several may run in parallel, and children cannot start others."""

import asyncio
from collections.abc import Mapping
from functools import partial

from ostler import __version__
from ostler.access.active_agent import ActiveAgent
from ostler.app.backends import SessionDraft
from ostler.app.composition import compose
from ostler.app.engine import make_engine
from ostler.app.tool_host import make_tool_host
from ostler.core.display import Display
from ostler.core.errors import UsageError
from ostler.core.protocols import HasChildTools, ToolRunner
from ostler.core.tools import ChildTask, ToolResult
from ostler.models.model_choice import ModelAnnouncer, ModelChoice
from ostler.policy.profiles import PROFILES
from ostler.policy.verdict import Policy
from ostler.session.child_session import ChildSession, run_child
from ostler.session.session import LocalSession
from ostler.workspace.session_workspace import SessionWorkspace


class Subagents:
    """The children of one session. Each has its own context, journal and processes."""

    def __init__(self, draft: SessionDraft, announcer: ModelAnnouncer, models: Mapping[str, ModelChoice]) -> None:
        """`draft` has the parts of the parent. `models` has the project's model once it was chosen."""
        self._parent = draft
        self._announcer = announcer
        self._models = models
        self._slots = asyncio.Semaphore(draft.project.settings.config.limits.subagents)

    async def spawn(self, parent: LocalSession, task: ChildTask) -> ToolResult:
        """Run a task and return its answer. If it is interrupted, the result has the output so far."""
        async with self._slots:
            try:
                child = await self._open_child(parent, task)
            except UsageError as error:
                return ToolResult(task.id, "failed", f"Error: {error}", Display(str(error)), fault=error.fault)
            return await run_child(parent, child, task)

    async def _open_child(self, parent: LocalSession, task: ChildTask) -> ChildSession:
        own, project = self._parent, self._parent.project
        model, available = self._models.get(project.root), project.task_agents()
        if model is None or task.agent not in available:
            raise UsageError(
                f"agent {task.agent[:80]!r} cannot be used as a subagent", hint=f"available: {', '.join(available)}"
            )
        policy = own.access.policy()
        access, tools = self._make_tools(policy)
        engine = make_engine(project, model, tools, own.options, access, own.budget, is_child=True)
        engine.announce_model = partial(self._announcer.announce_child, model, task.agent)
        deny_asks = bool(PROFILES[policy.profile].allows) and project.agents[task.agent].read_only
        child = compose(
            project,
            backend=engine,
            tools=tools,
            access=access,
            mask=parent.mask,
            journal=lambda: own.store.open(project.id),
            make_session=partial(ChildSession, parent, task, deny_asks=deny_asks),
        )
        assert isinstance(child, ChildSession)
        inherited = "" if access.role(task.agent).model else parent.state.options.get("model", "")
        child_options = {"agent": task.agent, **({"model": inherited} if inherited else {})}
        await child.open(version=__version__, backend="engine", options=child_options, parent_id=parent.id)
        return child

    def _make_tools(self, policy: Policy) -> tuple[ActiveAgent, ToolRunner]:
        """Return what a child may do, and its tools: in a workspace of its own, or those of the parent's client."""
        own, project = self._parent, self._parent.project
        if isinstance(own.workspace, SessionWorkspace):
            workspace = own.workspace.for_child()
            access = ActiveAgent(project.agents, policy, own.options, workspace.shell, parent=own.access)
            return access, make_tool_host(project, workspace, access.allows_tool, mcp=own.mcp, owns_mcp=False)
        assert isinstance(own.tools, HasChildTools)
        access = ActiveAgent(project.agents, policy, own.options, parent=own.access)
        return access, own.tools.for_child(access.allows_tool)
