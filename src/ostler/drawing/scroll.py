"""A session as lines that are printed once and in order: what a face adds to its end as things happen."""

from typing import Literal

from ostler.drawing.calls import CallLines
from ostler.drawing.lines import block_lines, shortened
from ostler.drawing.paint import Paint
from ostler.drawing.stream import MessageLines
from ostler.session.transcript import Block, CallBlock, PromptBlock, TextBlock, ThoughtBlock, TodosBlock, Transcript
from ostler.text.cut import cut_middle
from ostler.text.sanitise import sanitise
from ostler.vocabulary.events import Event, MessageDone, MessageSoFar, TextDelta, TurnEnded
from ostler.vocabulary.message import Message

PROMPT_LINES = 60
PROMPT_COLUMNS = 2000


class Scroll:
    """Feed it events; it returns the lines that each one adds."""

    def __init__(self, paint: Paint, *, prompts: bool = True) -> None:
        """`prompts`: whether what the person said is to be printed, or stands there already."""
        self.prompts = prompts
        self._paint = paint
        self._transcript = Transcript()
        self._printed: set[str] = set()
        self._streams: dict[str, MessageLines] = {}
        self.calls = CallLines(paint)
        self._begun = False

    @property
    def partial(self) -> str:
        """The line that is being said now."""
        return next((stream.partial for stream in self._streams.values() if stream.partial), "")

    def take(self, event: Event) -> list[str]:
        """The lines to add."""
        match event:
            case TextDelta(message_id, text):
                return self._spaced(message_id, self._stream(message_id).feed(text))
            case MessageSoFar(message_id, text):
                return self._spaced(message_id, self._stream(message_id).catch_up(text))
            case MessageDone(message):
                self._transcript.take(event)
                return self._message(message)
            case TurnEnded():
                block = self._transcript.take(event)
                return [*self._cut_off(), *(block_lines(block, self._paint) if block else [])]
            case _:
                return self._block(self._transcript.take(event))

    def _block(self, block: Block | None) -> list[str]:
        match block:
            case None | TextBlock() | ThoughtBlock():
                return []
            case PromptBlock(text=text):
                return self._prompt(text)
            case CallBlock():
                return self._call(block)
            case TodosBlock() if self.calls.running:
                return []  # the call shows its own plan
            case _:
                return block_lines(block, self._paint)

    def _prompt(self, text: str) -> list[str]:
        return self.typed(text) if self.prompts else []

    def typed(self, text: str) -> list[str]:
        """What the person said, as the lines it is printed in."""
        lines = shortened(sanitise(text).split("\n"), PROMPT_LINES, Paint(on=False))
        first, *more = (cut_middle(line, PROMPT_COLUMNS).text for line in lines)
        gap = [""] if self._begun else []
        self._begun = True
        return [*gap, self._paint(f"> {first}", "bold"), *(self._paint(f"  {line}".rstrip(), "bold") for line in more)]

    def _stream(self, message_id: str) -> MessageLines:
        if message_id not in self._streams:
            self._streams[message_id] = MessageLines(self._paint)
        return self._streams[message_id]

    def _message(self, message: Message) -> list[str]:
        stream = self._stream(message.id)
        segment: Literal["plan", "answer"] = "plan" if message.has_more_to_do else "answer"
        lines = stream.done(message.text, segment, cut=message.cut) if message.text else []
        lines = self._spaced(message.id, lines)
        del self._streams[message.id]
        return lines

    def _spaced(self, message_id: str, lines: list[str]) -> list[str]:
        """An empty line before each message that is not the first thing."""
        if lines:
            self.calls.words()
        if not lines or message_id in self._printed:
            return lines
        self._printed.add(message_id)
        gap = [""] if self._begun else []
        self._begun = True
        return [*gap, *lines]

    def _cut_off(self) -> list[str]:
        """What was said of messages that never became whole."""
        lines: list[str] = []
        for message_id, stream in self._streams.items():
            if stream.said:
                lines += self._spaced(message_id, stream.done(stream.said, "plan", cut=True))
        self._streams.clear()
        return lines

    def _call(self, block: CallBlock) -> list[str]:
        lines = self.calls.take(block)
        self._begun = self._begun or bool(lines)
        return lines
