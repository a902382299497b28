"""The way of working that a session's agent brings to the engine: its words, its model, its bounds."""

from collections.abc import AsyncIterator, Callable
from typing import cast, get_args

import msgspec

from ostler.core.errors import UsageError
from ostler.core.events import Compacted, Notice, OptionChanged, Reminded
from ostler.core.protocols import BackendContext, Records
from ostler.models.client_wrapper import ModelClientWrapper
from ostler.models.model_types import ModelClient, ModelRequest, ReplyChunk, Thinking

THINKING: tuple[str, ...] = get_args(Thinking)

_ROLE_PREFIX = "From here on you work as the agent "


class AgentRole(msgspec.Struct, frozen=True):
    """What an agent asks of the engine; what it may do is the policy's business."""

    name: str = ""
    prompt: str = ""
    model: str = ""
    max_steps: int | None = None
    temperature: float | None = None
    top_p: float | None = None


SelectRole = Callable[[str], AgentRole]


def no_roles(name: str) -> AgentRole:
    """Where there are no agents to choose from."""
    return AgentRole(name)


def role_at_open(select_role: SelectRole, name: str, context: BackendContext) -> AgentRole:
    """The agent that a session begins or goes on with; for one that is gone the usual works, which is told."""
    try:
        return select_role(name)
    except UsageError as error:
        records = context.records()
        past = [records[at].event for at in records.indexes_of(("option_changed",))]
        if OptionChanged("agent", name) not in past:
            raise
        context.emit(Notice("warning", f"{error}; the session goes on with the usual one"))
        return select_role("")


def send_role_prompt(context: BackendContext, role: AgentRole) -> None:
    """Tell the model its agent's words where it has not heard them, at the end, so that no earlier byte changes."""
    last = last_reminder(context.records(), _ROLE_PREFIX)
    if not role.prompt and not last:
        return
    told = f'{_ROLE_PREFIX}"{role.name}".\n\n{role.prompt or "What was said to an earlier agent no longer holds."}'
    if told != last:
        context.emit(Reminded(told))


def last_reminder(records: Records, prefix: str) -> str:
    """The last words with that beginning that are still in the history."""
    begin = 0
    for at in reversed(range(len(records))):
        if at < begin:
            break
        event = records[at].event if records.type_at(at) in ("reminded", "compacted") else None
        if isinstance(event, Compacted):
            begin = max(begin, records.index_after(event.upto_seq - 1))
        elif isinstance(event, Reminded) and event.text.startswith(prefix):
            return event.text
    return ""


def parse_thinking(value: str) -> Thinking | None:
    """How much to reason; an empty word leaves it to the model's profile."""
    if value and value not in THINKING:
        raise UsageError(f"thinking is one of {', '.join(THINKING)}, not {value[:40]!r}")
    return cast("Thinking", value) if value else None


class SampledModel(ModelClientWrapper):
    """A model asked with an agent's own temperature and top_p, and to reason as much as the person chose."""

    def __init__(self, model: ModelClient, role: AgentRole, thinking: Thinking | None = None) -> None:
        super().__init__(model)
        self._role = role
        self._thinking = thinking

    def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        role = self._role
        asked = msgspec.structs.replace(
            request, temperature=role.temperature, top_p=role.top_p, thinking=self._thinking
        )
        return super().stream(asked)
