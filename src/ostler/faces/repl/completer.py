"""Our candidates as the editor's completion: while typing and on Tab, never waited for by a key."""

from collections.abc import AsyncGenerator, Iterable
from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

if TYPE_CHECKING:
    from ostler.commands.complete import Completing


class Candidates(Completer):
    """What the word before the cursor may be going to mean."""

    def __init__(self) -> None:
        self.completing: Completing | None = None
        self._wanted: str | None = None

    def take(self, buffer: Buffer) -> None:
        """The next candidate; one that is still being looked for is taken when it comes."""
        if buffer.complete_state and buffer.complete_state.completions:
            buffer.complete_next()
            return
        self._wanted = buffer.document.text_before_cursor
        buffer.start_completion()  # does nothing while a search runs: then that one serves the wish

    def came(self, buffer: Buffer) -> None:
        """Candidates, perhaps for a wish; a line that went on since then has none."""
        if buffer.document.text_before_cursor != self._wanted:
            return
        if buffer.complete_state and buffer.complete_state.completions:
            self._wanted = None
            buffer.complete_next()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Only the other way is used: this one would make the keys wait."""
        return ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        if self.completing is None:
            return
        before, asked = document.text_before_cursor, complete_event.completion_requested
        found = await self.completing.candidates(before, asked=asked)
        if not found and not asked and self._wanted == before:
            found = await self.completing.candidates(before, asked=True)
        for one in found:
            yield Completion(one.text, -one.replaces, display=one.shown, display_meta=one.told)
