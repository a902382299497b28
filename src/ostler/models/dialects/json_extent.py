"""Where a JSON object or array ends, found while it arrives."""

import re
from typing import Literal

_OUTSIDE = re.compile(r'["{}\[\]]|[^\s\w:,.+-]')
_INSIDE = re.compile(r'["\\]')
_CLOSER = {"{": "}", "[": "]"}
_MAX_DEPTH = 200


class JsonExtent:
    """Feed it text that begins with a bracket; each character is looked at once.

    `state` becomes "whole" at the closing bracket, and "broken" where JSON cannot go on.
    """

    def __init__(self) -> None:
        self.state: Literal["open", "whole", "broken"] = "open"
        self._closers: list[str] = []
        self._in_string = False
        self._escaped = False

    def feed(self, text: str, start: int = 0) -> int:
        """Where it ended or broke, else the text's length."""
        while start < len(text):
            if self._escaped:
                self._escaped = False
                start += 1
                continue
            found = (_INSIDE if self._in_string else _OUTSIDE).search(text, start)
            if found is None:
                return len(text)
            start = found.end()
            self._handle_mark(found[0])
            if self.state == "broken":
                return found.start()
            if self.state == "whole":
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
            self.state = "open" if self._closers else "whole"
        else:
            self.state = "broken"
