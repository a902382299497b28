"""XNL errors with code, line and column."""

from typing import Literal

XnlErrorCode = Literal[
    "UNEXPECTED_EOF",
    "MISMATCHED_TAG",
    "INVALID_CONTENT",
    "INVALID_LITERAL",
    "UNEXPECTED_TOKEN",
    "INVALID_CALL",
]


class XnlError(Exception):
    """An error in a text. `position` (from 0), `line` and `column` (from 1) count UTF-16 units, as editors do."""

    def __init__(
        self, code: XnlErrorCode, message: str, text: str = "", offset: int = 0, *, after_char: bool = False
    ) -> None:
        super().__init__(message)
        self.code: XnlErrorCode = code
        self.message = message
        self.position, self.line, self.column = _locate(text, offset, after_char)

    def __str__(self) -> str:
        return f"{self.message} (line {self.line}, column {self.column})"


class CallError(XnlError):
    """An invalid call expression. Its code is always INVALID_CALL."""

    def __init__(self, message: str, text: str = "", offset: int = 0) -> None:
        super().__init__("INVALID_CALL", message, text, offset)


def _locate(text: str, offset: int, after_char: bool) -> tuple[int, int, int]:
    before = text[:offset]
    if after_char:
        # By convention the position is one unit after an unexpected character: in the middle of a surrogate pair.
        before += text[offset] if text[offset] < "\U00010000" else "?"
    line_start = before.rfind("\n") + 1
    return _utf16_length(before), before.count("\n") + 1, _utf16_length(before[line_start:]) + 1


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
