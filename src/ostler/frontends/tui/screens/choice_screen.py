"""A list to choose from, filtered while typing: the command palette, sessions, themes."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from ostler.frontends.tui.strips import StripMaker
from ostler.frontends.tui.themes import palette_of
from ostler.text.width import clip, width

MIN_LABEL = 20


class Choice(msgspec.Struct, frozen=True):
    """An item of the list; label and description are sanitised. `mark` is a sign before it, in a style."""

    value: str
    label: str
    description: str = ""
    mark: str = ""
    style: str = ""


class ChoiceRows(Widget):
    """The items that match; one is selected."""

    class Chosen(Message):
        def __init__(self, value: str) -> None:
            super().__init__()
            self.value = value

    def __init__(self) -> None:
        super().__init__(id="choices")
        self._items: Sequence[Choice] = ()
        self._index = self._first = 0
        self._maker = StripMaker(Style(), {})

    @property
    def selected(self) -> Choice | None:
        return self._items[self._index] if self._items else None

    def show(self, items: Sequence[Choice], *, keep_selected: bool = False) -> None:
        """Show other items. With `keep_selected`, an item with the same value stays selected."""
        if keep_selected and items == self._items:
            return
        values, chosen = [item.value for item in items], self.selected
        index = values.index(chosen.value) if keep_selected and chosen and chosen.value in values else 0
        self._items, self._index, self._first = items, index, min(self._first, index) if keep_selected else 0
        self.move(0)
        self.refresh()

    def move(self, step: int) -> None:
        if self._items:
            self._index = min(max(self._index + step, 0), len(self._items) - 1)
            self._first = min(max(self._first, self._index - max(self.size.height, 1) + 1), self._index)
            self.refresh()

    def on_mount(self) -> None:
        self._maker = StripMaker(*palette_of(self))

    def render_line(self, y: int) -> Strip:
        columns, number = self.size.width, self._first + y
        if number >= len(self._items):
            return Strip.blank(columns, self._maker.base)
        item = self._items[number]
        base = self._maker.base + Style(reverse=True) if number == self._index else self._maker.base
        longest = max(width(other.label) for other in self._items)
        label_columns = min(longest, columns - 4 if not item.description else max(columns // 2, MIN_LABEL))
        label = clip(item.label, label_columns)
        label += " " * (label_columns - width(label))
        muted = base if number == self._index else self._maker.style("dim")
        sign = f" {item.mark}" if item.mark else ""
        sign_style = base if number == self._index else self._maker.style(item.style)
        description = clip(item.description, max(columns - label_columns - len(sign) - 4, 0))
        parts = [Segment(sign, sign_style), Segment(f" {label}  ", base), Segment(description, muted)]
        return Strip(parts).adjust_cell_length(columns, base)

    def on_click(self, event: events.Click) -> None:
        number = self._first + event.y
        if number < len(self._items):
            self.post_message(self.Chosen(self._items[number].value))


class ChoiceScreen(ModalScreen[str]):
    """Returns the value of the chosen item, or an empty string."""

    DEFAULT_CSS = """
    ChoiceScreen { align: center top; background: $background 50%; }
    ChoiceScreen > Vertical { width: 90; max-width: 96%; height: 70%; margin-top: 2; background: $surface;
        padding: 1 1; }
    ChoiceScreen Input, ChoiceScreen Input:focus { border: none; height: 1; background: $panel; padding: 0 1;
        margin-bottom: 1; }
    ChoiceScreen ChoiceRows { height: 1fr; background: $surface; }
    """
    AUTO_FOCUS: ClassVar[str | None] = "Input"

    def __init__(self, title: str, items: Sequence[Choice], *, is_open: bool = False) -> None:
        """With `is_open`, text that matches no item can be chosen, too."""
        super().__init__()
        self._title = title
        self._items = items
        self._is_open = is_open

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Input(placeholder=self._title)
            yield ChoiceRows()

    def on_mount(self) -> None:
        self.query_one(ChoiceRows).show(self._items)

    def on_input_changed(self, event: Input.Changed) -> None:
        self.query_one(ChoiceRows).show(matching(self._items, event.value.casefold().split()))

    def on_input_submitted(self) -> None:
        selected = self.query_one(ChoiceRows).selected
        typed = self.query_one(Input).value.strip() if self._is_open else ""
        self.dismiss(selected.value if selected else typed)

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


def matching(items: Sequence[Choice], words: Sequence[str]) -> list[Choice]:
    """Return the items that contain all words; those with all of them in the label first."""
    found = [item for item in items if _contains(f"{item.label} {item.description}", words)]
    return sorted(found, key=lambda item: not _contains(item.label, words)) if words else found


def _contains(text: str, words: Sequence[str]) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)
