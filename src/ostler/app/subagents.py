"""Starts child sessions for the tasks a model hands out: some side by side, none below another."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from ostler import __version__
from ostler.app.active_agent import ActiveAgent
from ostler.app.child_session import ChildSession
from ostler.app.engine import make_engine
from ostler.app.model_choice import ModelChoice
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

# What a child works with, on its parent's ground: the door for who works in it, and the shell if commands run here.
ChildTools = Callable[[ActiveAgent], tuple[ToolRunner, SessionShell | None]]


class Subagents:
    """The children of one session. Each has a context, a journal and processes of its own."""

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
    ) -> None:
        self._cwd = cwd
        self._settings = settings
        self._options = options
        self._agents = agents
        self._active_agent = active_agent
        self._journal = journal
        self._budget = budget
        self._child_tools = child_tools
        self._slots = asyncio.Semaphore(settings.config.limits.subagents)
        self.model: ModelChoice | None = None

    def task_agents(self) -> dict[str, str]:
        """Who can be given a task, each with a line on what it is for; nobody where none may be started."""
        if not self._settings.config.limits.subagents:
            return {}
        return {agent.name: agent.description for agent in self._agents.values() if agent.accepts_tasks}

    async def spawn(self, parent: LocalSession, task: ChildTask) -> ToolResult:
        """Play a task to its end; what there is of an answer is kept when it is cut short."""
        async with self._slots:
            try:
                child = await self._open_child(parent, task)
            except UsageError as error:
                return ToolResult(task.id, "failed", f"Error: {error}", Display(str(error)), fault=error.fault)
            return await _run_child(parent, child, task)

    async def _open_child(self, parent: LocalSession, task: ChildTask) -> ChildSession:
        if self.model is None or task.agent not in self.task_agents():
            raise UsageError(
                f"no agent {task.agent[:80]!r} takes tasks", hint=f"there is: {', '.join(self.task_agents())}"
            )
        policy, options = self._active_agent.policy(), self._options
        choice = ActiveAgent(self._agents, policy, options, parent=self._active_agent)
        tools, choice.shell = self._child_tools(choice)
        take = partial(choice.select, child=True)
        child = ChildSession(
            parent,
            task,
            choice.policy,
            deny_asks=policy.profile == "god_mode" and self._agents[task.agent].read_only,
            backend=make_engine(str(self._cwd), self.model, tools.specs, self._settings, options, take, self._budget),
            tools=tools,
            cwd=str(self._cwd),
            journal=self._journal(),  # last: whatever fails before it leaves nothing held
        )
        await child.open(version=__version__, backend="engine", options={"agent": task.agent}, parent_id=parent.id)
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
        shown = Display(f"{task.agent}: {task.title}")
        return ToolResult(task.id, "ok", child.texts[-1] if child.texts else "(it said nothing)", shown, data)
    why = ended.limit or (str(ended.fault) if ended.fault else "")
    cut = f"The task was cut short: {ended.reason}{f' ({why})' if why else ''}."
    said = "\n\n".join(child.texts)  # the last words may be a torn piece, and what was found out stands before them
    text = f"{cut} What it had said:\n{said}" if said else f"{cut} It had said nothing yet."
    status = "cancelled" if ended.reason == "cancelled" else "failed"
    return ToolResult(task.id, status, text, Display(cut), data, fault=ended.fault)  # type: ignore[arg-type]  # both are
