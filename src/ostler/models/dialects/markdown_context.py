"""Tracks whether streamed Markdown is in a quotation or in code, where calls are only quoted."""

import re

_MAX_LINE_LENGTH = 200
_LIST_MARKERS = r"[ \t]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*"
_QUOTATION = re.compile(_LIST_MARKERS + ">")
_INDENTED = re.compile(r" {4}| {0,3}\t")
_FENCE = re.compile(_LIST_MARKERS + r"(?P<marks>`{3,}|~{3,})(?P<info>.*)")
_TICKS = re.compile(r"`+|[^`]+")
_QUOTES = frozenset("\"'`“‘«")


class MarkdownContext:
    """The place in a Markdown text after everything that was fed. The result does not depend on the chunks."""

    def __init__(self) -> None:
        self._line = ""  # the start of the current line
        self._last_char = ""
        self._fence = ""  # the marks of the open fence
        self._ticks = 0  # backticks of the run at the end of the text
        self._code_ticks = 0  # backticks that opened a code span in this paragraph

    def feed(self, text: str) -> None:
        if not text:
            return
        if "\n" not in text and "`" not in text and not self._ticks:
            self._add_to_line(text)
        else:
            first, *lines = text.split("\n")
            self._feed_line(first)
            for line in lines:
                self._end_line()
                self._feed_line(line)
        self._last_char = text[-1]

    @property
    def is_quoted(self) -> bool:
        """Whether a call here is only quoted: in a quotation, in inline, indented or fenced code, or after a quote."""
        self._end_ticks()
        return (
            self._fence != ""
            or self._code_ticks > 0
            or self._last_char in _QUOTES
            or _INDENTED.match(self._line) is not None
            or _QUOTATION.match(self._line) is not None
        )

    def _add_to_line(self, text: str) -> None:
        if len(self._line) < _MAX_LINE_LENGTH:
            self._line += text[:_MAX_LINE_LENGTH]

    def _feed_line(self, text: str) -> None:
        for run in _TICKS.findall(text):
            if run[0] == "`":
                self._ticks += len(run)
            else:
                self._end_ticks()
        self._add_to_line(text)

    def _end_ticks(self) -> None:
        """Open or close a code span at the end of a run of backticks."""
        if self._ticks and not self._fence:
            self._code_ticks = {0: self._ticks, self._ticks: 0}.get(self._code_ticks, self._code_ticks)
        self._ticks = 0

    def _end_line(self) -> None:
        self._end_ticks()
        match = _FENCE.fullmatch(self._line)
        if self._fence:
            marks = self._line.strip()
            self._fence = "" if marks.startswith(self._fence) and not marks.strip(self._fence[0]) else self._fence
        elif match and (match["marks"][0] == "~" or "`" not in match["info"]):
            self._fence, self._code_ticks = match["marks"], 0
        if not self._line.strip():
            self._code_ticks = 0
        self._line, self._last_char = "", ""
