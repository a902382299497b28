"""The message history sent to the model, folded from the session's records; always a valid request."""

from collections.abc import Iterable, Mapping, Sequence

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
    UsageReported,
)
from ostler.core.message import CallPart, Message
from ostler.core.prompt import Prompt, TextContent
from ostler.core.session_view import Records, latest_event
from ostler.core.tool_aliases import resolve_tool_name
from ostler.core.tools import ToolCall, ToolResult
from ostler.models.model_types import AssistantMessage, RequestMessage, SystemMessage, ToolResultsMessage, UserMessage
from ostler.text.truncate import truncate_middle

NOT_RUN = "Not run."
PRUNED_RESULT = "[Old tool result removed to save context. Call the tool again if you need it.]"
NEVER_PRUNED = frozenset(["skill"])
# Only records of these types are decoded.
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
_MANUAL_PREFIX = "manual-"


class HistoryEntry(msgspec.Struct, frozen=True):
    """A message, the number of its record, and its size in bytes."""

    seq: int
    message: RequestMessage
    size: int


class History:
    """Follows a session's records, folding only new ones; after a revert it starts again."""

    def __init__(self) -> None:
        self._fold = _Fold()
        self._read_count = 0
        self._last_seq = 0
        self._undone: frozenset[int] = frozenset()

    def follow(self, records: Records) -> "History":
        """Read the new records and return the history itself."""
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
        """Return where to start; on a first read, records that the latest summary replaces are skipped."""
        if self._read_count:
            return self._read_count
        for index in (position for position in reversed(range(len(kinds))) if kinds[position] == "compacted"):
            summary = records[index]
            if summary.seq not in self._undone and isinstance(summary.event, Compacted):
                return min(index, records.index_after(summary.event.upto_seq - 1))
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
    """Return prompts, messages and results in the order a model expects: results follow their calls."""
    fold = _Fold()
    for seq, event in enumerate(events, 1):
        fold.apply(event, seq)
    return tuple(entry.message for entry in (*fold.entries, *fold.pending_entries()))


def undone_summaries(records: Records) -> frozenset[int]:
    """Return the numbers of the undone summaries and of the records that undid them."""
    active: list[int] = []
    undone: set[int] = set()
    for envelope in (records[index] for index in records.indexes_of(("compacted",))):
        if isinstance(envelope.event, Compacted) and envelope.event.summary:
            active.append(envelope.seq)
        else:
            undone |= {envelope.seq, *active[-1:]}
            active = active[:-1]
    return frozenset(undone)


def find_prefix(records: Records) -> PrefixBuilt | None:
    """Return the prefix of the session's requests, or None before the first request."""
    event = latest_event(records, "prefix_built")
    return event if isinstance(event, PrefixBuilt) else None


def last_context_report(records: Records) -> UsageReported | None:
    """Return the latest report of the context's size and limit, or None."""
    events = (records[index].event for index in reversed(list(records.indexes_of(("usage_reported",)))))
    return next((event for event in events if isinstance(event, UsageReported) and event.context_limit), None)


