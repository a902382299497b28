"""Starts child sessions for tasks; several may run in parallel, and children cannot start others."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from ostler import __version__
from ostler.app.active_agent import ActiveAgent
from ostler.app.child_session import ChildSession
from ostler.app.engine import make_engine
from ostler.app.model_choice import ModelAnnouncer, ModelChoice
from ostler.app.run_options import RunOptions
from ostler.app.session_workspace import SessionShell
from ostler.backends.engine.plugins.budget import Budget
from ostler.core.display import Display
from ostler.core.errors import UsageError
from ostler.core.events import ChildEnded, ChildStarted, TurnEnded
from ostler.core.prompt import Prompt, TextContent
from ostler.core.protocols import Journal, ToolRunner
from ostler.core.tools import ChildTask, ToolResult
from ostler.knowledge.agent_definition import AgentDefinition
from ostler.session.session import LocalSession
from ostler.settings.effective import Settings

# Returns the tool host of a child on its parent's workspace, and its shell if commands run in this process.
ChildTools = Callable[[ActiveAgent], tuple[ToolRunner, SessionShell | None]]


class Subagents:
    """The children of one session. Each has its own context, journal and processes."""

    def __init__(
        self,
        cwd: Path,
        settings: Settings,
        options: RunOptions,
        agents: Mapping[str, AgentDefinition],
        active_agent: ActiveAgent,
        journal: Callable[[], Journal],
        budget: Budget,
        child_tools: ChildTools,
        announcer: ModelAnnouncer,
    ) -> None:
        self._cwd = cwd
        self._settings = settings
        self._options = options
        self._agents = agents
        self._active_agent = active_agent
        self._journal = journal
        self._budget = budget
        self._child_tools = child_tools
        self._announcer = announcer
        self._slots = asyncio.Semaphore(settings.config.limits.subagents)
        self.model: ModelChoice | None = None

    def task_agents(self) -> dict[str, str]:
        """Return the agents that accept tasks with their descriptions; empty if subagents are disabled."""
        if not self._settings.config.limits.subagents:
            return {}
        return {agent.name: agent.description for agent in self._agents.values() if agent.accepts_tasks}

    async def spawn(self, parent: LocalSession, task: ChildTask) -> ToolResult:
        """Run a task and return its answer. If it is interrupted, the result has the output so far."""
        async with self._slots:
            try:
                child = await self._open_child(parent, task)
            except UsageError as error:
                return ToolResult(task.id, "failed", f"Error: {error}", Display(str(error)), fault=error.fault)
            return await _run_child(parent, child, task)

    async def _open_child(self, parent: LocalSession, task: ChildTask) -> ChildSession:
        if self.model is None or task.agent not in self.task_agents():
            raise UsageError(
                f"agent {task.agent[:80]!r} cannot be used as a subagent",
                hint=f"available: {', '.join(self.task_agents())}",
            )
        policy, options = self._active_agent.policy(), self._options
        active_agent = ActiveAgent(self._agents, policy, options, parent=self._active_agent)
        tools, active_agent.shell = self._child_tools(active_agent)
        select = partial(active_agent.select, child=True)
        backend = make_engine(
            str(self._cwd),
            self.model,
            tools.specs,
            self._settings,
            options,
            select,
            self._budget,
            may_write=active_agent.may_write,
        )
        backend.announce_model = partial(self._announcer.announce_child, self.model, task.agent)
        child = ChildSession(
            parent,
            task,
            active_agent.policy,
            deny_asks=policy.profile == "god_mode" and self._agents[task.agent].read_only,
            backend=backend,
            tools=tools,
            cwd=str(self._cwd),
            journal=self._journal(),  # last, so that an earlier failure leaves no lock
        )
        inherited = "" if select(task.agent).model else parent.state.options.get("model", "")
        child_options = {"agent": task.agent, **({"model": inherited} if inherited else {})}
        await child.open(version=__version__, backend="engine", options=child_options, parent_id=parent.id)
        return child


async def _run_child(parent: LocalSession, child: ChildSession, task: ChildTask) -> ToolResult:
    parent.emit(ChildStarted(child.id, task.id, task.agent, task.title))
    ended = TurnEnded("", "failed")
    try:
        turn = child.start(Prompt(f"task-{task.id}", (TextContent(task.prompt),), origin="parent"))
        try:
            ended = await turn.wait()
        except asyncio.CancelledError:
            turn.cancel()
            ended = await turn.wait()
    finally:
        await child.aclose()
        parent.emit(ChildEnded(child.id, ended.reason))
    return _result(child, task, ended)


def _result(child: ChildSession, task: ChildTask, ended: TurnEnded) -> ToolResult:
    data = {"session": child.id, "agent": task.agent, "reason": ended.reason}
    if ended.reason == "done":
        display = Display(f"{task.agent}: {task.title}")
        return ToolResult(task.id, "ok", child.texts[-1] if child.texts else "(no output)", display, data)
    detail = ended.limit or (str(ended.fault) if ended.fault else "")
    summary = f"The task was interrupted: {ended.reason}{f' ({detail})' if detail else ''}."
    output = "\n\n".join(child.texts)  # all texts: the last one may be incomplete
    text = f"{summary} Output so far:\n{output}" if output else f"{summary} No output before that."
    status = "cancelled" if ended.reason == "cancelled" else "failed"
    return ToolResult(task.id, status, text, Display(summary), data, fault=ended.fault)  # type: ignore[arg-type]
