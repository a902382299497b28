"""The input field: one or more lines, history, completion, folded pastes, a stash, vi keys on request."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.strip import Strip
from textual.widgets import TextArea

from ostler.frontends.tui.keys import KeyTable
from ostler.frontends.tui.widgets.completion_menu import CompletionMenu
from ostler.frontends.tui.widgets.vi_keys import ViKeys
from ostler.frontends.tui.workers import start_work
from ostler.interaction.pastes import PasteStore
from ostler.interaction.prompt_history import PromptHistory, is_recallable

if TYPE_CHECKING:
    from ostler.interaction.completion import Completion, CompletionSource

MAX_PASTED_ROWS = 100
LATE_ENTER_SECONDS = 1.0  # after a dialog closed, Enter does not send the text that it interrupted

# Textual runs these only after the event has passed all parents, and so after characters that were typed later.
EDIT_ACTIONS = {binding.key: binding.action for binding in Binding.make_bindings(TextArea.BINDINGS)}


class PromptField(TextArea):
    """Edits the next prompt."""

    class Submitted(Message):
        """The user sent a text; `steering`: to the running turn."""

        def __init__(self, text: str, pasted: str, *, steering: bool) -> None:
            super().__init__()
            self.text, self.pasted, self.steering = text, pasted, steering

    class ChordPressed(Message):
        """The user pressed the two keys of an action."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    class ModeChanged(Message):
        """Vi keys changed between inserting and commands."""

    class EscapePressed(Message):
        """The user pressed Esc, and there was nothing to close here."""

    def __init__(self, history: PromptHistory, keys: KeyTable, menu: CompletionMenu) -> None:
        super().__init__(id="input", soft_wrap=True, show_line_numbers=False, highlight_cursor_line=False)
        self.placeholder = "What should be done?  / lists commands"
        self.cursor_blink = False
        self.is_sensitive: Callable[[str], bool] = lambda text: False  # such text is not stored in the history
        self.last_key = float("-inf")
        self.source: CompletionSource | None = None
        self.earlier = history
        self._keys = keys
        self._menu = menu
        self._pastes = PasteStore(MAX_PASTED_ROWS)
        self._stash: list[str] = []
        self._vi = ViKeys(self, self._note_mode) if keys.vi else None
        self._first_key = ""  # of a chord
        self._restored, self._restored_at = "", float("-inf")
        self._requested = ""

    # -- text ----------------------------------------------------------------------------------------------------

    @property
    def full_text(self) -> str:
        """The text with folded pastes in full."""
        return self._pastes.expand(self.text)

    @property
    def text_before_cursor(self) -> str:
        return self.get_text_range((0, 0), self.cursor_location)

    @property
    def mode_label(self) -> str:
        """The name of the vi mode, if vi keys are used."""
        return "" if self._vi is None else "INSERT" if self._vi.inserting else "NORMAL"

    def _note_mode(self) -> None:
        self.post_message(self.ModeChanged())

    def render_line(self, y: int) -> Strip:
        if not self.content_size.width:
            return Strip.blank(self.size.width)  # Textual cannot wrap the placeholder to nothing
        return super().render_line(y)

    def place_cursor(self) -> None:
        """Tell the terminal where the cursor is, so that input methods open their window there."""
        if self.has_focus:
            self.app.cursor_position = self.cursor_screen_offset

    def put_text(self, text: str) -> None:
        """Replace the text; a very long one is folded."""
        self.load_text(self._pastes.fold(text))
        self.move_cursor(self.document.end)

    def take_text(self) -> str:
        """Return the text in full and remove it."""
        text = self.full_text
        self.clear_text()
        return text

    def use_project(
        self, source: "CompletionSource", history: PromptHistory, is_sensitive: Callable[[str], bool]
    ) -> None:
        """Complete and recall for the project of another session."""
        self.source, self.earlier, self.is_sensitive = source, history, is_sensitive

    def restore_draft(self, text: str) -> None:
        """Put text that was not sent before the text."""
        self.put_text(text + (f"\n{self.full_text}" if self.text else ""))

    def insert_draft(self, text: str) -> None:
        """Insert text that was typed at a dialog; Enter does not send it at once."""
        if text:
            self.insert(self._pastes.fold(text))
        if self.text:
            self._restored, self._restored_at = self.text, time.monotonic()

    def send(self, *, steering: bool = False) -> None:
        """Send the text."""
        if self.text == self._restored != "" and time.monotonic() - self._restored_at < LATE_ENTER_SECONDS:
            return  # Enter was meant for the dialog
        text = self.full_text
        if text.strip() and is_recallable(text) and not self.is_sensitive(text):
            self.earlier.add(text)
        self.earlier.reset()
        self.clear_text()
        self.post_message(self.Submitted(text, self._pastes.text_with_mentions, steering=steering))

    def clear_text(self) -> None:
        self._menu.close()
        self.load_text("")
        if self._vi:
            self._vi.reset()

    def toggle_stash(self) -> str:
        """Put the text aside, or get the last one back if there is no text. Return what happened."""
        if self.text.strip():
            self._stash.append(self.full_text)
            self.clear_text()
            return f"stashed ({len(self._stash)})"
        if self._stash:
            self.put_text(self._stash.pop())
            return "taken from the stash"
        return "the stash is empty"

    # -- keys ----------------------------------------------------------------------------------------------------

    async def _on_key(self, event: events.Key) -> None:
        self.last_key = time.monotonic()
        if self._handle_key(event):
            event.stop()
            event.prevent_default()
        elif action := EDIT_ACTIONS.get(event.key):
            event.stop()
            event.prevent_default()
            await self.run_action(action)
        else:
            await super()._on_key(event)

    def _handle_key(self, event: events.Key) -> bool:
        key, first = event.key, self._first_key
        if action := self._keys.chords.get(f"{first} {key}"):
            self._first_key = ""
            self.post_message(self.ChordPressed(action))
            return True
        self._first_key = key if key in self._keys.first_keys else ""
        if self._first_key:
            return True
        if self._menu.is_open and self._handle_menu_key(key):
            return True
        if key in self._keys.keys("newline"):
            self.insert("\n")
            return True
        if self._vi and self._vi.handle(event):
            return True
        return self._handle_edit_key(key)

    def _handle_edit_key(self, key: str) -> bool:
        match key:
            case "enter" if self.text_before_cursor.endswith("\\"):
                self.action_delete_left()
                self.insert("\n")
            case "enter":
                self.send()
            case "tab":
                self.complete(explicit=True)
            case "escape":
                self.post_message(self.EscapePressed())
            case "up" if self.cursor_location[0] == 0 and not self._is_wrapped_above:
                return self._show_from_history(self.earlier.previous(self.full_text))
            case "down" if self.cursor_location[0] == self.document.line_count - 1 and not self._is_wrapped_below:
                return self._show_from_history(self.earlier.next())
            case _:
                return False
        return True

    @property
    def _is_wrapped_above(self) -> bool:
        return self.wrapped_document.location_to_offset(self.cursor_location).y > 0

    @property
    def _is_wrapped_below(self) -> bool:
        return self.wrapped_document.location_to_offset(self.cursor_location).y < self.wrapped_document.height - 1

    def _show_from_history(self, text: str | None) -> bool:
        if text is None:
            return False
        self._menu.close()
        self.put_text(text)
        return True

    def _handle_menu_key(self, key: str) -> bool:
        match key:
            case "tab" if only := self._menu.only:
                self.accept(only)
            case "tab" | "down":
                self._menu.move(1)
            case "shift+tab" | "up":
                self._menu.move(-1)
            case "escape":
                self._menu.close()
            case "enter" if taken := self._menu.selected or self._menu.first_for(self.text_before_cursor):
                self.accept(taken)
            case _:
                return False
        return True

    async def _on_paste(self, event: events.Paste) -> None:
        """Insert pasted text; a large one is shown as a placeholder and sent in full."""
        event.stop()
        event.prevent_default()
        self.last_key = time.monotonic()
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        self.replace(self._pastes.add(text), *self.selection)

    # -- completion ----------------------------------------------------------------------------------------------

    def on_text_area_selection_changed(self) -> None:
        self.place_cursor()

    def on_text_area_changed(self) -> None:
        self.complete(explicit=False)

    def complete(self, *, explicit: bool) -> None:
        """Search for completions in the background."""
        if self.source is not None:
            before = self.text_before_cursor
            self._requested = before
            search = partial(self._complete, self.source, before, explicit=explicit)
            start_work(self, search, "completion", exclusive=True)

    async def _complete(self, source: "CompletionSource", before: str, *, explicit: bool) -> None:
        found = await source.completions(before, explicit=explicit) if before else ()
        if before != self._requested or before != self.text_before_cursor:
            return
        is_complete = len(found) == 1 and before.endswith(found[0].text)
        self._menu.show([] if is_complete else found)
        if explicit and len(found) == 1 and not is_complete:
            self.accept(found[0])
        elif explicit and found:
            self._menu.move(1)

    def accept(self, completion: "Completion") -> None:
        """Insert a completion."""
        self._menu.close()
        row, column = self.cursor_location
        self.replace(completion.text, (row, max(column - completion.replace_length, 0)), (row, column))
