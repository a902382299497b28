"""Where the motions of vi lead, as offsets in a text."""

from collections.abc import Callable

Kind = Callable[[str], int]


def _kind(char: str) -> int:
    return 0 if char.isspace() else 1 if char.isalnum() or char == "_" else 2


def _long_kind(char: str) -> int:
    return 0 if char.isspace() else 1


def line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Return the offset behind the last character of the line."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def first_word(text: str, at: int) -> int:
    """Return the first character of the line that is not a space."""
    start, end = line_start(text, at), line_end(text, at)
    return min(start + len(text[start:end]) - len(text[start:end].lstrip(" \t")), end)


def _next_word(text: str, at: int, kind: Kind) -> int:
    first = kind(text[at]) if at < len(text) else 0
    while at < len(text) and first and kind(text[at]) == first:
        at += 1
    while at < len(text) and not kind(text[at]):
        at += 1
    return at


def _word_end(text: str, at: int, kind: Kind) -> int:
    at += 1
    while at < len(text) and not kind(text[at]):
        at += 1
    while at + 1 < len(text) and kind(text[at + 1]) == kind(text[at]):
        at += 1
    return min(at, max(len(text) - 1, 0))


def _word_start(text: str, at: int, kind: Kind) -> int:
    at -= 1
    while at > 0 and not kind(text[at]):
        at -= 1
    while at > 0 and kind(text[at - 1]) == kind(text[at]):
        at -= 1
    return max(at, 0)


def _other_line(text: str, at: int, step: int) -> int:
    column, start = at - line_start(text, at), line_start(text, at)
    target = line_end(text, at) + 1 if step > 0 else line_start(text, max(start - 1, 0))
    if target > len(text) or (step < 0 and start == 0):
        return at
    return min(target + column, line_end(text, target))


MOTIONS: dict[str, Callable[[str, int], int]] = {
    "h": lambda text, at: max(at - 1, line_start(text, at)),
    "l": lambda text, at: min(at + 1, line_end(text, at)),
    "j": lambda text, at: _other_line(text, at, 1),
    "k": lambda text, at: _other_line(text, at, -1),
    "w": lambda text, at: _next_word(text, at, _kind),
    "W": lambda text, at: _next_word(text, at, _long_kind),
    "e": lambda text, at: _word_end(text, at, _kind),
    "E": lambda text, at: _word_end(text, at, _long_kind),
    "b": lambda text, at: _word_start(text, at, _kind),
    "B": lambda text, at: _word_start(text, at, _long_kind),
    "0": line_start,
    "^": first_word,
    "$": lambda text, at: max(line_end(text, at) - 1, line_start(text, at)),
    "G": lambda text, at: line_start(text, len(text)),
    "gg": lambda text, at: 0,
}
INCLUSIVE = "eE$ft"  # an operator includes the character that these lead to
LINEWISE = ("j", "k", "G", "gg")  # an operator applies to whole lines


def find_char(text: str, at: int, command: str, char: str, count: int) -> int | None:
    """Return where `f`, `t`, `F` or `T` leads in the line, or None if there are not so many."""
    step = 1 if command in "ft" else -1
    start, end = line_start(text, at), line_end(text, at)
    place = at + step
    while start <= place < end:
        count -= text[place] == char
        if not count:
            return place - step * (command in "tT")
        place += step
    return None
