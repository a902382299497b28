"""Removes terminal escapes, control characters and invisible characters from text."""

from collections.abc import Callable
from functools import cache
from re import Match, Pattern
from typing import Literal

from ostler.text.lazy_regex import regex

# More marks than this on one character cover the lines around it.
MAX_COMBINING_MARKS = 8
# An unterminated sequence removes at most this many characters.
MAX_SEQUENCE_LENGTH = 4096

SanitiserState = Literal["text", "escape", "control", "title", "string"]

# Ranges of code points, written as regex class members.
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
_LINE_BREAKS = r"\u2028\u2029"
_SURROGATES = r"\ud800-\udfff"
_JOINERS = r"\u200c\u200d\ufe0e\ufe0f"
_BIDI = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_INVISIBLE = (
    r"\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u3164"
    r"\ufdd0-\ufdef\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    r"\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNUSUAL_SPACES = r"\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000"

# Joiners are visible only between these characters; elsewhere they are removed.
_PICTOGRAPHS = (
    r"\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf"
    r"\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_JOINING_LETTERS = r"\u0600-\u0dff\u1000-\u109f\u1780-\u18af\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc"

# Where combining marks can be; Chinese, Japanese and Korean have none that stack.
_MARKABLE = r"[\u0300-\u2fff\u302a-\u302f\u3099\u309a\ua000-\uabff\ufb00-\uffff\U00010000-\U0001ffff]+"

_OPENERS: dict[str, SanitiserState] = {
    "[": "control", "\x9b": "control", "]": "title", "\x9d": "title",
    "P": "string", "\x90": "string", "X": "string", "\x98": "string",
    "^": "string", "\x9e": "string", "_": "string", "\x9f": "string",
}  # fmt: skip


def _special_pattern() -> Pattern[str]:
    return regex(f"[{_CONTROLS}{_LINE_BREAKS}{_SURROGATES}{_JOINERS}{_BIDI}{_INVISIBLE}]")


def sanitise(text: str) -> str:
    """Remove everything that a terminal would interpret or that is invisible."""
    if text.isascii() and text.isprintable():
        return text
    sanitiser = Sanitiser()
    return sanitiser.feed(text) + sanitiser.flush()


class Sanitiser:
    """Sanitises a stream; the result does not depend on how the text is split into chunks."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._state: SanitiserState = "text"
        self._sequence_length = 0  # length of the open sequence so far
        self._last_char = ""  # the last character that was output
        self._pending_return = False  # a carriage return; the next character decides its effect
        self._pending_joiner = ""  # a joiner; the next character decides whether it stays
        self._marks = 0  # combining marks at the end of the output

    def feed(self, chunk: str) -> str:
        out: list[str] = []
        pos = 0
        while pos < len(chunk):
            if self._state == "text":
                pos = self._feed_text(chunk, pos, out)
            elif self._state == "escape":
                pos = self._feed_escape(chunk, pos)
            elif self._state == "control":
                pos = self._feed_control(chunk, pos)
            else:
                pos = self._feed_string(chunk, pos)
        return "".join(out)

    def flush(self) -> str:
        """End the text and return pending characters; an open sequence is dropped."""
        out: list[str] = []
        self._resolve_pending("", out)
        self._reset()
        return "".join(out)

    def _feed_text(self, chunk: str, pos: int, out: list[str]) -> int:
        found = _special_pattern().search(chunk, pos)
        end = found.start() if found else len(chunk)
        if end > pos:
            self._emit(chunk[pos:end], out)
        if found is None:
            return end
        self._handle_special(found.group(), out)
        return end + 1

    def _emit(self, run: str, out: list[str]) -> None:
        if self._pending_return or self._pending_joiner:
            self._resolve_pending(run[0], out)
        run, self._marks = limit_marks(run, self._marks)
        out.append(run)
        self._last_char = run[-1:] or self._last_char

    def _handle_special(self, char: str, out: list[str]) -> None:
        """Handle one special character outside of sequences."""
        if char == "\x1b" or char in _OPENERS:
            self._state = "escape" if char == "\x1b" else _OPENERS[char]
            self._sequence_length = 0
        elif char == "\r":
            self._pending_return = True
        elif char in "\x0b\x0c\x85\u2028\u2029":
            self._emit("\n", out)
        elif "\ud800" <= char <= "\udfff":
            self._emit("\ufffd", out)
        elif char in "\u200c\u200d\ufe0e\ufe0f":
            self._resolve_pending(char, out)
            self._pending_joiner = char

    def _resolve_pending(self, next_char: str, out: list[str]) -> None:
        """Output or drop the pending characters, depending on the next character."""
        if (
            self._pending_joiner
            and not self._pending_return
            and _is_visible_joiner(self._last_char, self._pending_joiner, next_char)
        ):
            out.append(self._pending_joiner)
            self._last_char = self._pending_joiner
        self._pending_joiner = ""
        # A carriage return becomes a newline, so that later text cannot overwrite earlier text.
        if self._pending_return and next_char not in ("", "\n") and self._last_char not in ("", "\n"):
            out.append("\n")
            self._last_char = "\n"
        self._pending_return = False

    def _feed_escape(self, chunk: str, pos: int) -> int:
        char = chunk[pos]
        self._sequence_length += 1
        if self._sequence_length == 1 and char in _OPENERS and char < "\x80":
            self._state, self._sequence_length = _OPENERS[char], 0
        elif "\x20" <= char <= "\x2f" and self._sequence_length < MAX_SEQUENCE_LENGTH:
            return pos + 1
        elif "\x30" <= char <= "\x7e":
            self._state = "text"
        else:  # not a sequence: the character is text
            self._state = "text"
            return pos
        return pos + 1

    def _feed_control(self, chunk: str, pos: int) -> int:
        stop = pos + MAX_SEQUENCE_LENGTH - self._sequence_length
        inside = regex(r"[\x20-\x3f]*").match(chunk, pos, stop)
        end = inside.end() if inside else pos
        self._sequence_length += end - pos
        if end < len(chunk) or self._sequence_length >= MAX_SEQUENCE_LENGTH:
            self._state = "text"
            if end < len(chunk) and "\x40" <= chunk[end] <= "\x7e":
                return end + 1
        return end

    def _feed_string(self, chunk: str, pos: int) -> int:
        stop = pos + MAX_SEQUENCE_LENGTH - self._sequence_length
        found = self._terminator().search(chunk, pos, stop)
        if found is None:
            end = min(stop, len(chunk))
            self._sequence_length += end - pos
            if self._sequence_length >= MAX_SEQUENCE_LENGTH:
                self._state = "text"
            return end
        return self._end_string(found)

    def _terminator(self) -> Pattern[str]:
        # Titles, links and clipboard strings have one line; an open one must not remove the next line.
        return regex(r"[\x07\x18\x1a\x1b\x9c\n\r]" if self._state == "title" else r"[\x07\x18\x1a\x1b\x9c]")

    def _end_string(self, match: Match[str]) -> int:
        # ESC starts the two-character terminator or a new sequence; both are handled the same way.
        self._state = "text"
        return match.start() if match.group() in "\x1b\n\r" else match.end()


def _is_visible_joiner(before: str, joiner: str, after: str) -> bool:
    """Return whether a joiner or variation selector has a visible effect here."""
    if joiner in "\ufe0e\ufe0f":
        if before in "0123456789#*":
            return before != "" and after == "\u20e3"
        return _is_member(_PICTOGRAPHS, before)
    if joiner == "\u200d" and _is_member(_PICTOGRAPHS + r"\ufe0f", before):
        return _is_member(_PICTOGRAPHS, after)
    return _is_member(_JOINING_LETTERS, before) and _is_member(_JOINING_LETTERS, after)


def _is_member(members: str, char: str) -> bool:
    return char != "" and regex(f"[{members}]").match(char) is not None


def limit_marks(text: str, marks: int = 0, escape: Callable[[str], str] = lambda char: "") -> tuple[str, int]:
    """Replace combining marks beyond the limit by `escape`. `marks` is their number before the text.

    Returns the text and the number of marks at its end.
    """
    if text.isascii():
        return text, 0 if text else marks
    parts: list[str] = []
    pos = 0
    for match in regex(_MARKABLE).finditer(text):
        marks = marks if match.start() == 0 else 0
        parts.append(text[pos : match.start()])
        for char in match.group():
            marks = marks + 1 if _is_mark(char) else 0
            parts.append(char if marks <= MAX_COMBINING_MARKS else escape(char))
        pos = match.end()
    parts.append(text[pos:])
    return "".join(parts), 0 if pos < len(text) else marks


@cache
def _is_mark(char: str) -> bool:
    from unicodedata import category

    return category(char) in ("Mn", "Me")


def escape_invisible(text: str) -> str:
    """Replace invisible characters and piled-up marks by visible escapes, for text that the user must review."""
    text, _ = limit_marks(text, escape=lambda char: f"<U+{ord(char):04X}>")
    members = _CONTROLS + _LINE_BREAKS + _SURROGATES + _JOINERS + _BIDI + _INVISIBLE + _UNUSUAL_SPACES
    return regex(f"[{members}]").sub(_escape_char, text)


def escape_to_one_line(text: str) -> str:
    """Return a text in one line: `⏎` stands for its line breaks, and invisible characters are escaped.

    A command must not look like another one, so spaces between words are kept.
    """
    lines = (line.strip(" \t") for line in text.replace("\r\n", "\n").strip().split("\n"))
    return escape_invisible(" ⏎ ".join(filter(None, lines))).replace("\t", r"\t")


def _escape_char(match: Match[str]) -> str:
    char = match.group()
    if char == "\r":
        return r"\r"
    code = ord(char)
    return f"\\x{code:02x}" if code < 0xA0 else f"<U+{code:04X}>"
