"""Views of a text in which a secret is in one piece: without terminal escapes, and with continued lines joined."""

import re
from bisect import bisect_right
from collections.abc import Iterator

from ostler.text.lazy_regex import regex

Span = tuple[int, int]

# Limits in characters; longer sequences are text.
_MAX_PARAMETERS = 64
_MAX_STRING_LENGTH = 4096

# Colours and other control sequences; also as they are written in JSON and in source code.
_CONTROL = (
    rf"(?:\x1b\[|\x9b)[0-?]{{0,{_MAX_PARAMETERS}}}[ -/]{{0,4}}[@-~]"
    rf"|\\(?:u001[bB]|x1[bB]|033|e)\[[0-9;:]{{0,{_MAX_PARAMETERS}}}[mK]"
)
# Titles and links, which have text of their own.
_STRING = (
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])"
    rf"(?P<payload>[^\x07\x1b\x9c\n\r]{{0,{_MAX_STRING_LENGTH}}}+)(?:\x07|\x9c|\x1b\\)"
)
_SHORT = r"\x1b(?:[ -/]{1,4}[0-~]|[0-9=>])|[\x00\x0e\x0f\x1b]"
_ESCAPE = rf"{_CONTROL}|{_STRING}|{_SHORT}"
_ESCAPE_STARTS = r"[\x00\x0e\x0f\x1b\x90\x98\x9b\x9d-\x9f]|\\(?:u001[bB]|x1[bB]|033|e)\["

# A line that continues: with a backslash, in PowerShell with a backtick, in cmd.exe with a caret.
_CONTINUATION = r"(?P<before>[ \t]*)(?:\\|(?<=[ \t])[`^])\r?\n(?P<after>[ \t]*)"


class TextView:
    """A text with some spans left out; finds the original positions."""

    def __init__(self, original: str, gaps: list[Span]) -> None:
        self._gaps = gaps
        self._starts: list[int] = []  # positions in the view after each gap
        parts: list[str] = []
        pos = removed = 0
        for start, end in gaps:
            parts.append(original[pos:start])
            self._starts.append(start - removed)
            removed += end - start
            pos = end
        parts.append(original[pos:])
        self.text = "".join(parts)

    def original_span(self, span: Span) -> Span:
        start, end = span
        return self._original(start), self._original(end - 1) + 1 if end > start else self._original(start)

    def _original(self, pos: int) -> int:
        """Return the original position of a character of the view."""
        index = bisect_right(self._starts, pos)
        if index == 0:
            return pos
        return self._gaps[index - 1][1] + pos - self._starts[index - 1]


def has_escapes(text: str) -> bool:
    return regex(_ESCAPE_STARTS).search(text) is not None


def escape_free_view(text: str) -> TextView:
    """Return the text without terminal escapes."""
    if not has_escapes(text):
        return TextView(text, [])
    return TextView(text, [match.span() for match in regex(_ESCAPE).finditer(text)])


def escape_payloads(text: str) -> Iterator[Span]:
    """Yield the spans of the text inside titles and links."""
    if has_escapes(text):
        for match in regex(_ESCAPE).finditer(text):
            if match["payload"]:
                yield match.span("payload")


def joined_view(text: str) -> TextView | None:
    """Return the text with continued lines joined, with at most one space between them; None if there are none."""
    if "\\\n" not in text and "\\\r\n" not in text and not regex(r"[ \t][`^]\r?\n").search(text):
        return None
    gaps = [_continuation_gap(match) for match in regex(_CONTINUATION).finditer(text)]
    return TextView(text, gaps) if gaps else None


def _continuation_gap(match: re.Match[str]) -> Span:
    """Return the span to leave out, so that at most one space remains."""
    if match["before"]:
        return match.start() + 1, match.end()
    return (match.start(), match.end() - 1) if match["after"] else match.span()


def continued_word_end(text: str, end: int) -> int:
    """Return the end of a value that goes on in the next line after a backslash."""
    while match := regex(r"\\\r?\n[ \t]*[^\s\\\"']{1,4096}").match(text, end):
        end = match.end()
    return end


def replace_spans(text: str, spans: list[Span], marker: str) -> str:
    """Replace the spans by the marker, merging overlapping ones. Terminal escapes inside them stay after the marker."""
    parts: list[str] = []
    pos = 0
    for start, end in _merge_spans(spans):
        parts += (text[pos:start], marker, *_find_escapes(text[start:end]))
        pos = end
    parts.append(text[pos:])
    return "".join(parts)


def _find_escapes(text: str) -> list[str]:
    """Return the terminal escapes of a text that have no text of their own."""
    if not has_escapes(text):
        return []
    return [match.group() for match in regex(_ESCAPE).finditer(text) if not match["payload"]]


def _merge_spans(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
