"""Starts child sessions for the tasks a model hands out: some side by side, none below another."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from ostler import __version__
from ostler.app.agents import AgentChoice
from ostler.app.backends import make_engine
from ostler.app.child import ChildSession
from ostler.app.grounds import Shell
from ostler.app.models import ModelChoice
from ostler.app.options import RunOptions
from ostler.backends.engine.guests.budget import Budget
from ostler.knowledge.agent import Agent
from ostler.session.session import Session
from ostler.settings.effective import Settings
from ostler.vocabulary.display import Display
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.events import ChildEnded, ChildStarted, TurnEnded
from ostler.vocabulary.prompt import Prompt, Text
from ostler.vocabulary.seams import Journal, ToolRunner
from ostler.vocabulary.tools import ChildTask, ToolResult

# What a child works with, on its parent's ground: the door for who works in it, and the shell if commands run here.
Workbench = Callable[[AgentChoice], tuple[ToolRunner, Shell | None]]


class Subagents:
    """The children of one session. Each has a context, a journal and processes of its own."""

    def __init__(
        self,
        cwd: Path,
        settings: Settings,
        options: RunOptions,
        agents: Mapping[str, Agent],
        choice: AgentChoice,
        journal: Callable[[], Journal],
        budget: Budget,
        workbench: Workbench,
    ) -> None:
        self._cwd = cwd
        self._settings = settings
        self._options = options
        self._agents = agents
        self._choice = choice
        self._journal = journal
        self._budget = budget
        self._workbench = workbench
        self._places = asyncio.Semaphore(settings.config.limits.subagents)
        self.model: ModelChoice | None = None

    def names(self) -> dict[str, str]:
        """Who can be given a task, each with a line on what it is for; nobody where none may be started."""
        if not self._settings.config.limits.subagents:
            return {}
        return {agent.name: agent.description for agent in self._agents.values() if agent.works}

    async def spawn(self, parent: Session, task: ChildTask) -> ToolResult:
        """Play a task to its end; what there is of an answer is kept when it is cut short."""
        async with self._places:
            try:
                child = await self._open(parent, task)
            except UsageError as error:
                return ToolResult(task.id, "failed", f"Error: {error}", Display(str(error)), fault=error.fault)
            return await _play(parent, child, task)

    async def _open(self, parent: Session, task: ChildTask) -> ChildSession:
        if self.model is None or task.agent not in self.names():
            raise UsageError(f"no agent {task.agent[:80]!r} takes tasks", hint=f"there is: {', '.join(self.names())}")
        policy, options = self._choice.policy(), self._options
        choice = AgentChoice(self._agents, policy, options, below=self._choice)
        tools, choice.shell = self._workbench(choice)
        take = partial(choice.take, child=True)
        child = ChildSession(
            parent,
            task,
            choice.policy,
            unasked=policy.profile == "god_mode" and self._agents[task.agent].read_only,
            backend=make_engine(str(self._cwd), self.model, tools.specs, self._settings, options, take, self._budget),
            tools=tools,
            cwd=str(self._cwd),
            journal=self._journal(),  # last: whatever fails before it leaves nothing held
        )
        await child.open(version=__version__, backend="engine", options={"agent": task.agent}, parent_id=parent.id)
        return child


async def _play(parent: Session, child: ChildSession, task: ChildTask) -> ToolResult:
    parent.emit(ChildStarted(child.id, task.id, task.agent, task.title))
    ended = TurnEnded("", "failed")
    try:
        turn = child.start(Prompt(f"task-{task.id}", (Text(task.prompt),), origin="parent"))
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
        return ToolResult(task.id, "ok", child.said[-1] if child.said else "(it said nothing)", shown, data)
    why = ended.limit or (str(ended.fault) if ended.fault else "")
    cut = f"The task was cut short: {ended.reason}{f' ({why})' if why else ''}."
    said = "\n\n".join(child.said)  # the last words may be a torn piece, and what was found out stands before them
    text = f"{cut} What it had said:\n{said}" if said else f"{cut} It had said nothing yet."
    status = "cancelled" if ended.reason == "cancelled" else "failed"
    return ToolResult(task.id, status, text, Display(cut), data, fault=ended.fault)  # type: ignore[arg-type]  # both are
