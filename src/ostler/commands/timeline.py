"""What a person can go back to: the prompts and commands that count now, and what was taken back last."""

import msgspec

from ostler.core.events import Envelope, Reverted, ToolCalled, TurnEnded, TurnStarted


class TimelineEntry(msgspec.Struct, frozen=True):
    """A prompt, or a command by hand: the number of the record before it, the id its checkpoint has, its words."""

    seq_before: int
    id: str
    text: str


class RevertedEntries(msgspec.Struct, frozen=True):
    """What a revert took back, and the number of the last record before it."""

    head_seq: int
    entries: tuple[TimelineEntry, ...]


class Timeline:
    """Hears every kept event in order, also those of a session that is resumed."""

    def __init__(self) -> None:
        self.entries: list[TimelineEntry] = []
        self.reverted: list[RevertedEntries] = []
        self._in_turn = False
        self._call_ids: set[str] = set()
        self._last_seq = 0

    def on_event(self, envelope: Envelope) -> None:
        match envelope.event:
            case TurnStarted(turn_id, prompt):
                self._in_turn = True
                self._add(TimelineEntry(self._last_seq, turn_id, prompt.text))
            case TurnEnded():
                self._in_turn = False
            case ToolCalled(call) if call.origin == "person" and not self._in_turn and call.id not in self._call_ids:
                self._call_ids.add(call.id)
                self._add(TimelineEntry(self._last_seq, call.id, f"!{call.arguments.get('command', call.tool)}"))
            case Reverted(to_seq):
                self._revert(to_seq)
            case _:
                pass
        self._last_seq = envelope.seq

    def _add(self, entry: TimelineEntry) -> None:
        self.entries.append(entry)
        self.reverted.clear()

    def _revert(self, to_seq: int) -> None:
        """A person's can be taken back; one within a turn is the house's, for a prompt that was never sent."""
        if self.reverted and self.reverted[-1].head_seq == to_seq:
            self.entries += self.reverted.pop().entries
            return
        kept = [one for one in self.entries if one.seq_before < to_seq]
        if not self._in_turn:
            self.reverted.append(RevertedEntries(self._last_seq, tuple(self.entries[len(kept) :])))
        self.entries = kept
