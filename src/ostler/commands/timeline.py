"""What a person can go back to: the prompts and commands that count now, and what was taken back last."""

import msgspec

from ostler.vocabulary.events import Envelope, Reverted, ToolCalled, TurnEnded, TurnStarted


class Said(msgspec.Struct, frozen=True):
    """A prompt, or a command by hand: the number of the record before it, the id its checkpoint has, its words."""

    before: int
    id: str
    text: str


class Gone(msgspec.Struct, frozen=True):
    """What a revert took back, and the number of the last record before it."""

    head: int
    said: tuple[Said, ...]


class Timeline:
    """Hears every kept event in order, also those of a session that is resumed."""

    def __init__(self) -> None:
        self.said: list[Said] = []
        self.gone: list[Gone] = []
        self._in_turn = False
        self._calls: set[str] = set()
        self._last = 0

    def hear(self, envelope: Envelope) -> None:
        match envelope.event:
            case TurnStarted(turn_id, prompt):
                self._in_turn = True
                self._add(Said(self._last, turn_id, prompt.text))
            case TurnEnded():
                self._in_turn = False
            case ToolCalled(call) if call.origin == "person" and not self._in_turn and call.id not in self._calls:
                self._calls.add(call.id)
                self._add(Said(self._last, call.id, f"!{call.arguments.get('command', call.tool)}"))
            case Reverted(to_seq):
                self._revert(to_seq)
            case _:
                pass
        self._last = envelope.seq

    def _add(self, said: Said) -> None:
        self.said.append(said)
        self.gone.clear()

    def _revert(self, to_seq: int) -> None:
        """A person's can be taken back; one within a turn is the house's, for a prompt that was never sent."""
        if self.gone and self.gone[-1].head == to_seq:
            self.said += self.gone.pop().said
            return
        kept = [one for one in self.said if one.before < to_seq]
        if not self._in_turn:
            self.gone.append(Gone(self._last, tuple(self.said[len(kept) :])))
        self.said = kept
