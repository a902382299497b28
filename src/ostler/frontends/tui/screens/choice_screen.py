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

MAX_LABEL = 44


class Choice(msgspec.Struct, frozen=True):
    """An item of the list; label and description are sanitised."""

    value: str
    label: str
    description: str = ""


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

    def show(self, items: Sequence[Choice]) -> None:
        self._items, self._index, self._first = items, 0, 0
        self.refresh()

    def move(self, step: int) -> None:
        if self._items:
            self._index = min(max(self._index + step, 0), len(self._items) - 1)
            self._first = min(max(self._first, self._index - self.size.height + 1), self._index)
            self.refresh()

    def on_mount(self) -> None:
        self._maker = StripMaker(*palette_of(self))

    def render_line(self, y: int) -> Strip:
        columns, number = self.size.width, self._first + y
        if number >= len(self._items):
            return Strip.blank(columns, self._maker.base)
        item = self._items[number]
        base = self._maker.base + Style(reverse=True) if number == self._index else self._maker.base
        label_columns = min(max(width(other.label) for other in self._items), MAX_LABEL)
        label = clip(item.label, label_columns)
        label += " " * (label_columns - width(label))
        muted = base if number == self._index else self._maker.style("dim")
        description = clip(item.description, max(columns - label_columns - 4, 0))
        return Strip([Segment(f" {label}  ", base), Segment(description, muted)]).adjust_cell_length(columns, base)

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
    ChoiceScreen Input { border: none; height: 1; background: $panel; padding: 0 1; margin-bottom: 1; }
    ChoiceScreen ChoiceRows { height: 1fr; background: $surface; }
    ChoiceScreen.side { align: left top; }
    ChoiceScreen.side > Vertical { width: 60; height: 100%; margin-top: 0; }
    """
    AUTO_FOCUS: ClassVar[str | None] = "Input"

    def __init__(self, title: str, items: Sequence[Choice], *, side: bool = False) -> None:
        super().__init__(classes="side" if side else "")
        self._title = title
        self._items = items

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Input(placeholder=self._title)
            yield ChoiceRows()

    def on_mount(self) -> None:
        self.query_one(ChoiceRows).show(self._items)

    def on_input_changed(self, event: Input.Changed) -> None:
        words = event.value.casefold().split()
        found = [item for item in self._items if _matches(item, words)]
        self.query_one(ChoiceRows).show(found)

    def on_input_submitted(self) -> None:
        selected = self.query_one(ChoiceRows).selected
        self.dismiss(selected.value if selected else "")

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


def _matches(item: Choice, words: Sequence[str]) -> bool:
    text = f"{item.label} {item.description}".casefold()
    return all(word in text for word in words)
