"""Decodes JavaScript string and template literals."""

import re

_PLAIN_RUN = {
    '"': re.compile(r'[^"\\\n\r]*'),
    "'": re.compile(r"[^'\\\n\r]*"),
    "`": re.compile(r"[^`\\\r$]*"),
}
_SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}
_LINE_CONTINUATION = re.compile("\r\n|[\n\r\u2028\u2029]")
_HEX_ESCAPE = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{0*([0-9a-fA-F]{1,6})\}")
_OCTAL = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?")
_SURROGATE = re.compile("[\ud800-\udfff]")


class StringLiteralError(Exception):
    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


def read_string(text: str, start: int) -> tuple[str, int]:
    """Decode the literal whose quote is at `start`. Return its text and the position after it."""
    quote = text[start]
    plain = _PLAIN_RUN[quote]
    parts: list[str] = []
    position = start + 1
    while True:
        run = plain.match(text, position)
        if run is not None:
            parts.append(run.group())
            position = run.end()
        if text.startswith(quote, position):
            return "".join(parts), position + 1
        if text.startswith("\\", position):
            part, position = _read_escape(text, position, quote == "`")
        elif quote == "`" and position < len(text):
            part, position = _read_template_char(text, position)
        else:
            raise StringLiteralError(
                f"Close the string with {quote} on its own line, or write a new line as \\n", start
            )
        parts.append(part)


def _read_template_char(text: str, position: int) -> tuple[str, int]:
    if text.startswith("${", position):
        raise StringLiteralError("Write the text itself: `${}` is not evaluated", position)
    if text[position] == "$":
        return "$", position + 1
    return "\n", position + (2 if text.startswith("\r\n", position) else 1)


def _read_escape(text: str, position: int, in_template: bool) -> tuple[str, int]:
    """Decode the escape at `position`. Return its text and the position after it."""
    after = position + 1
    mark = text[after : after + 1]
    if mark in _SIMPLE_ESCAPES:
        return _SIMPLE_ESCAPES[mark], after + 1
    if continuation := _LINE_CONTINUATION.match(text, after):
        return "", continuation.end()
    if mark in ("x", "u"):
        return _read_hex_escape(text, position)
    if mark.isdecimal() and mark.isascii():
        return _read_digit_escape(text, position, in_template)
    if not mark:
        raise StringLiteralError("The string ends within an escape", position)
    return mark, after + 1


def _read_hex_escape(text: str, position: int) -> tuple[str, int]:
    digits = _HEX_ESCAPE.match(text, position + 1)
    code = int(digits[1] or digits[2] or digits[3], 16) if digits else None
    if digits is None or code is None or code > 0x10FFFF:
        raise StringLiteralError("The escape must be \\xHH, \\uHHHH or \\u{H...} of a character", position)
    return chr(code), digits.end()


def _read_digit_escape(text: str, position: int, in_template: bool) -> tuple[str, int]:
    """Decode `\\0` and the legacy octal escapes that JavaScript accepts outside templates."""
    octal = _OCTAL.match(text, position + 1)
    end = octal.end() if octal else position + 2
    if in_template and (text[position + 1 : end] != "0" or text[end : end + 1].isdigit()):
        raise StringLiteralError("Octal escapes are not allowed in a template literal", position)
    return (chr(int(octal[0], 8)) if octal else text[position + 1]), end


def replace_lone_surrogates(text: str) -> str:
    """Join surrogate pairs. A lone surrogate, which cannot be encoded, becomes the replacement character."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
