"""Splits the bytes of an answer into values: server-sent events, JSON lines, one JSON value or plain text.

The splitter of `http` drops the names of events, which an answer needs, so this module has its own.
"""

import codecs
from collections.abc import Iterator
from typing import Any, Literal

from ostler.wire.agent_zero.loose_values import NOT_JSON, parse_json

StreamMode = Literal["auto", "sse", "jsonl"]
_Format = Literal["unknown", "sse", "jsonl", "plain"]
_ENDS = ("[DONE]", "[FINISH]")
_SSE_FIELDS = ("data:", "event:", "id:", "retry:", ":")
_JSONL_TYPES = ("ndjson", "jsonl", "json-seq", "json-lines", "jsonlines")


class AnswerReader:
    """Returns values as their bytes arrive. `ended` is True after the end marker of a stream.

    `page` is the answer if it was a web page and has no values; it is known at the end.
    """

    def __init__(self, content_type: str = "", mode: StreamMode = "auto") -> None:
        self.ended = False
        self.page = ""
        self._format = _detect_format(content_type.lower(), mode)
        self._is_html = "html" in content_type.lower()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._scanned = 0
        self._event = ""
        self._data: list[str] = []
        self._unparsed: list[str] = []

    def feed(self, data: bytes) -> list[Any]:
        """Return the values that these bytes complete."""
        return list(self._feed(self._decoder.decode(data)))

    def finish(self) -> list[Any]:
        """Return the remaining values at the end of the answer, also if its last line or event is incomplete."""
        return list(self._finish(self._decoder.decode(b"", True)))

    def _feed(self, text: str) -> Iterator[Any]:
        self._pending += text
        if self._format == "unknown" and not self._recognise():
            return
        if self._format == "plain":
            return
        for line in self._complete_lines():
            yield from self._line(line)

    def _recognise(self) -> bool:
        """Find the format of an answer without a useful content type. Return False while that is impossible."""
        text = self._pending.lstrip("\ufeff \t\r\n")
        if text.startswith(_SSE_FIELDS):
            self._format = "sse"
        elif text and any(field.startswith(text) for field in _SSE_FIELDS):
            return False
        elif text.startswith(("{", "[", '"')) and "\n" in text:
            first, _, rest = text.partition("\n")
            if not rest.strip():
                return False
            self._format = "plain" if parse_json(first) is NOT_JSON else "jsonl"
        elif text and not text.startswith(("{", "[", '"')):
            self._format = "plain"
        return self._format != "unknown"

    def _complete_lines(self) -> Iterator[str]:
        """Yield the complete lines. A line may end with LF, CRLF or CR."""
        text = self._pending
        end = max(text.rfind("\n", self._scanned), text.rfind("\r", self._scanned, len(text) - 1))
        if end < 0:
            self._scanned = max(len(text) - 1, 0)
            return
        self._pending, self._scanned = text[end + 1 :], 0
        yield from text[: end + 1].replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]

    def _finish(self, text: str) -> Iterator[Any]:
        yield from self._feed(text)
        rest, self._pending, self._scanned = self._pending, "", 0
        if self._format in ("unknown", "plain"):
            values = list(_plain_values(rest))
            if self._is_html and values == [rest.removeprefix("\ufeff")]:
                self.page = rest
            else:
                yield from values
            return
        for line in rest.splitlines():
            yield from self._line(line)
        yield from self._dispatch() if self._format == "sse" else self._take_unparsed()

    def _line(self, line: str) -> Iterator[Any]:
        if self._format == "sse":
            yield from self._sse_line(line)
        else:
            yield from self._json_line(line)

    def _sse_line(self, line: str) -> Iterator[Any]:
        line = line.removeprefix("\ufeff")
        if not line:
            yield from self._dispatch()
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name not in ("", "id", "retry"):
            self._data.append(line)  # not a field of the format, so it is text

    def _dispatch(self) -> Iterator[Any]:
        """Yield the value of the event whose lines were read."""
        data, event = "\n".join(self._data), self._event
        self._data, self._event = [], ""
        if data.strip() in _ENDS:
            self.ended = True
        elif data:
            yield _event_value(data, "" if event == "message" else event)

    def _json_line(self, line: str) -> Iterator[Any]:
        line = line.removeprefix("\x1e").removeprefix("\ufeff")
        if not line.strip():
            return
        if line.strip() in _ENDS:
            self.ended = True
            return
        open_object = bool(self._unparsed) and self._unparsed[0][:1] in ("{", "[")
        if open_object and line.rstrip() in ("}", "]"):
            value = parse_json("\n".join((*self._unparsed, line)))  # an object over several lines
            if value is not NOT_JSON:
                self._unparsed = []
        else:
            value = NOT_JSON if open_object and line[:1] != "{" else parse_json(line)
        if value is NOT_JSON:
            self._unparsed.append(line)
            return
        yield from self._take_unparsed()
        yield value

    def _take_unparsed(self) -> Iterator[Any]:
        text, self._unparsed = "\n".join(self._unparsed), []
        if text:
            yield text


def _detect_format(content_type: str, mode: StreamMode) -> _Format:
    if "event-stream" in content_type:
        return "sse"
    if any(name in content_type for name in _JSONL_TYPES):
        return "jsonl"
    if "json" in content_type or "html" in content_type:
        return "unknown"  # some servers send streams with these types
    return mode if mode != "auto" else "unknown"


def _plain_values(text: str) -> Iterator[Any]:
    """Yield the JSON value, the values of JSON lines, or the text itself."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        return
    value = parse_json(text)
    if value is not NOT_JSON:
        yield value
        return
    lines = [parse_json(line) for line in text.splitlines() if line.strip()] if text.lstrip()[:1] in "{[" else []
    if len(lines) > 1 and all(line is not NOT_JSON for line in lines):
        yield from lines
    else:
        yield text


def _event_value(data: str, event: str) -> Any:
    """Return the value of a server-sent event; its name is used if the data has no type of its own."""
    value = parse_json(data)
    if value is NOT_JSON:
        return {"type": event, "content": data} if event else {"delta": {"content": data}}
    if event and isinstance(value, dict) and "type" not in value:
        return {"type": event, **value}
    if event and isinstance(value, str):
        return {"type": event, "content": value}
    return value
