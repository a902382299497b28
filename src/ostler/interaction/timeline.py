"""Tracks the prompts and manual commands that can be reverted, and those that were reverted last."""

import msgspec

from ostler.core.events import Envelope, Reverted, ToolCalled, TurnEnded, TurnStarted


class TimelineEntry(msgspec.Struct, frozen=True):
    """A prompt or a manual command.

    `seq_before` is the number of the record before it, `id` the id of its checkpoint.
    """

    seq_before: int
    id: str
    text: str


class RevertedEntries(msgspec.Struct, frozen=True):
    """The entries that a revert removed. `head_seq` is the number of the last record before the revert."""

    head_seq: int
    entries: tuple[TimelineEntry, ...]


class Timeline:
    """Tracks the entries of one session. It must receive every persisted event in order, also after a resume."""

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
        """Apply a revert.

        A revert by the user can be redone. One inside a turn is internal (its prompt was never sent) and cannot.
        """
        if self.reverted and self.reverted[-1].head_seq == to_seq:
            self.entries += self.reverted.pop().entries
            return
        remaining = [entry for entry in self.entries if entry.seq_before < to_seq]
        if not self._in_turn:
            self.reverted.append(RevertedEntries(self._last_seq, tuple(self.entries[len(remaining) :])))
        self.entries = remaining
