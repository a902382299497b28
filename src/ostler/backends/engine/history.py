"""What the model is sent: a fold over the kept events, always a valid request."""

from collections.abc import Iterable, Sequence

import msgspec

from ostler.backends.engine.token_estimate import message_size
from ostler.core.events import (
    Compacted,
    Delivered,
    Event,
    MessageDone,
    PrefixBuilt,
    Pruned,
    Reminded,
    Steered,
    ToolCalled,
    ToolFinished,
    TurnStarted,
)
from ostler.core.message import Message
from ostler.core.prompt import Prompt, TextContent
from ostler.core.protocols import Records
from ostler.core.tool_aliases import resolve_tool_name
from ostler.core.tools import ToolCall, ToolResult
from ostler.models.model_types import AssistantMessage, RequestMessage, SystemMessage, ToolResultsMessage, UserMessage
from ostler.text.truncate import truncate_middle

NOT_RUN = "Not run."
PRUNED_RESULT = "[This old result was left out to save space. Call the tool again if you need it.]"
NEVER_PRUNED = frozenset(["skill"])
# The kinds of records that the fold looks at; no other is decoded.
HISTORY_EVENT_TYPES = frozenset(
    [
        "turn_started",
        "steered",
        "delivered",
        "message_done",
        "tool_called",
        "tool_finished",
        "reminded",
        "pruned",
        "compacted",
    ]
)
_SUMMARY_SEQ = -1
_MANUAL_PREFIX = "by-hand-"


class HistoryEntry(msgspec.Struct, frozen=True):
    """One thing said, the number of the record it comes from, and its size in bytes."""

    seq: int
    message: RequestMessage
    size: int


class History:
    """Follows a session's records and folds only those that are new; a revert makes it begin anew."""

    def __init__(self) -> None:
        self._fold = _Fold()
        self._read_count = 0
        self._last_seq = 0
        self._undone: frozenset[int] = frozenset()

    def follow(self, records: Records) -> "History":
        """Take in what is new."""
        if self._read_count > len(records) or (
            self._read_count and records[self._read_count - 1].seq != self._last_seq
        ):
            self._fold, self._read_count = _Fold(), 0
        if self._read_count == len(records):
            return self
        kinds = list(map(records.type_at, range(self._read_count, len(records))))
        if "compacted" in kinds and (undone := undone_summaries(records)) != self._undone:
            self._fold, self._read_count, self._undone = _Fold(), 0, undone
            kinds = list(map(records.type_at, range(len(records))))
        for index in range(self._first_index(records, kinds), len(records)):
            if kinds[index - self._read_count] in HISTORY_EVENT_TYPES:
                envelope = records[index]
                if envelope.seq not in self._undone:
                    self._fold.apply(envelope.event, envelope.seq)
        self._read_count = len(records)
        self._last_seq = records[self._read_count - 1].seq
        return self

    def _first_index(self, records: Records, kinds: list[str]) -> int:
        """Of a past that is new, what its last summary stands for need not be looked at."""
        if self._read_count:
            return self._read_count
        for place in (at for at in reversed(range(len(kinds))) if kinds[at] == "compacted"):
            summary = records[place]
            if summary.seq not in self._undone and isinstance(summary.event, Compacted):
                return min(place, records.index_after(summary.event.upto_seq - 1))
        return 0

    @property
    def entries(self) -> list[HistoryEntry]:
        return [*self._fold.entries, *self._fold.pending_entries()]

    @property
    def messages(self) -> tuple[RequestMessage, ...]:
        return tuple(entry.message for entry in self.entries)

    @property
    def size(self) -> int:
        return self._fold.size + sum(entry.size for entry in self._fold.pending_entries())


def fold_history(events: Iterable[Event]) -> tuple[RequestMessage, ...]:
    """Prompts, messages and results in the order a model expects: every call has its result right after it."""
    fold = _Fold()
    for seq, event in enumerate(events, 1):
        fold.apply(event, seq)
    return tuple(entry.message for entry in (*fold.entries, *fold.pending_entries()))


def undone_summaries(records: Records) -> frozenset[int]:
    """The numbers of the summaries that were taken back, and of what took them back."""
    standing: list[int] = []
    undone: set[int] = set()
    for envelope in (records[at] for at in records.indexes_of(("compacted",))):
        if isinstance(envelope.event, Compacted) and envelope.event.summary:
            standing.append(envelope.seq)
        else:
            undone |= {envelope.seq, *standing[-1:]}
            standing = standing[:-1]
    return frozenset(undone)


def find_prefix(records: Records) -> PrefixBuilt | None:
    """What the session's requests begin with, if one was sent already."""
    event = latest_event(records, "prefix_built")
    return event if isinstance(event, PrefixBuilt) else None


def latest_event(records: Records, event_type: str) -> Event | None:
    """The last event of a kind; none of another kind is decoded."""
    place = next((at for at in reversed(range(len(records))) if records.type_at(at) == event_type), None)
    return None if place is None else records[place].event


