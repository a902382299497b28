"""The menu of completions above the input."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from ostler.text.width import clip, width

if TYPE_CHECKING:
    from ostler.interaction.completion import Completion

MAX_ROWS = 8
MAX_LABEL = 40


class CompletionMenu(Widget):
    """Lists completions. It has no focus: the input passes keys to it."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"muted"}

    class Chosen(Message):
        """A completion was clicked."""

        def __init__(self, completion: "Completion") -> None:
            super().__init__()
            self.completion = completion

    def __init__(self) -> None:
        super().__init__(id="completions")
        self._items: Sequence[Completion] = ()
        self._index = -1
        self._first = 0

    @property
    def is_open(self) -> bool:
        return bool(self._items)

    @property
    def selected(self) -> "Completion | None":
        return self._items[self._index] if 0 <= self._index < len(self._items) else None

    @property
    def only(self) -> "Completion | None":
        """The completion, if there is just one."""
        return self._items[0] if len(self._items) == 1 else None

    def first_for(self, text: str) -> "Completion | None":
        """Return the first completion if the text ends with an unfinished mention, or is an unfinished command."""
        if not self._items:
            return None
        typed = text[-self._items[0].replace_length :]
        is_unfinished = not typed.endswith("/") and all(item.text.strip() != typed for item in self._items)
        return self._items[0] if is_unfinished and (typed.startswith("@") or text == f"/{typed}") else None

    def show(self, items: "Sequence[Completion]") -> None:
        """Show these completions, or close the menu if there are none."""
        if not items and not self._items:
            return
        self._items, self._index, self._first = items, -1, 0
        self.styles.height = min(len(items), MAX_ROWS)
        self.display = bool(items)
        self.refresh()

    def close(self) -> None:
        self.show(())

    def move(self, step: int) -> None:
        """Select the next or previous completion."""
        if not self._items:
            return
        start = self._index if self._index >= 0 else (-1 if step > 0 else 0)
        self._index = (start + step) % len(self._items)
        self._first = min(max(self._first, self._index - MAX_ROWS + 1), self._index)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        columns, base = self.size.width, self.rich_style
        number = self._first + y
        if number >= len(self._items):
            return Strip.blank(columns, base)
        item = self._items[number]
        labels = [width(other.label) for other in self._items]
        label_columns = min(max(labels), MAX_LABEL, columns)
        is_selected = number == self._index
        style = base + Style(reverse=True) if is_selected else base
        label = clip(item.label, label_columns)
        label += " " * (label_columns - width(label))
        description = clip(" ".join(item.description.split()), max(columns - label_columns - 6, 0))
        muted = style if is_selected else base + self.get_component_rich_style("muted", partial=True)
        strip = Strip([Segment(f"  {label}  ", style), Segment(description, muted)])
        return strip.adjust_cell_length(columns, style)

    def on_click(self, event: events.Click) -> None:
        number = self._first + event.y
        if number < len(self._items):
            self.post_message(self.Chosen(self._items[number]))
