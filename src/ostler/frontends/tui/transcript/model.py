"""The entries of one session in order, from its records and from new events, and the strips of each."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

from textual.strip import Strip

from ostler.core.events import (
    Envelope,
    Event,
    MessageDone,
    MessageSnapshot,
    PartialReply,
    Reverted,
    Steered,
    TextDelta,
    ThoughtDelta,
    ToolCalled,
    TurnEnded,
    TurnStarted,
)
from ostler.core.session_view import Records
from ostler.frontends.tui.strips import StripMaker
from ostler.frontends.tui.transcript.entries import (
    EntryKind,
    EntrySection,
    TranscriptEntry,
    make_sections,
    read_blocks,
    steered_block,
    stored_entries,
)
from ostler.rendering.live_message import LiveMessage
from ostler.rendering.screen_blocks import Fold, next_fold, render_screen_block, render_section
from ostler.rendering.style import Styler
from ostler.session.transcript import CallBlock, PromptBlock, TextBlock, TodosBlock, Transcript, TranscriptBlock
from ostler.text.sanitise import sanitise
from ostler.text.width import clip

LIVE_BLOCK = TextBlock("live")
MAX_DECODED = 600  # entries whose blocks stay in memory, if they can be read again


class TranscriptModel:
    """What the transcript shows. `on_change` is called after every change."""

    def __init__(self, maker: StripMaker, on_change: Callable[[], None] = lambda: None) -> None:
        self.entries: list[TranscriptEntry] = []
        self.paint = Styler(True, "screen", lambda: self.columns)
        self.columns = 80
        self.details = False  # whether calls are shown in full
        self.running_call: CallBlock | None = None
        self._maker = maker
        self._prompt_maker = maker.tinted("prompt")
        self._on_change = on_change
        self._records: Records | None = None
        self._transcript = Transcript()
        self._open: dict[str, TranscriptEntry] = {}  # entries that may still change, by message or call id
        self._calls: dict[str, TranscriptEntry] = {}  # the calls of this turn
        self._behind: set[TranscriptEntry] = set()  # messages with text that waits to be shown
        self._decoded: OrderedDict[TranscriptEntry, None] = OrderedDict()

    # -- content -------------------------------------------------------------------------------------------------

    def load(self, records: Records, end: int) -> None:
        """Show the records before index `end`."""
        self._records = records
        self.entries = stored_entries(records, end)
        self._reset_open()

    def apply(self, envelope: Envelope) -> None:
        """Show a new event."""
        event = envelope.event
        match event:
            case TextDelta(message_id, text):
                self._live(message_id).add(text)
            case ThoughtDelta(message_id, text):
                self._live(message_id).add_thought(text)
            case MessageSnapshot(message_id, text, thought):
                self._live(message_id).set(text, thought)
            case PartialReply():
                return
            case MessageDone():
                self._finish_message(event, envelope.seq)
            case Steered():
                self.add(steered_block(event))
            case Reverted() if self._records is not None:
                self.load(self._records, self._records.index_after(envelope.seq))  # later events are yet to be applied
            case _:
                if not self._apply_to_blocks(event, envelope.seq):
                    return
        self._on_change()

    def add(self, block: TranscriptBlock) -> None:
        """Add a block of the frontend itself."""
        self.entries.append(TranscriptEntry("note", [block]))
        self._on_change()

    def add_prompt(self, text: str) -> None:
        """Add a command that the user typed."""
        self.entries.append(TranscriptEntry("prompt", [PromptBlock("typed", True, text)]))
        self._on_change()

    def advance(self) -> bool:
        """Show the next part of the text that waits. Return whether more waits."""
        for entry in tuple(self._behind):
            if entry.live is None or not entry.live.advance() or not entry.live.is_behind:
                self._behind.discard(entry)
        return bool(self._behind)

    @property
    def activity(self) -> str:
        """The last line of the reasoning that is being received, or an empty string."""
        for entry in self._open.values():
            if entry.live and not entry.live.text and entry.live.last_thought_line:
                return sanitise(entry.live.last_thought_line)
        return ""

    def _reset_open(self) -> None:
        self._transcript = Transcript()
        self._open.clear()
        self._calls.clear()
        self._behind.clear()
        self._decoded.clear()
        self.running_call = None

    def _live(self, message_id: str) -> LiveMessage:
        entry = self._open.get(message_id)
        if entry is None:
            entry = self._open[message_id] = TranscriptEntry("message", [])
            self.entries.append(entry)
        if entry.live is None:
            entry.live = LiveMessage(self.paint)
        self._behind.add(entry)
        return entry.live

    def _finish_message(self, event: MessageDone, seq: int) -> None:
        entry = self._open.pop(event.message.id, None)
        if entry is None:
            entry = TranscriptEntry("message", [])
            self.entries.append(entry)
        transcript = Transcript()
        transcript.apply(event)
        entry.blocks = [block for block in transcript.blocks if getattr(block, "text", "")]
        entry.live = None
        entry.record = self._record_index(seq)
        entry.drop_strips()
        self._behind.discard(entry)

    def _record_index(self, seq: int) -> int:
        """Return the index of a new record, or -1 if there are no records to read it from."""
        return self._records.index_after(seq - 1) if self._records is not None else -1

    def _apply_to_blocks(self, event: Event, seq: int) -> bool:
        """Add or change a block. Return whether something changed."""
        if isinstance(event, TurnEnded):
            self._end_turn()
        block = self._transcript.apply(event)
        if block is None or (isinstance(block, TodosBlock) and self.running_call):
            return False  # the result of the call shows the list
        if isinstance(block, CallBlock) and block.call is None:
            return False  # the end of a call of an earlier process; its entry reads the result from the records
        entry = self._calls.get(block.id)
        if entry is None:
            kind: EntryKind = "call" if isinstance(block, CallBlock) else "note"
            kind = "prompt" if isinstance(block, PromptBlock) else kind
            entry = TranscriptEntry(kind, [block])
            self.entries.append(entry)
        if isinstance(event, TurnStarted | ToolCalled):
            entry.record = self._record_index(seq)
        entry.drop_strips()
        if isinstance(block, CallBlock):
            self._calls[block.id] = entry
            self._note_call(block, entry, event)
        return True

    def _note_call(self, block: CallBlock, entry: TranscriptEntry, event: Event) -> None:
        if block.final:
            self._open.pop(block.id, None)
            self.running_call = None if self.running_call is block else self.running_call
        else:
            self._open[block.id] = entry
            self.running_call = self.running_call if isinstance(event, ToolCalled) and self.running_call else block

    def _end_turn(self) -> None:
        """Keep the text of messages that were interrupted."""
        for message_id, entry in self._open.items():
            if entry.live:
                entry.blocks = [TextBlock(message_id, True, "plan", entry.live.text, truncated=True)]
                entry.drop_strips()
        interrupted = [key for key, entry in self._open.items() if entry.live]
        for key in interrupted:
            self._open.pop(key).live = None
        self._behind.clear()
        if not self._open:
            self._transcript = Transcript()
            self._calls.clear()
        self.running_call = None

    # -- strips --------------------------------------------------------------------------------------------------

    def set_maker(self, maker: StripMaker) -> None:
        """Use the colours of another theme."""
        self._maker, self._prompt_maker = maker, maker.tinted("prompt")
        self.drop_strips()

    def drop_strips(self) -> None:
        for entry in self.entries:
            entry.drop_strips()
        self._on_change()

    def set_details(self, full: bool) -> None:
        """Show all calls in full, or shortened again."""
        self.details = full
        for entry in self.entries:
            entry.fold = None
        self.drop_strips()

    def toggle_fold(self, index: int) -> None:
        """Show the next form of an entry: everything, only the heading, the short form."""
        entry = self.entries[index]
        entry.fold = next_fold(self.blocks(index), self._fold_of(entry))
        entry.drop_strips()
        self._on_change()

    def unfold(self, index: int) -> None:
        """Show an entry in full."""
        self.entries[index].fold = "full"
        self.entries[index].drop_strips()
        self._on_change()

    def blocks(self, index: int) -> Sequence[TranscriptBlock]:
        """Return the blocks of an entry, read from its record if necessary."""
        entry = self.entries[index]
        if entry.blocks is None:
            entry.blocks = read_blocks(self._records, entry.record) if self._records is not None else []
        if entry.record >= 0:
            self._decoded[entry] = None
            self._decoded.move_to_end(entry)
            while len(self._decoded) > MAX_DECODED:
                oldest, _ = self._decoded.popitem(last=False)
                oldest.drop_blocks()
        return entry.blocks

    def section_count(self, index: int) -> int:
        """Return into how many sections an entry is divided; at least one. None is wrapped for this."""
        return len(self._sections(index))

    def first_text_section(self, index: int) -> int:
        """Return the number of the section with which the text of an entry starts."""
        if self.entries[index].live:
            return 0
        return next((number for number, section in enumerate(self._sections(index)) if section.text), 0)

    def strips(self, index: int, section: int) -> list[Strip]:
        """Return the strips of a section of an entry for the current width."""
        entry = self.entries[index]
        sections = self._sections(index)
        found = sections[section]
        if entry.live and found is sections[-1]:
            return self._live_strips(entry, entry.live, found, index)
        if found.strips is None or found.columns != self.columns:
            lines = self._section_lines(entry, found)
            gap = self._maker.make("", self.columns) if lines and self._has_gap(index, section) else []
            found.strips = [*gap, *(strip for line in lines for strip in self._make(entry, line))]
            found.columns = self.columns
        return found.strips

    def all_strips(self, index: int) -> Iterator[Strip]:
        """Yield the strips of a whole entry for the current width."""
        for section in range(self.section_count(index)):
            yield from self.strips(index, section)

    def has_rows(self, index: int) -> bool:
        return any(self.strips(index, section) for section in range(self.section_count(index)))

    def _sections(self, index: int) -> list[EntrySection]:
        entry = self.entries[index]
        if entry.live:
            return self._live_sections(entry, entry.live)
        if entry.sections is None:
            entry.sections = make_sections(self.blocks(index))
        return entry.sections

    def _live_sections(self, entry: TranscriptEntry, live: LiveMessage) -> list[EntrySection]:
        """Return the complete sections of a message that is being received, and the one that grows."""
        sections = entry.sections
        if sections is None or [section.text for section in sections[:-1]] != live.sections[: len(sections) - 1]:
            sections = entry.sections = [EntrySection(None)]  # the text may have been replaced
        for text in live.sections[len(sections) - 1 :]:
            sections.insert(-1, EntrySection(LIVE_BLOCK, text))
        return sections

    def _section_lines(self, entry: TranscriptEntry, section: EntrySection) -> list[str]:
        if section.block is None:
            return []
        if isinstance(section.block, TextBlock) and section.text:
            return render_section(section.block, section.text, self.paint)
        return render_screen_block(section.block, self.paint, self._fold_of(entry))

    def _make(self, entry: TranscriptEntry, line: str) -> list[Strip]:
        """Return the strips of a line; those of prompts have a background of their own."""
        if entry.kind != "prompt":
            return self._maker.make(line, self.columns)
        maker = self._prompt_maker
        return [strip.adjust_cell_length(self.columns, maker.base) for strip in maker.make(line, self.columns)]

    def all_lines(self, columns: int) -> Iterator[str]:
        """Yield the whole transcript as styled lines, for the terminal after the exit."""
        self.columns = columns
        for index in range(len(self.entries)):
            lines = self._lines(index)
            yield from ["", *lines] if lines and self._has_gap(index) else lines

    def _lines(self, index: int) -> list[str]:
        fold = self._fold_of(self.entries[index])
        return [line for block in self.blocks(index) for line in render_screen_block(block, self.paint, fold)]

    def _fold_of(self, entry: TranscriptEntry) -> Fold:
        return entry.fold or ("full" if self.details and entry.kind == "call" else "short")

    def _live_strips(self, entry: TranscriptEntry, live: LiveMessage, section: EntrySection, index: int) -> list[Strip]:
        """Return the strips of the section that is being received; only new rows are converted."""
        if section.columns != self.columns:
            section.columns = self.columns
            live.wrap_again()
        if section.strips is None or entry.live_restarts != live.restarts:
            has_gap = not live.sections and self._has_gap(index)
            section.strips = self._maker.make("", self.columns) if has_gap else []
            entry.live_rows, entry.live_restarts = 0, live.restarts
        final_rows = max(len(live.rows) - 1, 0)
        for row in live.rows[entry.live_rows : final_rows]:
            section.strips += self._maker.make(row, self.columns)
        entry.live_rows = final_rows
        last = live.rows[-1] if live.rows else ""
        if not live.rows and not live.sections and live.last_thought_line:
            thought = clip(f"✻ {sanitise(live.last_thought_line).strip()}", max(self.columns - 1, 8))
            last = self.paint(thought, "dim", "italic")
        return [*section.strips, *(self._maker.make(last, self.columns) if last else [])]

    def _has_gap(self, index: int, section: int = 0) -> bool:
        """Return whether an empty row comes before a section: not between calls, nor before the first entry."""
        entry = self.entries[index]
        if not all(self._is_empty_section(entry, before) for before in self._sections(index)[:section]):
            return False
        previous = index - 1
        while previous >= 0 and self._is_empty(previous):
            previous -= 1
        if previous < 0:
            return False
        before = self.entries[previous].kind
        return entry.kind in ("prompt", "message") or before not in (entry.kind, "prompt")

    def _is_empty(self, index: int) -> bool:
        entry = self.entries[index]
        return not entry.live and all(self._is_empty_section(entry, section) for section in self._sections(index))

    def _is_empty_section(self, entry: TranscriptEntry, section: EntrySection) -> bool:
        if section.text and section.text.text.strip():
            return False
        return not self._section_lines(entry, section)
