"""A list to choose from, filtered while typing: the command palette, sessions, themes."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from ostler.frontends.tui.screens.dialog import Dialog
from ostler.frontends.tui.strips import PAINT
from ostler.frontends.tui.widgets.choice_rows import Choice, ChoiceRows, matching, with_groups
from ostler.frontends.tui.widgets.key_hints import KeyHints
from ostler.frontends.tui.widgets.line_field import LineField
from ostler.frontends.tui.widgets.text_rows import TextRows

OTHER_ROWS = 8  # of the dialog, besides the list
HINTS = (("↑↓", "select"), ("Enter", "choose"), ("Esc", "close"))


class ChoiceScreen(Dialog[str]):
    """Returns the value of the chosen item, or an empty string."""

    DEFAULT_CSS = """
    ChoiceScreen { align: center top; background: $background 60%; }
    ChoiceScreen > Vertical { width: 96; max-width: 96%; height: auto; margin-top: 2;
        background: $surface; padding: 1 1 0 1; }
    ChoiceScreen Input, ChoiceScreen Input:focus { border: none; height: 1; background: $panel; padding: 0 1;
        margin-bottom: 1; }
    ChoiceScreen ChoiceRows { height: auto; background: $surface; }
    ChoiceScreen TextRows { height: 1; background: $surface; }
    ChoiceScreen #choice-title { margin-bottom: 1; }
    ChoiceScreen #choice-hints { margin: 1 0; }
    """
    AUTO_FOCUS: ClassVar[str | None] = "Input"

    def __init__(
        self,
        title: str,
        items: Sequence[Choice],
        *,
        chosen: str = "",
        is_open: bool = False,
        on_select: Callable[[str], None] = lambda value: None,
    ) -> None:
        """`chosen` is the current value. With `is_open`, text that matches no item can be chosen, too.

        `on_select` is called with each value that the user moves to.
        """
        super().__init__()
        self._title = title
        self._items = items
        self._chosen = chosen
        self._is_open = is_open
        self._on_select = on_select

    def compose(self) -> ComposeResult:
        with Vertical():
            yield TextRows(id="choice-title", margin=1)
            yield LineField(placeholder="type to search" + (", or type another one" if self._is_open else ""))
            yield ChoiceRows()
            yield KeyHints(id="choice-hints", margin=1)

    def on_mount(self) -> None:
        rows = self.query_one(ChoiceRows)
        rows.show(self._items)
        rows.move(next((n for n, item in enumerate(self._items) if item.value == self._chosen), 0))
        self.query_one("#choice-title", TextRows).show([PAINT(self._title, "bold")])
        self.query_one(KeyHints).show_hints(HINTS)
        self._set_height()

    def on_resize(self) -> None:
        self._set_height()

    def _set_height(self) -> None:
        """Make the list have the height of the whole list, so that it does not jump while typing."""
        room = self.size.height - 4 - OTHER_ROWS
        self.query_one(ChoiceRows).styles.height = max(min(len(with_groups(self._items)), room), 3)

    def on_input_changed(self, event: Input.Changed) -> None:
        self.query_one(ChoiceRows).show(matching(self._items, event.value.casefold().split()))

    def on_input_submitted(self) -> None:
        selected = self.query_one(ChoiceRows).selected
        typed = self.query_one(Input).value.strip() if self._is_open else ""
        self.dismiss(selected.value if selected else typed)

    def on_choice_rows_selected(self, event: ChoiceRows.Selected) -> None:
        self._on_select(event.value)

    def on_choice_rows_chosen(self, event: ChoiceRows.Chosen) -> None:
        self.dismiss(event.value)

    def on_key(self, event: events.Key) -> None:
        steps = {"up": -1, "down": 1, "pageup": -10, "pagedown": 10}
        if event.key in steps:
            event.stop()
            self.query_one(ChoiceRows).move(steps[event.key])
        elif event.key in ("escape", "ctrl+c"):
            event.stop()
            self.dismiss("")
