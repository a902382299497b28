"""Who works on a prompt that says so: another agent or model, for a turn or from then on, or a subagent first."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from ostler.knowledge.triggers import without_agents
from ostler.vocabulary.events import Notice, OptionChanged, Reverted, TurnEnded
from ostler.vocabulary.message import Called, Message
from ostler.vocabulary.prompt import Cast, Prompt, Text
from ostler.vocabulary.seams import Stage
from ostler.vocabulary.sessions import Change, SetOption
from ostler.vocabulary.tools import ToolCall


class Castable(Protocol):
    """Whoever can be told who works."""

    @property
    def chosen(self) -> dict[str, str]: ...

    async def apply(self, change: Change) -> bool: ...


@asynccontextmanager
async def led_by(engine: Castable, stage: Stage, wanted: Cast | None) -> AsyncIterator[None]:
    """Let those work that a prompt wants. What lasts is kept as an event, so that a resumed session goes on with it."""
    before = engine.chosen
    asked = {"agent": wanted.agent, "model": wanted.model} if wanted and not wanted.task else {}
    changed = [name for name, value in asked.items() if value and value != before[name]]
    lasting = wanted is not None and wanted.lasting
    begun: list[str] = []
    try:
        for name in changed:
            begun.append(name)
            await engine.apply(SetOption(name, asked[name]))
            if lasting:
                stage.emit(OptionChanged(name, asked[name]))
        yield
    finally:
        for name in reversed(begun if not lasting else ()):
            await engine.apply(SetOption(name, before[name]))


def only_chooses(prompt: Prompt) -> bool:
    """Whether a prompt has no words besides who works from now on."""
    chosen = prompt.cast is not None and prompt.cast.lasting and bool(prompt.cast.agent)
    return chosen and not without_agents(prompt.text) and all(isinstance(block, Text) for block in prompt.blocks)


def chosen_alone(stage: Stage, prompt: Prompt) -> TurnEnded:
    """The end of such a turn: a person is told, and no model ever hears of it."""
    records = stage.records()
    begun = next(at for at in reversed(range(len(records))) if records.kind(at) == "turn_started")
    stage.emit(Reverted(records[begun].seq - 1))
    agent = prompt.cast.agent if prompt.cast else ""
    stage.emit(Notice("info", f"the agent {agent} works from now on, until another is chosen"))
    return TurnEnded("", "done")


def handed_out(prompt: Prompt) -> Message | None:
    """The call that hands a prompt's task to a subagent before the model is asked."""
    if prompt.cast is None or not prompt.cast.task:
        return None
    arguments = {"prompt": prompt.cast.task, "title": prompt.text[:80], "agent": prompt.cast.agent or "general"}
    return Message(f"task-{prompt.id}", (Called(ToolCall(f"task-{prompt.id}", "task", arguments)),))
