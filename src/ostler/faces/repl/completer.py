"""Our candidates as the editor's completion: while typing and on Tab, never waited for by a key."""

from collections.abc import AsyncGenerator, Iterable
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

if TYPE_CHECKING:
    from ostler.commands.complete import Completing


class Candidates(Completer):
    """What the word before the cursor may be going to mean."""

    def __init__(self) -> None:
        self.completing: Completing | None = None

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Only the other way is used: this one would make the keys wait."""
        return ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        if self.completing is None:
            return
        found = await self.completing.candidates(document.text_before_cursor, asked=complete_event.completion_requested)
        for one in found:
            yield Completion(one.text, -one.replaces, display=one.shown, display_meta=one.told)
