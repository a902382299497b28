"""Our candidates as the editor's completion: while typing and on Tab, never waited for by a key."""

from collections.abc import AsyncGenerator, Iterable
from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

if TYPE_CHECKING:
    from ostler.commands.completion import CompletionSource


class PromptCompleter(Completer):
    """What the word before the cursor may be going to mean."""

    def __init__(self) -> None:
        self.source: CompletionSource | None = None
        self._requested_text: str | None = None

    def select_next(self, buffer: Buffer) -> None:
        """The next candidate; one that is still being looked for is taken when it comes."""
        if buffer.complete_state and buffer.complete_state.completions:
            buffer.complete_next()
            return
        self._requested_text = buffer.document.text_before_cursor
        buffer.start_completion()  # does nothing while a search runs: then that one serves the wish

    def on_completions_changed(self, buffer: Buffer) -> None:
        """Candidates, perhaps for a wish; a line that went on since then has none."""
        if buffer.document.text_before_cursor != self._requested_text:
            return
        if buffer.complete_state and buffer.complete_state.completions:
            self._requested_text = None
            buffer.complete_next()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Only the other way is used: this one would make the keys wait."""
        return ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        if self.source is None:
            return
        before, asked = document.text_before_cursor, complete_event.completion_requested
        found = await self.source.completions(before, explicit=asked)
        if not found and not asked and self._requested_text == before:
            found = await self.source.completions(before, explicit=True)
        for one in found:
            yield Completion(one.text, -one.replace_length, display=one.label, display_meta=one.description)
