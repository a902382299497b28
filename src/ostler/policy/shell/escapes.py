"""Decodes the backslash escapes of `$'…'`, `echo -e` and `printf`."""

import re

_NAMED = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|(0?[0-7]{1,3})|c(.)|(.))", re.DOTALL
)


def decode_ansi_c(text: str) -> str:
    """Decode the text inside `$'…'`; the result ends at a NUL character, as in a shell."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(_decode, text).partition("\0")[0]


def _decode(match: re.Match[str]) -> str:
    two, four, eight, octal, control, other = match.groups()
    if number := two or four or eight:
        code = int(number, 16)
        return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "�"
    if octal:
        return chr(int(octal, 8) & 0xFF)
    if control:
        return chr(ord(control[0]) & 0x1F)
    return _NAMED.get(other, other if other in "\\'\"?" else "\\" + other)
