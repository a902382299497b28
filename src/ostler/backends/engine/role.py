"""The way of working that a session's agent brings to the engine: its words, its model, its bounds."""

from collections.abc import AsyncIterator, Callable
from typing import cast, get_args

import msgspec

from ostler.models.over import Over
from ostler.models.words import Chunk, ModelClient, Request, Thinking
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.events import Compacted, Notice, OptionChanged, Reminded
from ostler.vocabulary.seams import Past, Stage

THINKING: tuple[str, ...] = get_args(Thinking)

_BEGINNING = "From here on you work as the agent "


class Role(msgspec.Struct, frozen=True):
    """What an agent asks of the engine; what it may do is the policy's business."""

    name: str = ""
    prompt: str = ""
    model: str = ""
    max_steps: int | None = None
    temperature: float | None = None
    top_p: float | None = None


TakeRole = Callable[[str], Role]


def no_roles(name: str) -> Role:
    """Where there are no agents to choose from."""
    return Role(name)


def role_at_open(roles: TakeRole, name: str, stage: Stage) -> Role:
    """The agent that a session begins or goes on with; for one that is gone the usual works, which is told."""
    try:
        return roles(name)
    except UsageError as error:
        records = stage.records()
        past = [records[at].event for at in records.of(("option_changed",))]
        if OptionChanged("agent", name) not in past:
            raise
        stage.emit(Notice("warning", f"{error}; the session goes on with the usual one"))
        return roles("")


def brief(stage: Stage, role: Role) -> None:
    """Tell the model its agent's words where it has not heard them, at the end, so that no earlier byte changes."""
    last = last_told(stage.records(), _BEGINNING)
    if not role.prompt and not last:
        return
    told = f'{_BEGINNING}"{role.name}".\n\n{role.prompt or "What was said to an earlier agent no longer holds."}'
    if told != last:
        stage.emit(Reminded(told))


def last_told(records: Past, beginning: str) -> str:
    """The last words with that beginning that are still in the history."""
    begin = 0
    for at in reversed(range(len(records))):
        if at < begin:
            break
        event = records[at].event if records.kind(at) in ("reminded", "compacted") else None
        if isinstance(event, Compacted):
            begin = max(begin, records.after(event.upto_seq - 1))
        elif isinstance(event, Reminded) and event.text.startswith(beginning):
            return event.text
    return ""


def thinking_of(value: str) -> Thinking | None:
    """How much to reason; an empty word leaves it to the model's profile."""
    if value and value not in THINKING:
        raise UsageError(f"thinking is one of {', '.join(THINKING)}, not {value[:40]!r}")
    return cast("Thinking", value) if value else None


class Sampled(Over):
    """A model asked with an agent's own temperature and top_p, and to reason as much as the person chose."""

    def __init__(self, model: ModelClient, role: Role, thinking: Thinking | None = None) -> None:
        super().__init__(model)
        self._role = role
        self._thinking = thinking

    def stream(self, request: Request) -> AsyncIterator[Chunk]:
        role = self._role
        asked = msgspec.structs.replace(
            request, temperature=role.temperature, top_p=role.top_p, thinking=self._thinking
        )
        return super().stream(asked)
