"""Applies a prompt's target: another agent or model for the turn or the session, or a subagent task."""

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
    """The part of the engine that switches agents and models."""

    @property
    def selection(self) -> dict[str, str]: ...

    async def apply(self, change: SessionChange) -> bool: ...


@asynccontextmanager
async def with_target(
    engine: TargetSwitcher, context: BackendContext, target: PromptTarget | None
) -> AsyncIterator[None]:
    """Switch to the prompt's agent and model for the block; `for_session` makes the switch permanent."""
    before = engine.selection
    requested = {"agent": target.agent, "model": target.model} if target and not target.task else {}
    changed = [name for name, value in requested.items() if value and value != before[name]]
    for_session = target is not None and target.for_session
    switched: list[str] = []
    try:
        for name in changed:
            switched.append(name)
            await engine.apply(SetOption(name, requested[name]))
            if for_session:
                context.emit(OptionChanged(name, requested[name]))
        yield
    finally:
        for name in reversed(switched if not for_session else ()):
            await engine.apply(SetOption(name, before[name]))


def only_selects_agent(prompt: Prompt) -> bool:
    """Return whether a prompt selects an agent for the session and contains nothing else."""
    selects = prompt.target is not None and prompt.target.for_session and bool(prompt.target.agent)
    return (
        selects
        and not strip_agent_mentions(prompt.text)
        and all(isinstance(block, TextContent) for block in prompt.blocks)
    )


def end_selection_turn(context: BackendContext, prompt: Prompt) -> TurnEnded:
    """End a turn that only selected an agent: notify the user and hide the turn from the model."""
    records = context.records()
    start = next(index for index in reversed(range(len(records))) if records.type_at(index) == "turn_started")
    context.emit(Reverted(records[start].seq - 1))
    agent = prompt.target.agent if prompt.target else ""
    context.emit(Notice("info", f"switched to agent {agent} for this session"))
    return TurnEnded("", "done")


def subagent_call(prompt: Prompt) -> Message | None:
    """Return a message with the call that runs the prompt's task in a subagent, or None."""
    if prompt.target is None or not prompt.target.task:
        return None
    arguments = {"prompt": prompt.target.task, "title": prompt.text[:80], "agent": prompt.target.agent or "general"}
    return Message(f"task-{prompt.id}", (CallPart(ToolCall(f"task-{prompt.id}", "task", arguments)),))
