"""Notes that a backend with its own history has not received: commands, reminders, reverted prompts, instructions."""

from collections.abc import Iterator

from ostler.core.events import Event, Reminded, Reverted, ToolCalled, ToolFinished, TurnEnded, TurnStarted
from ostler.core.session_view import Records
from ostler.core.tools import ToolCall

MAX_QUOTED = 200  # characters of a reverted prompt
NO_INSTRUCTIONS = "Instructions for earlier agents no longer apply."


class UnsentNotes:
    """Collects notes from the records of a session; each is returned once, or again if the turn it was for failed."""

    def __init__(self, records: Records, active_records: Records) -> None:
        """`records` are all records, `active_records` those that are not reverted."""
        self._records = records
        self._active_records = active_records
        self._seen_seq = self._delivered_seq = _end_of_last_delivered(records)
        self._known_reverts = 0
        self._user_calls: dict[str, ToolCall] = {}
        self._instructions = self._delivered_instructions = ""

    def take(self, instructions: str, *, is_new_history: bool) -> tuple[str, ...]:
        """Return the notes since the last call. `instructions` are those of the active agent."""
        self._note_delivery()
        if is_new_history:
            self._instructions = ""
        notes = (*self._instruction_note(instructions), *self._revert_note(), *self._event_notes())
        if len(self._records):
            self._seen_seq = self._records[len(self._records) - 1].seq
        return notes

    def skip_reverts(self) -> None:
        """Note that the backend has reverted its own history to the same point, with the notes of reverted prompts."""
        self._known_reverts = self._records[len(self._records) - 1].seq
        end = _end_of_last_delivered(self._active_records)
        self._seen_seq, self._delivered_seq = min(self._seen_seq, end), min(self._delivered_seq, end)

    def _note_delivery(self) -> None:
        """Take the notes of the last call again if their turn failed: the backend may not have received them."""
        new = range(self._records.index_after(self._seen_seq), len(self._records))
        ended = next(
            (self._records[index].event for index in new if self._records.type_at(index) == "turn_ended"), None
        )
        if isinstance(ended, TurnEnded) and ended.reason == "failed":
            self._seen_seq, self._instructions = self._delivered_seq, self._delivered_instructions
        elif ended is not None:
            self._delivered_seq, self._delivered_instructions = self._seen_seq, self._instructions

    def _instruction_note(self, instructions: str) -> Iterator[str]:
        if instructions != self._instructions:
            self._instructions = instructions
            yield instructions or NO_INSTRUCTIONS

    def _revert_note(self) -> Iterator[str]:
        """Yield a note that quotes the prompts which were reverted since the last call and not restored."""
        new = range(self._records.index_after(max(self._seen_seq, self._known_reverts)), len(self._records))
        reverts = [self._records[index] for index in new if self._records.type_at(index) == "reverted"]
        if not reverts:
            return
        active = {self._active_records[index].seq for index in self._active_records.indexes_of(("turn_started",))}
        turns = (self._records[index] for index in self._finished_turns())
        prompts = [
            turn.event.prompt.text[:MAX_QUOTED]
            for turn in turns
            if isinstance(turn.event, TurnStarted)
            and turn.seq not in active
            and any(isinstance(r.event, Reverted) and r.event.to_seq < turn.seq < r.seq for r in reverts)
        ]
        if prompts:
            quoted = "\n".join(f"- {text!r}" for text in prompts)
            yield f"The user reverted these earlier prompts and everything that followed them; ignore it:\n{quoted}"

    def _finished_turns(self) -> Iterator[int]:
        """Yield the indexes of the turns that the backend got; others were reverted before they ended."""
        start = None
        for index in self._records.indexes_of(("turn_started", "turn_ended", "reverted")):
            event_type = self._records.type_at(index)
            if event_type == "turn_ended" and start is not None:
                yield start
            start = index if event_type == "turn_started" else None

    def _event_notes(self) -> Iterator[str]:
        """Yield the reminders and the results of commands that the user ran, in order."""
        active = self._active_records
        for index in range(active.index_after(self._seen_seq), len(active)):
            if active.type_at(index) in ("tool_called", "tool_finished", "reminded"):
                yield from self._event_note(active[index].event)

    def _event_note(self, event: Event) -> Iterator[str]:
        match event:
            case ToolCalled(call) if call.origin == "person":
                self._user_calls[call.id] = call
            case ToolFinished(result) if result.call_id in self._user_calls:
                yield f"The user ran {_describe(self._user_calls[result.call_id])}:\n{result.for_model}"
            case Reminded(text):
                from ostler.journal.call_journal import ELSEWHERE  # imported late: the engine takes no notes

                if text != ELSEWHERE:
                    yield text
            case _:
                pass


def _end_of_last_delivered(records: Records) -> int:
    """Return the number of the last record that ends a turn which did not fail, or 0."""
    for index in reversed(list(records.indexes_of(("turn_ended",)))):
        event = records[index].event
        if isinstance(event, TurnEnded) and event.reason != "failed":
            return records[index].seq
    return 0


def _describe(call: ToolCall) -> str:
    command = call.arguments.get("command")
    return f"the command `{command}`" if isinstance(command, str) else f"the tool {call.tool}"