class _Fold:
    """Folds events into entries. A reply with calls stays open until the next message, as results may still come.

    The model sees it as one message, even if it was persisted in several pieces, followed by all results.
    """

    def __init__(self) -> None:
        self.entries: list[HistoryEntry] = []
        self.size = 0
        self._open: list[Message] = []
        self._open_seq = 0
        self._results: dict[str, ToolResult] = {}
        self._resolved: dict[str, ToolCall] = {}
        self._deferred: list[HistoryEntry] = []
        self._manual_calls: dict[str, tuple[int, ToolCall]] = {}
        self._steered: dict[str, tuple[int, Prompt]] = {}

    def apply(self, event: Event, seq: int) -> None:
        """Apply one event; frequent types come first because a resumed session is folded completely."""
        match event:
            case MessageDone(message) if message.continues:
                if self._open:  # otherwise a summary replaced the reply's beginning, so the rest is dropped
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
                elif call.raw:
                    self._resolved[call.id] = call
            case TurnStarted(_, prompt):
                self._steered.pop(prompt.id, None)
                self._append(seq, UserMessage(prompt.blocks_for_model))
            case _:
                self._apply_other(event, seq)

    def pending_entries(self) -> list[HistoryEntry]:
        """Return the entries that are not final yet: an open reply, its results, and deferred messages."""
        if not self._open:
            return self._deferred
        reply = with_repaired_calls(join_pieces(self._open), self._resolved)
        results = (self._results.get(call.id) or ToolResult(call.id, "cancelled", NOT_RUN) for call in reply.calls)
        messages = (AssistantMessage(reply), ToolResultsMessage(tuple(results)))
        return [*(_make_entry(self._open_seq, message) for message in messages), *self._deferred]

    def _apply_other(self, event: Event, seq: int) -> None:
        match event:
            case Steered(prompt):
                self._steered[prompt.id] = (seq, prompt)
            case Delivered(prompt_id) if prompt_id in self._steered:
                steered_seq, prompt = self._steered.pop(prompt_id)
                self._append(steered_seq, UserMessage(prompt.blocks_for_model))
            case Reminded(text):
                self._deferred.append(_make_entry(seq, SystemMessage(text)))
                if not self._open:
                    self._close()
            case Pruned(upto_seq, chars):
                self._close()
                self._prune(upto_seq, chars)
            case Compacted(summary, upto_seq) if summary:
                self._close()
                first = _make_entry(_SUMMARY_SEQ, UserMessage((TextContent(summary),)))
                self._replace([first, *(entry for entry in self.entries if entry.seq >= upto_seq)])
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
        self._open, self._results, self._resolved, self._deferred = [], {}, {}, []

    def _replace(self, entries: list[HistoryEntry]) -> None:
        self.entries = entries
        self.size = sum(entry.size for entry in entries)

    def _append_manual(self, seq: int, call: ToolCall, result: ToolResult) -> None:
        """Add a command that the user ran as a user message and a reply with its output.

        It is deferred while the model's calls are open.
        """
        command = str(call.arguments.get("command", call.tool))
        reply = Message(f"{_MANUAL_PREFIX}{call.id}", (TextContent(_manual_transcript(command, result)),))
        self._deferred.append(_make_entry(seq, UserMessage((TextContent(f"!{command}"),))))
        self._deferred.append(_make_entry(seq, AssistantMessage(reply)))
        if not self._open:
            self._close()

    def _prune(self, upto_seq: int, chars: int) -> None:
        entries: list[HistoryEntry] = []
        for entry in self.entries:
            message = entry.message
            if isinstance(message, ToolResultsMessage) and entry.seq < upto_seq:
                before = entries[-1].message
                calls = before.message.calls if isinstance(before, AssistantMessage) else ()
                protected = {call.id for call in calls if resolve_tool_name(call.tool, NEVER_PRUNED)}
                results = (
                    result if result.call_id in protected else prune_result(result, chars) for result in message.results
                )
                entry = _make_entry(entry.seq, ToolResultsMessage(tuple(results)))
            entries.append(entry)
        self._replace(entries)


def _manual_transcript(command: str, result: ToolResult) -> str:
    """Return the command, its exit code if it has one, and its output."""
    code = result.data.get("exit_code") if isinstance(result.data, dict) else None
    status = f"[exit {code}]"
    has_status = code is None or status in result.for_model
    return "\n".join([f"$ {command}", *([] if has_status else [status]), result.for_model])


def join_pieces(pieces: Sequence[Message]) -> Message:
    """Join the pieces of a reply into one message."""
    parts = tuple(part for piece in pieces for part in piece.parts)
    return msgspec.structs.replace(pieces[0], parts=parts, truncated=pieces[-1].truncated)


def with_repaired_calls(reply: Message, resolved: Mapping[str, ToolCall]) -> Message:
    """Return the reply with each call whose arguments were malformed replaced by the call that ran."""
    if not any(call.raw and not call.arguments and call.id in resolved for call in reply.calls):
        return reply
    parts = (
        CallPart(resolved.get(part.call.id, part.call))
        if isinstance(part, CallPart) and not part.call.arguments
        else part
        for part in reply.parts
    )
    return msgspec.structs.replace(reply, parts=tuple(parts))


def prune_result(result: ToolResult, chars: int) -> ToolResult:
    """Return a result truncated to its head and tail or replaced by a note, without images."""
    if len(result.for_model) <= max(chars, len(PRUNED_RESULT)) and not result.images:
        return result
    text = truncate_middle(result.for_model, chars).text if chars > len(PRUNED_RESULT) else PRUNED_RESULT
    return ToolResult(result.call_id, result.status, text)


def is_manual_result(message: RequestMessage) -> bool:
    """Return whether a message is the output of a command that the user ran."""
    return isinstance(message, AssistantMessage) and message.message.id.startswith(_MANUAL_PREFIX)


def _make_entry(seq: int, message: RequestMessage) -> HistoryEntry:
    return HistoryEntry(seq, message, message_size(message))
