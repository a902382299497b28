"""Writes the text of replies as it arrives."""

from collections.abc import Callable

from ostler.core.events import Event, MessageDone, MessageSnapshot, TextDelta, TurnEnded
from ostler.rendering.markdown_stream import MarkdownStream
from ostler.rendering.reply_text import NewText, ReplyText
from ostler.text.sanitise import Sanitiser

RESTARTED = "[the reply starts again]"


class ReplyWriter:
    """Writes one reply. Nothing is written twice, unless the reply starts again with different words."""

    def __init__(
        self, write: Callable[[str], object], make_stream: Callable[[], MarkdownStream], restart_note: str = ""
    ) -> None:
        """`restart_note` is written on a line of its own before a reply that starts again."""
        self.has_text = False
        self._write = write
        self._make_stream = make_stream
        self._restart_note = restart_note
        self._text = ReplyText()
        self._sanitiser = Sanitiser()
        self._stream = make_stream()

    @property
    def is_mid_row(self) -> bool:
        return self._stream.is_mid_row

    def on_event(self, event: TextDelta | MessageSnapshot | MessageDone) -> None:
        match event:
            case TextDelta(_, text):
                self._show(self._text.add(text))
            case MessageSnapshot(_, text):
                self._show(self._text.set(text))
            case MessageDone(message):
                self._show(self._text.finish(message.text))
                self.end()

    def end(self) -> None:
        """Write the rest of the text and a newline."""
        self._put(self._stream.feed(self._sanitiser.flush()) + self._stream.finish())

    def break_row(self) -> None:
        """End the current row, because other lines follow."""
        self._put(self._stream.break_row())

    def _show(self, new: NewText) -> None:
        if new.replaces and self.has_text:
            self.end()
            self._put(self._restart_note)
            self._sanitiser, self._stream = Sanitiser(), self._make_stream()
        self._put(self._stream.feed(self._sanitiser.feed(new.text)))

    def _put(self, text: str) -> None:
        if text:
            self.has_text = True
            self._write(text)


class OpenReplies:
    """The replies that are being received, by message id. Usually there is one."""

    def __init__(self, make_writer: Callable[[], ReplyWriter]) -> None:
        self._make_writer = make_writer
        self._writers: dict[str, ReplyWriter] = {}
        self._current: ReplyWriter | None = None

    def on_event(self, event: Event) -> ReplyWriter | None:
        """Write the text of an event. Return the writer if the reply is now complete."""
        match event:
            case TextDelta(message_id) | MessageSnapshot(message_id):
                self._writer(message_id).on_event(event)
            case MessageDone(message) if message.text or self.is_open(message.id):
                writer = self._writer(message.id)
                writer.on_event(event)
                del self._writers[message.id]
                self._current = None
                return writer
            case TurnEnded():
                self.end()
            case _:
                pass
        return None

    @property
    def is_mid_row(self) -> bool:
        return self._current is not None and self._current.is_mid_row

    def is_open(self, message_id: str) -> bool:
        return message_id in self._writers

    def break_row(self) -> None:
        """End the current row, because other lines follow."""
        if self._current:
            self._current.break_row()

    def end(self) -> None:
        """End the replies that were interrupted."""
        for writer in self._writers.values():
            writer.end()
        self._writers.clear()
        self._current = None

    def _writer(self, message_id: str) -> ReplyWriter:
        writer = self._writers.get(message_id) or self._make_writer()
        if writer is not self._current:
            self.break_row()
        self._writers[message_id] = self._current = writer
        return writer
