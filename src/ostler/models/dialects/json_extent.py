"""Finds the end of a JSON object or array in streamed text."""

import re
from typing import Literal

_OUTSIDE = re.compile(r'["{}\[\]]|[^\s\w:,.+-]')
_INSIDE = re.compile(r'["\\]')
_CLOSER = {"{": "}", "[": "]"}
_MAX_DEPTH = 200


class JsonExtent:
    """Scans text that starts with a bracket, each character once.

    `state` becomes "complete" at the closing bracket, and "broken" at a character that is not valid JSON.
    """

    def __init__(self) -> None:
        self.state: Literal["open", "complete", "broken"] = "open"
        self._closers: list[str] = []
        self._in_string = False
        self._escaped = False

    def feed(self, text: str, start: int = 0) -> int:
        """Scan `text` from `start`. Return the index where the JSON ended or broke, else the length of the text."""
        while start < len(text):
            if self._escaped:
                self._escaped = False
                start += 1
                continue
            match = (_INSIDE if self._in_string else _OUTSIDE).search(text, start)
            if match is None:
                return len(text)
            start = match.end()
            self._handle_mark(match[0])
            if self.state == "broken":
                return match.start()
            if self.state == "complete":
                return start
        return start

    def _handle_mark(self, mark: str) -> None:
        if self._in_string:
            self._escaped = mark == "\\"
            self._in_string = self._escaped
        elif mark == '"':
            self._in_string = True
        elif mark in _CLOSER and len(self._closers) < _MAX_DEPTH:
            self._closers.append(_CLOSER[mark])
        elif self._closers and mark == self._closers[-1]:
            self._closers.pop()
            self.state = "open" if self._closers else "complete"
        else:
            self.state = "broken"
