"""The rows of a list to choose from: items, in groups if they have any, one of them selected."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec
from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip

from ostler.frontends.tui.widgets.themed import ScrolledWidget
from ostler.text.width import clip, width

MIN_LABEL = 20
MARGIN = 2


class Choice(msgspec.Struct, frozen=True):
    """An item of the list; all texts are sanitised. `mark` is a sign before it, in a style; `key` is at the right.

    Items of one group follow each other, below its name.
    """

    value: str
    label: str
    description: str = ""
    mark: str = ""
    style: str = ""
    key: str = ""
    group: str = ""


class ChoiceRows(ScrolledWidget):
    """The items that match; one is selected."""

    WHEEL_ROWS: ClassVar[int] = 1

    class Chosen(Message):
        def __init__(self, value: str) -> None:
            super().__init__()
            self.value = value

    class Selected(Message):
        """Another item is selected."""

        def __init__(self, value: str) -> None:
            super().__init__()
            self.value = value

    def __init__(self) -> None:
        super().__init__(id="choices")
        self.items: Sequence[Choice] = ()
        self._lines: list[Choice | str] = []  # the items with the names of their groups
        self._index = self._first = 0
        self._label_columns = 0

    @property
    def selected(self) -> Choice | None:
        return self.items[self._index] if self.items else None

    def show(self, items: Sequence[Choice], *, keep_selected: bool = False) -> None:
        """Show other items. With `keep_selected`, an item with the same value stays selected."""
        if keep_selected and items == self.items:
            return
        values, chosen = [item.value for item in items], self.selected
        index = values.index(chosen.value) if keep_selected and chosen and chosen.value in values else 0
        self.items, self._index, self._lines = items, index, with_groups(items)
        self._label_columns = max((width(item.label) for item in items if item.description), default=0)
        self._first = self._first if keep_selected else 0
        self.move(0)
        self.refresh()

    def move(self, step: int) -> None:
        """Select another item, and show it with the name of its group."""
        if not self.items:
            return
        self._index = min(max(self._index + step, 0), len(self.items) - 1)
        if step:
            self.post_message(self.Selected(self.items[self._index].value))
        line = self._lines.index(self.items[self._index])
        top = line - 1 if line and isinstance(self._lines[line - 1], str) else line
        height = max(self.size.height, 1)
        self._first = min(max(self._first, line - height + 1), 0 if top == 1 else top)
        self._first = max(min(self._first, len(self._lines) - height), 0)
        self.refresh()

    def scroll_rows(self, count: int) -> None:
        self.move(count)

    def on_resize(self) -> None:
        self.move(0)

    def render_line(self, y: int) -> Strip:
        columns, number = self.size.width, self._first + y
        line = self._lines[number] if number < len(self._lines) else ""
        if isinstance(line, str):
            return Strip([Segment(f" {line}", self._maker.style("dim"))]).adjust_cell_length(columns, self._maker.base)
        return self._render_item(line, columns, is_selected=line is self.selected)

    def _render_item(self, item: Choice, columns: int, *, is_selected: bool) -> Strip:
        base = self._maker.style("cursor") if is_selected else self._maker.base
        muted = base if is_selected else self._maker.style("dim")
        mark = f"{'›' if is_selected else ' '}{item.mark or ' '} "
        key = f"  {item.key} " if item.key else ""
        room = columns - len(mark) - width(key) - 1
        label = clip(item.label, self._label_room(room) if item.description else room)
        if item.description:
            label += " " * (self._label_room(room) - width(label) + MARGIN)
        description = clip(item.description, max(room - width(label), 0))
        gap = " " * max(room - width(label) - width(description), 0)
        parts = [
            Segment(mark, base if is_selected else self._maker.style(item.style)),
            Segment(label, base),
            Segment(f"{description}{gap}", muted),
            Segment(key, muted),
        ]
        return Strip(parts).adjust_cell_length(columns, base)

    def _label_room(self, room: int) -> int:
        return min(self._label_columns, max(room // 2, MIN_LABEL))

    def on_click(self, event: events.Click) -> None:
        number = self._first + event.y
        line = self._lines[number] if number < len(self._lines) else ""
        if isinstance(line, Choice):
            self.post_message(self.Chosen(line.value))


def matching(items: Sequence[Choice], words: Sequence[str]) -> list[Choice]:
    """Return the items that contain all words; those with all of them in the label first."""
    found = [item for item in items if _contains(f"{item.label} {item.description}", words)]
    groups = list(dict.fromkeys(item.group for item in found))
    if not words:
        return found
    return sorted(found, key=lambda item: (groups.index(item.group), not _contains(item.label, words)))


def _contains(text: str, words: Sequence[str]) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)


def with_groups(items: Sequence[Choice]) -> list[Choice | str]:
    """Return the items with an empty line and the name of the group before each group."""
    lines: list[Choice | str] = []
    group = ""
    for item in items:
        if item.group != group:
            group = item.group
            lines += ["", group] if lines else [group]
        lines.append(item)
    return lines
