"""Finds file writes and commands in a sed script: `w`, `W`, `e` and the flags of `s`."""

import re

from ostler.policy.shell.command_call import NO_STDIN, CommandCall
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord

_ADDRESS = re.compile(rf"(?:\d+|[$~+{UNKNOWN_TEXT}]|\s|,)+")
_FLAGS = re.compile(rf"[gpiImM0-9{UNKNOWN_TEXT}]*")
_BRACKET = re.compile(r"\[\^?\]?[^\]\n]{0,200}\]")
_TO_LINE_END = re.compile(r"[^\n]*")


class _SedSyntaxError(Exception):
    """Raised when a sed script cannot be parsed."""


def danger_reason(script: str, call: CommandCall) -> str:
    """Return why a sed script needs approval, or an empty string. Commands in it are evaluated through `call`."""
    if not script.strip(UNKNOWN_TEXT + " "):
        return "runs a sed script that is known only at run time" if script.strip() else ""
    try:
        return _SedParser(script, call).find_reason()
    except (_SedSyntaxError, IndexError):
        return "runs a sed script that cannot be parsed"


class _SedParser:
    """Parses a sed script up to the first dangerous command."""

    def __init__(self, text: str, call: CommandCall) -> None:
        self.text = text
        self.call = call
        self.pos = 0

    def find_reason(self) -> str:
        while True:
            self._skip(" \t\n;{}")
            if self.pos >= len(self.text):
                return ""
            self._skip_addresses()
            if reason := self._command_reason():
                return reason

    def _skip(self, characters: str) -> None:
        while self.pos < len(self.text) and self.text[self.pos] in characters:
            self.pos += 1

    def _skip_addresses(self) -> None:
        while self.pos < len(self.text):
            char = self.text[self.pos]
            if char == "/" or (char == "\\" and self.pos + 1 < len(self.text)):
                self.pos += char == "\\"
                self._skip_delimited()
                self._skip("IM")
            elif found := _ADDRESS.match(self.text, self.pos):
                self.pos = found.end()
            elif char == "!":
                self.pos += 1
            else:
                return

    def _skip_delimited(self, *, regex: bool = True) -> None:
        """Skip to the next delimiter; in a regular expression, a delimiter in brackets does not end it."""
        delimiter = self.text[self.pos]
        self.pos += 1
        while self.text[self.pos] != delimiter:
            bracket = _BRACKET.match(self.text, self.pos) if regex else None
            self.pos = bracket.end() if bracket else self.pos + 1 + (self.text[self.pos] == "\\")
        self.pos += 1

    def _command_reason(self) -> str:
        name = self.text[self.pos : self.pos + 1]
        self.pos += 1
        if name in {"s", "y"}:
            return self._substitution_reason(name)
        if name in {"w", "W"}:
            return self._write_reason()
        if name == "e":
            return self._run_reason()
        if name in {"a", "i", "c"}:
            self._skip_text()
        elif name in {"r", "R", "b", "t", "T", ":", "#", "q", "Q", "l", "L", "v"}:
            stop = "\n" if name in {"r", "R", "#"} else "\n;" if name == ":" else "\n;}"
            while self.pos < len(self.text) and self.text[self.pos] not in stop:
                self.pos += 1
        elif (name and name not in "dDgGhHnNpPxzF={}\n; ") or (not name and self.text.endswith(UNKNOWN_TEXT)):
            raise _SedSyntaxError
        return ""

    def _substitution_reason(self, letter: str) -> str:
        self._skip_delimited(regex=letter == "s")
        self.pos -= 1
        self._skip_delimited(regex=False)
        if letter == "y":
            return ""
        flags = _FLAGS.match(self.text, self.pos)
        self.pos = flags.end() if flags else self.pos
        follows = self.text[self.pos : self.pos + 1]
        if follows == "e":
            return "sed runs the result of a substitution"
        if follows == "w":
            self.pos += 1
            return self._write_reason()
        if follows not in {"", "\n", ";", "}", " ", "\t", "#"}:
            raise _SedSyntaxError
        return ""

    def _read_line(self) -> str:
        found = _TO_LINE_END.match(self.text, self.pos)
        line = found.group() if found else ""
        self.pos += len(line)
        return line.strip()

    def _skip_text(self) -> None:
        while self._read_line().endswith("\\"):
            self.pos += 1

    def _write_reason(self) -> str:
        return self.call.overwrite_reason(ExpandedWord(self._read_line()))

    def _run_reason(self) -> str:
        command = self._read_line()
        if not command:
            return "sed runs the lines it reads"
        self.call.evaluate_text(command, NO_STDIN)
        return ""
