"""Adapts the command completion to prompt_toolkit; never blocks a key press."""

from collections.abc import AsyncGenerator, Iterable
from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

if TYPE_CHECKING:
    from ostler.interaction.completion import CompletionSource


class PromptCompleter(Completer):
    """Completes the word before the cursor, while typing and on Tab."""

    def __init__(self) -> None:
        self.source: CompletionSource | None = None
        self._requested_text: str | None = None

    def select_next(self, buffer: Buffer) -> None:
        """Select the next candidate; if the search is still running, select the first one when it is found."""
        if buffer.complete_state and buffer.complete_state.completions:
            buffer.complete_next()
            return
        self._requested_text = buffer.document.text_before_cursor
        buffer.start_completion()  # does nothing if a search is already running, whose result is then used

    def on_completions_changed(self, buffer: Buffer) -> None:
        """Select the first candidate if Tab was pressed and the text has not changed since."""
        if buffer.document.text_before_cursor != self._requested_text:
            return
        if buffer.complete_state and buffer.complete_state.completions:
            self._requested_text = None
            buffer.complete_next()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Not used: only the asynchronous variant never blocks a key press."""
        return ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        if self.source is None:
            return
        before, requested = document.text_before_cursor, complete_event.completion_requested
        candidates = await self.source.completions(before, explicit=requested)
        if not candidates and not requested and self._requested_text == before:
            candidates = await self.source.completions(before, explicit=True)
        for candidate in candidates:
            yield Completion(
                candidate.text,
                -candidate.replace_length,
                display=candidate.label,
                display_meta=candidate.description,
            )
