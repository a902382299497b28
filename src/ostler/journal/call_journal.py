"""A journal without the conversation: it stores calls, results, decisions and positions, but no prompts and replies.

For sessions whose conversation is stored by a server. The texts are kept in memory, and a resumed session gets them
from the server.
"""

from collections.abc import Container, Iterator, Mapping, Sequence

import msgspec

from ostler.core import events as e
from ostler.core.message import CallPart, Message
from ostler.core.prompt import Prompt, TextContent
from ostler.core.protocols import Journal
from ostler.core.session_view import Records
from ostler.core.tools import ToolResult

ELSEWHERE = "(stored on the server)"
_TEXTS = (TextContent(ELSEWHERE),)
_TYPES = ("turn_started", "steered", "message_done", "reminded", "notice")


class ConversationTexts:
    """The texts of prompts and messages that the journal leaves out: by id, and those of prompts also by record."""

    def __init__(self) -> None:
        self._by_id: Mapping[str, str] = {}
        self._by_seq: Mapping[int, str] = {}
        self._events: dict[int, e.Event] = {}

    def restore(self, by_id: Mapping[str, str], by_seq: Mapping[int, str]) -> None:
        """Use the texts of a resumed conversation."""
        self._by_id, self._by_seq = by_id, by_seq

    def keep(self, envelope: e.Envelope) -> None:
        """Keep a complete event while this process runs."""
        self._events[envelope.seq] = envelope.event

    def fill(self, envelope: e.Envelope) -> e.Envelope:
        """Return a stored record with its text, if known."""
        event = self._events.get(envelope.seq) or self._fill(envelope)
        return envelope if event is envelope.event else msgspec.structs.replace(envelope, event=event)

    def _fill(self, envelope: e.Envelope) -> e.Event:
        event = envelope.event
        match event:
            case e.TurnStarted(_, prompt) | e.Steered(prompt):
                text = self._by_id.get(prompt.id, self._by_seq.get(envelope.seq))
                if text is None:
                    return event
                blocks = (TextContent(text),)
                return msgspec.structs.replace(event, prompt=msgspec.structs.replace(prompt, blocks=blocks))
            case e.MessageDone(message):
                text = self._by_id.get(message.id)
                return event if text is None else e.MessageDone(_with_text(message, text))
            case _:
                return event


class CallJournal:
    """Implements `Journal` on top of another one."""

    def __init__(self, journal: Journal, texts: ConversationTexts) -> None:
        self._journal = journal
        self._texts = texts
        self._records = _FilledRecords(journal.records(), texts)

    @property
    def session_id(self) -> str:
        return self._journal.session_id

    @property
    def damage(self) -> Sequence[str]:
        return self._journal.damage

    def records(self) -> Records:
        return self._records

    def append(self, envelope: e.Envelope) -> None:
        stored = without_text(envelope.event)
        if stored is not envelope.event and not isinstance(stored, e.PartialReply | e.Queued):
            self._texts.keep(envelope)
        self._journal.append(msgspec.structs.replace(envelope, event=stored))

    def sync(self) -> None:
        self._journal.sync()

    def close(self) -> None:
        self._journal.close()

    def drop(self) -> None:
        self._journal.drop()


class _FilledRecords:
    """Implements `Records`: the stored ones with their texts."""

    def __init__(self, records: Records, texts: ConversationTexts) -> None:
        self._records = records
        self._texts = texts

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: int) -> e.Envelope:
        envelope = self._records[index]
        index = range(len(self._records))[index]
        return self._texts.fill(envelope) if self._records.type_at(index) in _TYPES else envelope

    def __iter__(self) -> Iterator[e.Envelope]:
        return map(self.__getitem__, range(len(self)))

    def type_at(self, index: int) -> str:
        return self._records.type_at(index)

    def indexes_of(self, types: Container[str]) -> Iterator[int]:
        return self._records.indexes_of(types)

    def index_after(self, seq: int) -> int:
        return self._records.index_after(seq)

    def result(self, call_id: str) -> ToolResult | None:
        return self._records.result(call_id)

    def result_seq(self, call_id: str) -> int | None:
        return self._records.result_seq(call_id)


def without_text(event: e.Event) -> e.Event:
    """Return an event in its stored form: without what the user and the model wrote to each other."""
    match event:
        case e.TurnStarted(_, prompt) | e.Steered(prompt):
            return msgspec.structs.replace(event, prompt=_without_text(prompt))
        case e.MessageDone(message):
            calls = tuple(part for part in message.parts if isinstance(part, CallPart))
            parts = calls if len(calls) == len(message.parts) else (*_TEXTS, *calls)
            return e.MessageDone(msgspec.structs.replace(message, parts=parts))
        case e.Reminded():
            return e.Reminded(ELSEWHERE)
        case e.Notice(level, quotes=True):
            return e.Notice(level, f"a prompt of another client {ELSEWHERE}", quotes=True)
        case e.PartialReply(message_id):
            return e.PartialReply(message_id, restarts=True)
        case e.Queued():
            return e.Queued(())
        case _:
            return event


def _without_text(prompt: Prompt) -> Prompt:
    target = prompt.target and msgspec.structs.replace(prompt.target, task=ELSEWHERE if prompt.target.task else "")
    return msgspec.structs.replace(prompt, blocks=_TEXTS, target=target, notes=())


def _with_text(message: Message, text: str) -> Message:
    calls = tuple(part for part in message.parts if isinstance(part, CallPart))
    return msgspec.structs.replace(message, parts=(*((TextContent(text),) if text else ()), *calls))