class _Fold:
    """Holds a reply with calls open until something else is said: more of it and their results may still come.

    To the model it is one message, in however many pieces it was kept, and the results follow the whole.
    """

    def __init__(self) -> None:
        self.entries: list[HistoryEntry] = []
        self.size = 0
        self._open: list[Message] = []
        self._open_seq = 0
        self._results: dict[str, ToolResult] = {}
        self._deferred: list[HistoryEntry] = []
        self._manual_calls: dict[str, tuple[int, ToolCall]] = {}
        self._steered: dict[str, tuple[int, Prompt]] = {}

    def apply(self, event: Event, seq: int) -> None:
        """The commonest first: a long session is folded whole when it is resumed."""
        match event:
            case MessageDone(message) if message.continues:
                if self._open:  # else a summary took the beginning of the reply, and with it the rest
                    self._open.append(message)
            case MessageDone(message) if message.calls:
                self._close()
                self._open, self._open_seq = [message], seq
            case MessageDone(message):
                self._close()
                if message.parts:
                    self._append(seq, AssistantMessage(message))
            case ToolFinished(result):
                if result.call_id in self._manual_calls:
                    self._append_manual(*self._manual_calls.pop(result.call_id), result)
                else:
                    self._results[result.call_id] = result
            case ToolCalled(call):
                if call.origin == "person":
                    self._manual_calls[call.id] = (seq, call)
            case TurnStarted(_, prompt):
                self._append(seq, UserMessage(prompt.blocks))
            case _:
                self._apply_other(event, seq)

    def pending_entries(self) -> list[HistoryEntry]:
        """What follows the entries if nothing more comes: an open reply, its results, and what waits for them."""
        if not self._open:
            return self._deferred
        reply = join_pieces(self._open)
        results = (self._results.get(call.id) or ToolResult(call.id, "cancelled", NOT_RUN) for call in reply.calls)
        said = (AssistantMessage(reply), ToolResultsMessage(tuple(results)))
        return [*(_make_entry(self._open_seq, one) for one in said), *self._deferred]

    def _apply_other(self, event: Event, seq: int) -> None:
        match event:
            case Steered(prompt):
                self._steered[prompt.id] = (seq, prompt)
            case Delivered(prompt_id) if prompt_id in self._steered:
                steered_seq, prompt = self._steered.pop(prompt_id)
                self._append(steered_seq, UserMessage(prompt.blocks))
            case Reminded(text):
                self._deferred.append(_make_entry(seq, SystemMessage(text)))
                if not self._open:
                    self._close()
            case Pruned(upto_seq, chars):
                self._close()
                self._prune(upto_seq, chars)
            case Compacted(summary, upto_seq) if summary:
                self._close()
                told = _make_entry(_SUMMARY_SEQ, UserMessage((TextContent(summary),)))
                self._replace([told, *(entry for entry in self.entries if entry.seq >= upto_seq)])
            case _:
                pass

    def _append(self, seq: int, message: RequestMessage) -> None:
        self._close()
        size = message_size(message)
        self.entries.append(HistoryEntry(seq, message, size))
        self.size += size

    def _close(self) -> None:
        if self._open or self._deferred:
            ending = self.pending_entries()
            self.entries += ending
            self.size += sum(entry.size for entry in ending)
        self._open, self._results, self._deferred = [], {}, []

    def _replace(self, entries: list[HistoryEntry]) -> None:
        self.entries = entries
        self.size = sum(entry.size for entry in entries)

    def _append_manual(self, seq: int, call: ToolCall, result: ToolResult) -> None:
        """A person's own command enters the conversation as what they typed and what came of it.

        While the model's calls are open it waits for their results.
        """
        self._deferred.append(
            _make_entry(seq, UserMessage((TextContent(f"!{call.arguments.get('command', call.tool)}"),)))
        )
        self._deferred.append(
            _make_entry(seq, AssistantMessage(Message(f"{_MANUAL_PREFIX}{call.id}", (TextContent(result.for_model),))))
        )
        if not self._open:
            self._close()

    def _prune(self, upto_seq: int, chars: int) -> None:
        kept: list[HistoryEntry] = []
        for entry in self.entries:
            said = entry.message
            if isinstance(said, ToolResultsMessage) and entry.seq < upto_seq:
                before = kept[-1].message
                calls = before.message.calls if isinstance(before, AssistantMessage) else ()
                spared = {call.id for call in calls if resolve_tool_name(call.tool, NEVER_PRUNED)}
                results = (one if one.call_id in spared else prune_result(one, chars) for one in said.results)
                entry = _make_entry(entry.seq, ToolResultsMessage(tuple(results)))
            kept.append(entry)
        self._replace(kept)


def join_pieces(pieces: Sequence[Message]) -> Message:
    """A reply that was kept in pieces."""
    parts = tuple(part for piece in pieces for part in piece.parts)
    return msgspec.structs.replace(pieces[0], parts=parts, truncated=pieces[-1].truncated)


def prune_result(result: ToolResult, chars: int) -> ToolResult:
    """A result cut down to its head and tail, or to a word that it was left out; pictures go too."""
    if len(result.for_model) <= max(chars, len(PRUNED_RESULT)) and not result.images:
        return result
    text = truncate_middle(result.for_model, chars).text if chars > len(PRUNED_RESULT) else PRUNED_RESULT
    return ToolResult(result.call_id, result.status, text)


def is_manual_result(message: RequestMessage) -> bool:
    """Whether it is what came of a person's own command, and no words of the model."""
    return isinstance(message, AssistantMessage) and message.message.id.startswith(_MANUAL_PREFIX)


def _make_entry(seq: int, message: RequestMessage) -> HistoryEntry:
    return HistoryEntry(seq, message, message_size(message))
