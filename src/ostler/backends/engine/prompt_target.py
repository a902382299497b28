"""Who works on a prompt that says so: another agent or model, for a turn or from then on, or a subagent first."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from ostler.core.events import Notice, OptionChanged, Reverted, TurnEnded
from ostler.core.message import CallPart, Message
from ostler.core.prompt import Prompt, PromptTarget, TextContent
from ostler.core.protocols import BackendContext
from ostler.core.sessions import SessionChange, SetOption
from ostler.core.tools import ToolCall
from ostler.knowledge.prompt_syntax import strip_agent_mentions


class TargetSwitcher(Protocol):
    """Whoever can be told who works."""

    @property
    def selection(self) -> dict[str, str]: ...

    async def apply(self, change: SessionChange) -> bool: ...


@asynccontextmanager
async def with_target(
    engine: TargetSwitcher, context: BackendContext, target: PromptTarget | None
) -> AsyncIterator[None]:
    """Let those work that a prompt wants. What lasts is kept as an event, so that a resumed session goes on with it."""
    before = engine.selection
    asked = {"agent": target.agent, "model": target.model} if target and not target.task else {}
    changed = [name for name, value in asked.items() if value and value != before[name]]
    lasting = target is not None and target.for_session
    begun: list[str] = []
    try:
        for name in changed:
            begun.append(name)
            await engine.apply(SetOption(name, asked[name]))
            if lasting:
                context.emit(OptionChanged(name, asked[name]))
        yield
    finally:
        for name in reversed(begun if not lasting else ()):
            await engine.apply(SetOption(name, before[name]))


def only_selects_agent(prompt: Prompt) -> bool:
    """Whether a prompt has no words besides who works from now on."""
    chosen = prompt.target is not None and prompt.target.for_session and bool(prompt.target.agent)
    return (
        chosen
        and not strip_agent_mentions(prompt.text)
        and all(isinstance(block, TextContent) for block in prompt.blocks)
    )


def end_selection_turn(context: BackendContext, prompt: Prompt) -> TurnEnded:
    """The end of such a turn: a person is told, and no model ever hears of it."""
    records = context.records()
    begun = next(at for at in reversed(range(len(records))) if records.type_at(at) == "turn_started")
    context.emit(Reverted(records[begun].seq - 1))
    agent = prompt.target.agent if prompt.target else ""
    context.emit(Notice("info", f"the agent {agent} works from now on, until another is chosen"))
    return TurnEnded("", "done")


def subagent_call(prompt: Prompt) -> Message | None:
    """The call that hands a prompt's task to a subagent before the model is asked."""
    if prompt.target is None or not prompt.target.task:
        return None
    arguments = {"prompt": prompt.target.task, "title": prompt.text[:80], "agent": prompt.target.agent or "general"}
    return Message(f"task-{prompt.id}", (CallPart(ToolCall(f"task-{prompt.id}", "task", arguments)),))
