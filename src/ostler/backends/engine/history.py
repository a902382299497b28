"""What the model is sent: a fold over the kept events, always a valid request."""

from collections.abc import Iterable, Sequence

import msgspec

from ostler.backends.engine.measure import size_of
from ostler.models.words import ModelSaid, Said, SystemSaid, ToolsSaid, UserSaid
from ostler.text.cut import cut_middle
from ostler.vocabulary.events import (
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
from ostler.vocabulary.message import Message
from ostler.vocabulary.prompt import Prompt, Text
from ostler.vocabulary.seams import Past
from ostler.vocabulary.tool_names import find_name
from ostler.vocabulary.tools import ToolCall, ToolResult

NOT_RUN = "Not run."
LEFT_OUT = "[This old result was left out to save space. Call the tool again if you need it.]"
NEVER_PRUNED = frozenset(["skill"])
# The kinds of records that the fold looks at; no other is decoded.
TELLING = frozenset(
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
_BY_HAND = "by-hand-"


class Entry(msgspec.Struct, frozen=True):
    """One thing said, the number of the record it comes from, and its size in bytes."""

    seq: int
    said: Said
    size: int


class History:
    """Follows a session's records and folds only those that are new; a revert makes it begin anew."""

    def __init__(self) -> None:
        self._fold = _Fold()
        self._taken = 0
        self._last = 0
        self._undone: frozenset[int] = frozenset()

    def follow(self, records: Past) -> "History":
        """Take in what is new."""
        if self._taken > len(records) or (self._taken and records[self._taken - 1].seq != self._last):
            self._fold, self._taken = _Fold(), 0
        if self._taken == len(records):
            return self
        kinds = list(map(records.kind, range(self._taken, len(records))))
        if "compacted" in kinds and (undone := undone_summaries(records)) != self._undone:
            self._fold, self._taken, self._undone = _Fold(), 0, undone
            kinds = list(map(records.kind, range(len(records))))
        for index in range(self._begin(records, kinds), len(records)):
            if kinds[index - self._taken] in TELLING:
                envelope = records[index]
                if envelope.seq not in self._undone:
                    self._fold.take(envelope.event, envelope.seq)
        self._taken = len(records)
        self._last = records[self._taken - 1].seq
        return self

    def _begin(self, records: Past, kinds: list[str]) -> int:
        """Of a past that is new, what its last summary stands for need not be looked at."""
        if self._taken:
            return self._taken
        for place in (at for at in reversed(range(len(kinds))) if kinds[at] == "compacted"):
            summary = records[place]
            if summary.seq not in self._undone and isinstance(summary.event, Compacted):
                return min(place, records.after(summary.event.upto_seq - 1))
        return 0

    @property
    def entries(self) -> list[Entry]:
        return [*self._fold.entries, *self._fold.ending()]

    @property
    def said(self) -> tuple[Said, ...]:
        return tuple(entry.said for entry in self.entries)

    @property
    def size(self) -> int:
        return self._fold.size + sum(entry.size for entry in self._fold.ending())


def history(events: Iterable[Event]) -> tuple[Said, ...]:
    """Prompts, messages and results in the order a model expects: every call has its result right after it."""
    fold = _Fold()
    for seq, event in enumerate(events, 1):
        fold.take(event, seq)
    return tuple(entry.said for entry in (*fold.entries, *fold.ending()))


def undone_summaries(records: Past) -> frozenset[int]:
    """The numbers of the summaries that were taken back, and of what took them back."""
    standing: list[int] = []
    undone: set[int] = set()
    for envelope in (records[at] for at in records.of(("compacted",))):
        if isinstance(envelope.event, Compacted) and envelope.event.summary:
            standing.append(envelope.seq)
        else:
            undone |= {envelope.seq, *standing[-1:]}
            standing = standing[:-1]
    return frozenset(undone)


def prefix(records: Past) -> PrefixBuilt | None:
    """What the session's requests begin with, if one was sent already."""
    event = newest(records, "prefix_built")
    return event if isinstance(event, PrefixBuilt) else None


def newest(records: Past, kind: str) -> Event | None:
    """The last event of a kind; none of another kind is decoded."""
    place = next((at for at in reversed(range(len(records))) if records.kind(at) == kind), None)
    return None if place is None else records[place].event


class _Fold:
    """Holds a reply with calls open until something else is said: more of it and their results may still come.

    To the model it is one message, in however many pieces it was kept, and the results follow the whole.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.size = 0
        self._open: list[Message] = []
        self._open_seq = 0
        self._results: dict[str, ToolResult] = {}
        self._later: list[Entry] = []
        self._by_hand: dict[str, tuple[int, ToolCall]] = {}
        self._steered: dict[str, tuple[int, Prompt]] = {}

    def take(self, event: Event, seq: int) -> None:
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
                    self._say(seq, ModelSaid(message))
            case ToolFinished(result):
                if result.call_id in self._by_hand:
                    self._tell(*self._by_hand.pop(result.call_id), result)
                else:
                    self._results[result.call_id] = result
            case ToolCalled(call):
                if call.origin == "person":
                    self._by_hand[call.id] = (seq, call)
            case TurnStarted(_, prompt):
                self._say(seq, UserSaid(prompt.blocks))
            case _:
                self._take_rest(event, seq)

    def ending(self) -> list[Entry]:
        """What follows the entries if nothing more comes: an open reply, its results, and what waits for them."""
        if not self._open:
            return self._later
        reply = joined(self._open)
        results = (self._results.get(call.id) or ToolResult(call.id, "cancelled", NOT_RUN) for call in reply.calls)
        said = (ModelSaid(reply), ToolsSaid(tuple(results)))
        return [*(_entry(self._open_seq, one) for one in said), *self._later]

    def _take_rest(self, event: Event, seq: int) -> None:
        match event:
            case Steered(prompt):
                self._steered[prompt.id] = (seq, prompt)
            case Delivered(prompt_id) if prompt_id in self._steered:
                steered_seq, prompt = self._steered.pop(prompt_id)
                self._say(steered_seq, UserSaid(prompt.blocks))
            case Reminded(text):
                self._later.append(_entry(seq, SystemSaid(text)))
                if not self._open:
                    self._close()
            case Pruned(upto_seq, chars):
                self._close()
                self._prune(upto_seq, chars)
            case Compacted(summary, upto_seq) if summary:
                self._close()
                told = _entry(_SUMMARY_SEQ, UserSaid((Text(summary),)))
                self._replace([told, *(entry for entry in self.entries if entry.seq >= upto_seq)])
            case _:
                pass

    def _say(self, seq: int, said: Said) -> None:
        self._close()
        size = size_of(said)
        self.entries.append(Entry(seq, said, size))
        self.size += size

    def _close(self) -> None:
        if self._open or self._later:
            ending = self.ending()
            self.entries += ending
            self.size += sum(entry.size for entry in ending)
        self._open, self._results, self._later = [], {}, []

    def _replace(self, entries: list[Entry]) -> None:
        self.entries = entries
        self.size = sum(entry.size for entry in entries)

    def _tell(self, seq: int, call: ToolCall, result: ToolResult) -> None:
        """A person's own command enters the conversation as what they typed and what came of it.

        While the model's calls are open it waits for their results.
        """
        self._later.append(_entry(seq, UserSaid((Text(f"!{call.arguments.get('command', call.tool)}"),))))
        self._later.append(_entry(seq, ModelSaid(Message(f"{_BY_HAND}{call.id}", (Text(result.for_model),)))))
        if not self._open:
            self._close()

    def _prune(self, upto_seq: int, chars: int) -> None:
        kept: list[Entry] = []
        for entry in self.entries:
            said = entry.said
            if isinstance(said, ToolsSaid) and entry.seq < upto_seq:
                before = kept[-1].said
                calls = before.message.calls if isinstance(before, ModelSaid) else ()
                spared = {call.id for call in calls if find_name(call.tool, NEVER_PRUNED)}
                results = (one if one.call_id in spared else pruned(one, chars) for one in said.results)
                entry = _entry(entry.seq, ToolsSaid(tuple(results)))
            kept.append(entry)
        self._replace(kept)


def joined(pieces: Sequence[Message]) -> Message:
    """A reply that was kept in pieces."""
    parts = tuple(part for piece in pieces for part in piece.parts)
    return msgspec.structs.replace(pieces[0], parts=parts, cut=pieces[-1].cut)


def pruned(result: ToolResult, chars: int) -> ToolResult:
    """A result cut down to its head and tail, or to a word that it was left out; pictures go too."""
    if len(result.for_model) <= max(chars, len(LEFT_OUT)) and not result.images:
        return result
    text = cut_middle(result.for_model, chars).text if chars > len(LEFT_OUT) else LEFT_OUT
    return ToolResult(result.call_id, result.status, text)


def by_hand(said: Said) -> bool:
    """Whether it is what came of a person's own command, and no words of the model."""
    return isinstance(said, ModelSaid) and said.message.id.startswith(_BY_HAND)


def _entry(seq: int, said: Said) -> Entry:
    return Entry(seq, said, size_of(said))
