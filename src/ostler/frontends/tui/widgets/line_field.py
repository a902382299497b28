"""An input field of one line."""

from textual import events
from textual.binding import Binding
from textual.widgets import Input

# Textual runs these only after the event has passed all parents, and so after characters that were typed later.
KEYS = ("backspace", "delete", "left", "right", "home", "end", "ctrl+u")  # that no screen uses itself
EDIT_ACTIONS = {b.key: b.action for b in Binding.make_bindings(Input.BINDINGS) if b.key in KEYS}


class LineField(Input):
    """Its cursor does not blink, because each change would be written to the terminal."""

    def __init__(self, *, placeholder: str = "", id: str | None = None) -> None:
        super().__init__(placeholder=placeholder, id=id)
        self.cursor_blink = False

    async def _on_key(self, event: events.Key) -> None:
        if action := EDIT_ACTIONS.get(event.key):
            event.stop()
            event.prevent_default()
            await self.run_action(action)
