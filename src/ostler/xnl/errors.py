"""What is wrong with a text of the notation, and where."""

from typing import Literal

Code = Literal[
    "UNEXPECTED_EOF",
    "MISMATCHED_TAG",
    "INVALID_CONTENT",
    "INVALID_LITERAL",
    "UNEXPECTED_TOKEN",
    "INVALID_CALL",
]


class XnlError(Exception):
    """One fault; `position` (from 0), `line` and `column` (from 1) count UTF-16 units, as editors do."""

    def __init__(self, code: Code, message: str, text: str = "", at: int = 0, *, past: bool = False) -> None:
        super().__init__(message)
        self.code: Code = code
        self.message = message
        self.position, self.line, self.column = _locate(text, at, past)

    def __str__(self) -> str:
        return f"{self.message} (line {self.line}, column {self.column})"


class CallError(XnlError):
    """A call expression that is not plain data; its code is always INVALID_CALL."""

    def __init__(self, message: str, text: str = "", at: int = 0) -> None:
        super().__init__("INVALID_CALL", message, text, at)


def _locate(text: str, at: int, past: bool) -> tuple[int, int, int]:
    before = text[:at]
    if past:
        # The dialect points one unit behind an unexpected character, so into the middle of a surrogate pair.
        before += text[at] if text[at] < "\U00010000" else "?"
    line_start = before.rfind("\n") + 1
    return _units(before), before.count("\n") + 1, _units(before[line_start:]) + 1


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
