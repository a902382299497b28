"""What a sed script writes to or runs: the commands `w`, `W`, `e` and the flags of `s`."""

import re

from ostler.policy.shell.args import HOLE, Arg
from ostler.policy.shell.call import NO_FEED, Call

_ADDRESS = re.compile(rf"(?:\d+|[$~+{HOLE}]|\s|,)+")
_FLAGS = re.compile(rf"[gpiImM0-9{HOLE}]*")
_BRACKET = re.compile(r"\[\^?\]?[^\]\n]{0,200}\]")
_TO_LINE_END = re.compile(r"[^\n]*")


class _Lost(Exception):
    """The script is not one that is understood."""


def judge(script: str, call: Call) -> str:
    """Why a sed script must be asked for."""
    if not script.strip(HOLE + " "):
        return "runs a sed script that is known only when it runs" if script.strip() else ""
    try:
        return _Script(script, call).why()
    except (_Lost, IndexError):
        return "runs a sed script that is not understood"


class _Script:
    """A cursor over a sed script."""

    def __init__(self, text: str, call: Call) -> None:
        self.text = text
        self.call = call
        self.at = 0

    def why(self) -> str:
        while True:
            self._skip(" \t\n;{}")
            if self.at >= len(self.text):
                return ""
            self._addresses()
            if why := self._command():
                return why

    def _skip(self, characters: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in characters:
            self.at += 1

    def _addresses(self) -> None:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "/" or (char == "\\" and self.at + 1 < len(self.text)):
                self.at += char == "\\"
                self._delimited()
                self._skip("IM")
            elif found := _ADDRESS.match(self.text, self.at):
                self.at = found.end()
            elif char == "!":
                self.at += 1
            else:
                return

    def _delimited(self, *, regex: bool = True) -> None:
        """From one delimiter to the next one; in a regular expression brackets hide it."""
        delimiter = self.text[self.at]
        self.at += 1
        while self.text[self.at] != delimiter:
            bracket = _BRACKET.match(self.text, self.at) if regex else None
            self.at = bracket.end() if bracket else self.at + 1 + (self.text[self.at] == "\\")
        self.at += 1

    def _command(self) -> str:
        letter = self.text[self.at : self.at + 1]
        self.at += 1
        if letter in {"s", "y"}:
            return self._substitution(letter)
        if letter in {"w", "W"}:
            return self._file()
        if letter == "e":
            return self._run()
        if letter in {"a", "i", "c"}:
            self._text()
        elif letter in {"r", "R", "b", "t", "T", ":", "#", "q", "Q", "l", "L", "v"}:
            stop = "\n" if letter in {"r", "R", "#"} else "\n;" if letter == ":" else "\n;}"
            while self.at < len(self.text) and self.text[self.at] not in stop:
                self.at += 1
        elif (letter and letter not in "dDgGhHnNpPxzF={}\n; ") or (not letter and self.text.endswith(HOLE)):
            raise _Lost
        return ""

    def _substitution(self, letter: str) -> str:
        self._delimited(regex=letter == "s")
        self.at -= 1
        self._delimited(regex=False)
        if letter == "y":
            return ""
        flags = _FLAGS.match(self.text, self.at)
        self.at = flags.end() if flags else self.at
        follows = self.text[self.at : self.at + 1]
        if follows == "e":
            return "sed runs what it has put together"
        if follows == "w":
            self.at += 1
            return self._file()
        if follows not in {"", "\n", ";", "}", " ", "\t", "#"}:
            raise _Lost
        return ""

    def _line(self) -> str:
        found = _TO_LINE_END.match(self.text, self.at)
        line = found.group() if found else ""
        self.at += len(line)
        return line.strip()

    def _text(self) -> None:
        while self._line().endswith("\\"):
            self.at += 1

    def _file(self) -> str:
        return self.call.overwrites(Arg(self._line()))

    def _run(self) -> str:
        command = self._line()
        if not command:
            return "sed runs the lines it reads"
        self.call.text(command, NO_FEED)
        return ""
