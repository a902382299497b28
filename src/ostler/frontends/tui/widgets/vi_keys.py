"""Vi keys for the input field: the usual motions, operators and commands on short texts."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import events

from ostler.frontends.tui.widgets.vi_motions import (
    INCLUSIVE,
    LINEWISE,
    MOTIONS,
    find_char,
    first_word,
    line_end,
    line_start,
)

if TYPE_CHECKING:
    from textual.widgets import TextArea

_COMMAND = re.compile(
    r"(?P<count>[1-9]\d*)?(?:(?P<operator>[dcy])(?P<second>[1-9]\d*)?)?"
    r"(?:(?P<motion>[hjklwWeEbB0^$G;,]|gg|[fFtT].)|(?P<line>[dcy])|(?P<edit>[~JpPuiaIAoO.]|r.))",
    re.DOTALL,
)
_UNFINISHED = re.compile(r"(?:[1-9]\d*)?(?:[dcy](?:[1-9]\d*)?)?[fFtTg]?|(?:[1-9]\d*)?r")
SHORT = {"x": "dl", "X": "dh", "s": "cl", "S": "cc", "D": "d$", "C": "c$", "Y": "yy"}
MAX_COUNT = 999


class ViKeys:
    """Handles keys in normal mode; in insert mode only Esc. `on_mode` is called when the mode changes."""

    def __init__(self, area: "TextArea", on_mode: Callable[[], None]) -> None:
        self._area = area
        self._on_mode = on_mode
        self.inserting = True
        self._keys = ""  # of an unfinished command
        self._register = ""  # whole lines end with a line break
        self._found = ("", "")  # the last of f, t, F and T, and its character
        self._last_change = ""
        self._before_insert: tuple[str, int] | None = None  # the text and the place where an insertion began
        self._inserted = ""

    def reset(self) -> None:
        """Return to insert mode, for the next prompt."""
        self._keys, self._before_insert = "", None
        self._set_mode(inserting=True)

    def handle(self, event: events.Key) -> bool:
        """Handle a key. Return False if the input field must handle it."""
        if self.inserting:
            if event.key != "escape":
                return False
            self._end_insertion()
            return True
        if event.key == "escape":
            was_unfinished, self._keys = bool(self._keys), ""
            return was_unfinished  # Esc in normal mode cancels the turn
        if not event.is_printable or not event.character:
            return False
        self.press(event.character)
        return True

    def press(self, char: str) -> None:
        """Handle a character in normal mode. An unknown command does nothing."""
        self._keys += char
        head = self._keys[:-1]
        keys = head + SHORT[char] if char in SHORT and re.fullmatch(r"[1-9]?\d*", head) else self._keys
        found = _COMMAND.fullmatch(keys)
        if found and (found["operator"] or not found["line"]):  # a single `d` is unfinished
            self._keys = ""
            self._run(found)
        elif not _UNFINISHED.fullmatch(keys):
            self._keys = ""

    def _run(self, found: "re.Match[str]") -> None:
        count = min(int(found["count"] or 1) * int(found["second"] or 1), MAX_COUNT)
        operator, motion, edit = found["operator"], found["motion"], found["edit"]
        if found["line"]:
            if found["line"] == operator:
                self._operate_on_lines(operator, self._at, count)
        elif edit and not operator:
            self._edit(edit, count)
        elif motion and (target := self._target(motion, count, operator or "")) is not None:
            if operator:
                self._operate(operator, motion, target)
            else:
                self._move(target)
        if (operator and operator != "y") or (edit and edit[0] in "~JpPiaIAoOr"):
            self._last_change = found[0]

    # -- places --------------------------------------------------------------------------------------------------

    @property
    def _text(self) -> str:
        return self._area.text

    @property
    def _at(self) -> int:
        row, column = self._area.cursor_location
        return sum(len(line) + 1 for line in self._text.split("\n")[:row]) + column

    def _location(self, at: int) -> tuple[int, int]:
        return self._text.count("\n", 0, at), at - line_start(self._text, at)

    def _move(self, at: int) -> None:
        """Move the cursor; in normal mode it stands on a character."""
        if not self.inserting:
            at = max(min(at, line_end(self._text, at) - 1), line_start(self._text, at))
        self._area.move_cursor(self._location(at))

    def _target(self, motion: str, count: int, operator: str) -> int | None:
        text, at = self._text, self._at
        if motion[0] in "fFtT;,":
            return self._find(motion, count)
        if operator == "c" and motion in "wW" and at < len(text) and not text[at].isspace():
            motion = "e" if motion == "w" else "E"  # as in vi, the space after the word stays
            at -= 1
            for _ in range(count):
                at = MOTIONS[motion](text, at)
            return at + 1
        for _ in range(count):
            at = MOTIONS[motion](text, at)
        if operator and motion in "wW" and "\n" in text[self._at : at]:
            return max(line_end(text, self._at), self._at)
        return at

    def _find(self, motion: str, count: int) -> int | None:
        if motion[0] in "fFtT":
            self._found = (motion[0], motion[1])
        command, char = self._found
        if motion == ",":
            command = command.swapcase()
        return find_char(self._text, self._at, command, char, count) if command else None

    # -- changes -------------------------------------------------------------------------------------------------

    def _replace(self, new: str, start: int, end: int) -> None:
        self._area.replace(new, self._location(start), self._location(end))

    def _operate(self, operator: str, motion: str, target: int) -> None:
        if motion in LINEWISE:
            first, last = sorted((self._at, target))
            self._operate_on_lines(operator, first, self._text.count("\n", first, line_end(self._text, last)) + 1)
            return
        command = (self._found[0] if motion in ";," else motion)[0]
        start, end = sorted((self._at, target))
        end += command in INCLUSIVE and end < line_end(self._text, end)
        self._register = self._text[start:end]
        if operator != "y":
            self._replace("", start, end)
        self._begin_insertion(start) if operator == "c" else self._move(start)

    def _operate_on_lines(self, operator: str, at: int, count: int) -> None:
        start, end = line_start(self._text, at), line_end(self._text, at)
        for _ in range(count - 1):
            end = line_end(self._text, min(end + 1, len(self._text)))
        self._register = f"{self._text[start:end]}\n"
        if operator == "c":
            self._replace("", start, end)
            self._begin_insertion(start)
        elif operator == "d":
            is_last = end == len(self._text)
            self._replace("", max(start - is_last, 0), end if is_last else end + 1)
            self._move(first_word(self._text, min(start, len(self._text))))

    def _edit(self, edit: str, count: int) -> None:
        match edit[0]:
            case "u":
                for _ in range(count):
                    self._area.undo()
            case "p" | "P":
                self._put(count, after=edit == "p")
            case "r" | "~":
                self._change_chars(edit, count)
            case "J":
                self._join(max(count - 1, 1))
            case ".":
                self._repeat()
            case _:
                self._insert(edit)

    def _change_chars(self, edit: str, count: int) -> None:
        at = self._at
        end = at + count if edit[0] == "r" else min(at + count, line_end(self._text, at))
        if end > line_end(self._text, at):
            return
        self._replace(edit[1] * count if edit[0] == "r" else self._text[at:end].swapcase(), at, end)
        self._move(end - 1 if edit[0] == "r" else end)

    def _join(self, count: int) -> None:
        for _ in range(count):
            end = line_end(self._text, self._at)
            if end < len(self._text):
                self._replace(" ", end, first_word(self._text, end + 1))
                self._move(end)

    def _put(self, count: int, *, after: bool) -> None:
        text, at = self._register * count, self._at
        if self._register.endswith("\n"):
            end = line_end(self._text, at)
            start = end if after else line_start(self._text, at)
            self._replace(f"\n{text[:-1]}" if after else text, start, start)
            self._move(start + after)
        elif text:
            place = min(at + after, line_end(self._text, at))
            self._replace(text, place, place)
            self._move(place + len(text) - 1)

    # -- insertions ----------------------------------------------------------------------------------------------

    def _insert(self, edit: str) -> None:
        text, at = self._text, self._at
        places = {"i": at, "a": min(at + 1, line_end(text, at)), "I": first_word(text, at), "A": line_end(text, at)}
        if edit in places:
            self._begin_insertion(places[edit])
            return
        place = line_end(text, at) if edit == "o" else line_start(text, at)
        self._replace("\n", place, place)
        self._begin_insertion(place + (edit == "o"))

    def _begin_insertion(self, at: int) -> None:
        self._set_mode(inserting=True)
        self._move(at)
        self._before_insert = (self._text, at)

    def _end_insertion(self) -> None:
        if self._before_insert:
            before, at = self._before_insert
            self._inserted = self._text[at : at + max(len(self._text) - len(before), 0)]
            self._before_insert = None
        self._set_mode(inserting=False)
        self._move(max(self._at - 1, line_start(self._text, self._at)))

    def _repeat(self) -> None:
        """Do the last change again, with the same inserted text."""
        inserted = self._inserted
        if self._last_change and (found := _COMMAND.fullmatch(self._last_change)):
            self._run(found)
        if self.inserting:
            self._area.insert(inserted)
            self._end_insertion()

    def _set_mode(self, *, inserting: bool) -> None:
        if self.inserting != inserting:
            self.inserting = inserting
            self._on_mode()
