"""One turn of a model that edits in the text: the files shown first, and the plugins that carry out its edits."""

from ostler.backends.engine.plugins.plugin import LoopPlugin, TurnView
from ostler.backends.engine.plugins.text_edits import PassClaimPlugin, TextEditsPlugin
from ostler.backends.engine.plugins.validation import ValidationChecks, ValidationPlugin
from ostler.backends.engine.text_edits.first_context import FirstContext
from ostler.backends.engine.text_edits.text_editing import TextEditing
from ostler.core.message import Message
from ostler.core.prompt import Prompt

MAX_REPAIRS = 1
MAX_CHECK_OUTPUT = 1_500


class TextEditTurn:
    """A failed edit and a failed check are each corrected once."""

    def __init__(self, editing: TextEditing, checks: ValidationChecks, prompt: Prompt) -> None:
        self._prompt = prompt
        self._first_context = FirstContext(editing)
        self.plugins: tuple[LoopPlugin, ...] = (
            TextEditsPlugin(self._first_context, prompt.text),
            ValidationPlugin(checks, max_rounds=MAX_REPAIRS, max_output=MAX_CHECK_OUTPUT),
            PassClaimPlugin(),
        )

    async def show_files(self, view: TurnView) -> Message | None:
        """Show the files that the prompt is about. Return a message with the calls that read them, or None."""
        return await self._first_context.show(view, self._prompt.id, self._prompt.text)
