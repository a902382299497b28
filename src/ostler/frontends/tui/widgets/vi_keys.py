"""Vi keys for the input field: the usual motions, operators and commands on short texts."""

from typing import TYPE_CHECKING

from textual import events

if TYPE_CHECKING:
    from textual.widgets import TextArea

Location = tuple[int, int]
MOTIONS = {
    "h": "cursor_left",
    "l": "cursor_right",
    "j": "cursor_down",
    "k": "cursor_up",
    "w": "cursor_word_right",
    "e": "cursor_word_right",
    "b": "cursor_word_left",
    "0": "cursor_line_start",
    "^": "cursor_line_start",
    "$": "cursor_line_end",
}
OPERATORS = "dcy"


class ViKeys:
    """Handles keys in normal mode; in insert mode only Esc."""

    def __init__(self, area: "TextArea") -> None:
        self._area = area
        self.inserting = True
        self._operator = ""
        self._count = ""
        self._register = ""
        self._replacing = False

    def reset(self) -> None:
        """Return to insert mode, for the next prompt."""
        self.inserting, self._operator, self._count, self._replacing = True, "", "", False

    def handle(self, event: events.Key) -> bool:
        """Handle a key. Return False if the input field must handle it."""
        if self.inserting:
            if event.key != "escape":
                return False
            self.inserting = False
            self._area.move_cursor_relative(columns=-1)
            return True
        if event.key == "escape" and not (self._operator or self._count):
            return False  # Esc in normal mode cancels the turn
        if event.key == "escape":
            self._operator = self._count = ""
            return True
        if not event.is_printable or not event.character:
            return False
        self._press(event.character)
        return True

    def _press(self, char: str) -> None:
        if self._replacing:
            self._replacing = False
            self._replace_char(char)
        elif char.isdigit() and (char != "0" or self._count):
            self._count += char
        elif self._operator:
            operator, self._operator = self._operator, ""
            self._operate(operator, char)
        elif char in OPERATORS:
            self._operator = char
        else:
            for _ in range(self._take_count()):
                self._command(char)

    def _take_count(self) -> int:
        count, self._count = min(int(self._count or 1), 999), ""
        return count

    def _move(self, char: str) -> None:
        getattr(self._area, f"action_{MOTIONS[char]}")()

    def _command(self, char: str) -> None:
        area, (row, _) = self._area, self._area.cursor_location
        if char in MOTIONS:
            self._move(char)
        elif char in "iaIAoO":
            self._insert(char)
        elif char == "x":
            area.action_delete_right()
        elif char in "DC":
            self._register = area.get_text_range(area.cursor_location, (row, len(area.document.get_line(row))))
            area.delete(area.cursor_location, (row, len(area.document.get_line(row))))
            self.inserting = char == "C"
        elif char == "u":
            area.undo()
        elif char == "G":
            area.move_cursor(area.document.end)
        elif char == "g":
            area.move_cursor((0, 0))
        elif char == "r":
            self._replacing = True
        elif char in "pP":
            self._put(after=char == "p")

    def _insert(self, char: str) -> None:
        area, (row, _) = self._area, self._area.cursor_location
        end = (row, len(area.document.get_line(row)))
        if char == "a":
            area.move_cursor_relative(columns=1)
        elif char == "I":
            area.action_cursor_line_start()
        elif char == "A":
            area.move_cursor(end)
        elif char == "o":
            area.move_cursor(end)
            area.insert("\n")
        elif char == "O":
            area.move_cursor((row, 0))
            area.insert("\n")
            area.move_cursor((row, 0))
        self.inserting = True

    def _operate(self, operator: str, motion: str) -> None:
        """Delete, change or copy up to where a motion leads; the operator twice means the line."""
        area = self._area
        if motion == operator:
            row = area.cursor_location[0]
            start: Location = (row, 0)
            last = min(row + self._take_count(), area.document.line_count) - 1
            end: Location = (last, len(area.document.get_line(last)))
            self._register = f"{area.get_text_range(start, end)}\n"
            if operator == "d" and last + 1 < area.document.line_count:
                end = (last + 1, 0)
        elif motion in MOTIONS:
            start = area.cursor_location
            for _ in range(self._take_count()):
                self._move(motion)
            start, end = sorted((start, area.cursor_location))
            self._register = area.get_text_range(start, end)
        else:
            return
        if operator == "y":
            area.move_cursor(start)
            return
        area.delete(start, end)
        self.inserting = operator == "c"

    def _replace_char(self, char: str) -> None:
        row, column = self._area.cursor_location
        if column < len(self._area.document.get_line(row)):
            self._area.replace(char, (row, column), (row, column + 1))
            self._area.move_cursor((row, column))

    def _put(self, *, after: bool) -> None:
        area, (row, _) = self._area, self._area.cursor_location
        if self._register.endswith("\n"):
            where = (row, len(area.document.get_line(row))) if after else (row, 0)
            text = f"\n{self._register[:-1]}" if after else self._register
            area.insert(text, where)
        else:
            if after:
                area.move_cursor_relative(columns=1)
            area.insert(self._register)
