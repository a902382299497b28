"""The entries of the transcript. Entries of stored events are decoded when they become visible."""

from collections.abc import Sequence
from typing import Literal

from textual.strip import Strip

from ostler.core.events import Event, MessageDone, Steered, TodosChanged, ToolCalled, ToolFinished
from ostler.core.session_view import Records
from ostler.rendering.live_message import LiveMessage
from ostler.rendering.screen_blocks import Fold, LinesBlock, text_sections
from ostler.rendering.text_sections import TextSection
from ostler.session.transcript import CallBlock, TextBlock, Transcript, TranscriptBlock
from ostler.text.sanitise import sanitise

EntryKind = Literal["prompt", "message", "call", "note"]
KINDS: dict[str, EntryKind] = {
    "turn_started": "prompt",
    "message_done": "message",
    "tool_called": "call",
    "todos_changed": "note",
    "notice": "note",
    "server_state_changed": "note",
    "turn_ended": "note",
    "steered": "prompt",
}
REPEAT_DISTANCE = 40  # a call may be recorded again, with more details, within so many records


class EntrySection:
    """A block, or a part of a long text. Its strips are made for one width and kept until it changes."""

    __slots__ = ("block", "columns", "strips", "text")

    def __init__(self, block: TranscriptBlock | None, text: TextSection | None = None) -> None:
        self.block = block
        self.text = text
        self.strips: list[Strip] | None = None
        self.columns = 0


class TranscriptEntry:
    """One or two blocks that belong to one record, in sections that are wrapped when they become visible."""

    __slots__ = ("blocks", "fold", "kind", "live", "live_restarts", "live_rows", "record", "sections")

    def __init__(self, kind: EntryKind, blocks: Sequence[TranscriptBlock] | None = None, record: int = -1) -> None:
        """`record` is the index of the record from which the blocks can be read again."""
        self.kind = kind
        self.blocks = blocks
        self.record = record
        self.live: LiveMessage | None = None
        self.live_rows = self.live_restarts = 0
        self.fold: Fold | None = None  # None: as all others
        self.sections: list[EntrySection] | None = None

    def drop_strips(self) -> None:
        self.sections = None

    def drop_blocks(self) -> None:
        """Forget everything that can be read again."""
        if self.record >= 0 and self.live is None and not is_running(self.blocks or ()):
            self.blocks = self.sections = None


def make_sections(blocks: Sequence[TranscriptBlock]) -> list[EntrySection]:
    """Return the sections of blocks; at least one."""
    sections: list[EntrySection] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            sections += [EntrySection(block, text) for text in text_sections(block)]
        else:
            sections.append(EntrySection(block))
    return sections or [EntrySection(None)]


def stored_entries(records: Records, end: int) -> list[TranscriptEntry]:
    """Return the entries of the records before index `end`, without decoding any."""
    return [
        TranscriptEntry(KINDS[records.type_at(index)], record=index)
        for index in records.indexes_of(KINDS.keys())
        if index < end
    ]


def read_blocks(records: Records, index: int) -> list[TranscriptBlock]:
    """Return the blocks of a record. A call has its result; one that was recorded again later has no blocks."""
    event: Event = records[index].event
    if isinstance(event, Steered):
        return [steered_block(event)]
    if isinstance(event, TodosChanged) and _is_during_call(records, index):
        return []  # the result of the call shows the list
    transcript = Transcript()
    transcript.apply(event)
    if isinstance(event, ToolCalled):
        if _is_repeated(records, index, event.call.id):
            return []
        if result := records.result(event.call.id):
            transcript.apply(ToolFinished(result))
    elif isinstance(event, MessageDone) and not event.message.text:
        return [block for block in transcript.blocks if getattr(block, "text", "")]
    return transcript.blocks


def steered_block(event: Steered) -> LinesBlock:
    """Return the block for text that was sent to the running turn."""
    lines = tuple(f"  ↳ {sanitise(line)}" for line in event.prompt.text.strip().split("\n"))
    return LinesBlock(f"{event.prompt.id}/steered", True, lines, ("bold",))


def _is_repeated(records: Records, index: int, call_id: str) -> bool:
    for later in range(index + 1, min(index + REPEAT_DISTANCE, len(records))):
        if records.type_at(later) == "tool_called":
            event = records[later].event
            if isinstance(event, ToolCalled) and event.call.id == call_id:
                return True
    return False


def _is_during_call(records: Records, index: int) -> bool:
    """Return whether a call had started and not finished just before a record."""
    for earlier in range(index - 1, max(index - REPEAT_DISTANCE, -1), -1):
        if records.type_at(earlier) in ("tool_started", "tool_finished"):
            return records.type_at(earlier) == "tool_started"
    return False


def is_running(blocks: Sequence[TranscriptBlock]) -> bool:
    """Return whether a call of these blocks has no result yet."""
    return any(isinstance(block, CallBlock) and not block.final for block in blocks)
