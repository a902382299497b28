"""The field that searches the transcript."""

from collections.abc import Callable

from textual import events
from textual.message import Message
from textual.widgets import Input

from ostler.frontends.tui.transcript.search import find_entries, show_match
from ostler.frontends.tui.transcript.view import TranscriptView
from ostler.frontends.tui.widgets.line_field import LineField


class SearchField(LineField):
    """Shows the matches one after the other, the newest first."""

    class Closed(Message):
        """The user closed the search."""

    def __init__(self, view: TranscriptView, note: Callable[[str], None]) -> None:
        super().__init__(id="search", placeholder="search the transcript: Enter for the next older match, Esc closes")
        self._view = view
        self._note = note
        self._matches: list[int] = []
        self._shown = 0  # the number of the match that is shown

    def open(self) -> None:
        self.display = True
        self.screen.set_focus(self)  # at once: the next keys are for it

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        view = self._view
        if not event.value:
            return
        if event.value != view.query_text:
            view.query_text = event.value
            self._shown = 0
            self._matches = [index async for index in find_entries(view.model, event.value)]
        count = len(view.model.entries)
        self._matches = [index for index in self._matches if index < count]  # the others were reverted meanwhile
        if not self._matches:
            self._note("not found")
            return
        self._shown = self._shown % len(self._matches) + 1
        self._note(f"match {self._shown} of {len(self._matches)}, the newest first")
        index = self._matches[self._shown - 1]
        view.show_entry(index, show_match(view.model, index, event.value))

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.stop()
            event.prevent_default()
            self.display = False
            self._view.query_text = ""
            self._view.update_rows(force=True)
            self.post_message(self.Closed())
