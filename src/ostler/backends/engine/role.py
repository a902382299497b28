"""The active agent's role in the engine: prompt, model, sampling, step limit."""

from collections.abc import AsyncGenerator
from typing import cast, get_args

import msgspec

from ostler.core.errors import UsageError
from ostler.core.events import Compacted, Reminded
from ostler.core.message import CallPart, Message
from ostler.core.prompt import Prompt
from ostler.core.protocols import BackendContext
from ostler.core.session_view import Records
from ostler.core.sessions import Thinking
from ostler.core.tools import ToolCall
from ostler.knowledge.agent_definition import AgentRole
from ostler.models.client_wrapper import ModelClientWrapper
from ostler.models.model_types import ModelClient, ModelRequest, ReplyChunk

THINKING: tuple[str, ...] = get_args(Thinking)

_ROLE_PREFIX = "You are now acting as the agent "
_NO_PROMPT = "Instructions for earlier agents no longer apply."
# The same texts in sessions of earlier versions.
_OLD_ROLE_PREFIX = "From here on you work as the agent "
_OLD_NO_PROMPT = "What was said to an earlier agent no longer holds."


def subagent_call(prompt: Prompt) -> Message | None:
    """Return a message with the call that runs the prompt's task in a subagent, or None."""
    if prompt.target is None or not prompt.target.task:
        return None
    arguments = {"prompt": prompt.target.task, "title": prompt.text[:80], "agent": prompt.target.agent or "general"}
    return Message(f"task-{prompt.id}", (CallPart(ToolCall(f"task-{prompt.id}", "task", arguments)),))


def send_role_prompt(context: BackendContext, role: AgentRole) -> None:
    """Send the agent's prompt to the model if it is not the current one; appended, so that earlier bytes stay."""
    last = last_reminder(context.records(), (_ROLE_PREFIX, _OLD_ROLE_PREFIX))
    if not role.prompt and not last:
        return
    text = f'{_ROLE_PREFIX}"{role.name}".\n\n{role.prompt or _NO_PROMPT}'
    old_text = f'{_OLD_ROLE_PREFIX}"{role.name}".\n\n{role.prompt or _OLD_NO_PROMPT}'
    if last not in (text, old_text):
        context.emit(Reminded(text))


def last_reminder(records: Records, prefix: str | tuple[str, ...]) -> str:
    """Return the latest reminder with this prefix that is still in the history, or an empty string."""
    start = 0
    for index in reversed(range(len(records))):
        if index < start:
            break
        event = records[index].event if records.type_at(index) in ("reminded", "compacted") else None
        if isinstance(event, Compacted):
            start = max(start, records.index_after(event.upto_seq - 1))
        elif isinstance(event, Reminded) and event.text.startswith(prefix):
            return event.text
    return ""


def parse_thinking(value: str) -> Thinking | None:
    """Parse a thinking level; an empty value leaves it to the model's profile. Raises `UsageError` if it is unknown."""
    if value and value not in THINKING:
        raise UsageError(f"thinking must be one of {', '.join(THINKING)}, not {value[:40]!r}")
    return cast("Thinking", value) if value else None


class SampledModel(ModelClientWrapper):
    """A model with an agent's temperature and top_p and the selected thinking level."""

    def __init__(self, model: ModelClient, role: AgentRole, thinking: Thinking | None = None) -> None:
        super().__init__(model)
        self._role = role
        self._thinking = thinking

    def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        role = self._role
        return super().stream(
            msgspec.structs.replace(request, temperature=role.temperature, top_p=role.top_p, thinking=self._thinking)
        )
