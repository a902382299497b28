"""Separates `<think>` reasoning from the answer."""

_OPEN = "<think>"
_CLOSE = "</think>"
_MENTION_PREFIXES = frozenset(" \t`\"'([*")


class ThinkSplitter:
    """Splits a streamed answer into `(is_thought, text)` pairs. Only a block at the start is reasoning.

    A closing tag without an opening one means that the chat template opened it: `lone_close` is set, and all earlier
    text was reasoning. A tag after a blank, a quote or a backtick is only a mention.
    """

    def __init__(self) -> None:
        self.lone_close = False
        self._state = "start"
        self._untagged_state = "open"  # the state of an answer without a tag at its start
        self._pending = ""
        self._tail = ""
        self._last_char = ""

    def feed(self, text: str) -> list[tuple[bool, str]]:
        """Return the text classified so far; a partial tag at the end is held back."""
        if self._state == "answer":
            return [(False, text)]
        text, self._pending = self._pending + text, ""
        if self._state == "open":
            return self._feed_untagged(text)
        if self._state == "start":
            return self._feed_start(text)
        if self._state == "thought":
            return self._feed_thought(text)
        return self._feed_after(text)

    def ignore_tags(self) -> None:
        """Treat tags in an untagged answer as text, because the server sends reasoning separately."""
        self._untagged_state = "answer"
        if self._state == "open":
            self._state = "answer"

    def flush(self) -> list[tuple[bool, str]]:
        """Return the text held back, at the end of the stream or where it broke off."""
        pending, self._pending = self._pending, ""
        return [(self._state == "thought", pending)] if pending else []

    def _feed_start(self, text: str) -> list[tuple[bool, str]]:
        stripped = text.lstrip()
        if stripped.startswith(_OPEN):
            self._state = "thought"
            return self._feed_thought(stripped[len(_OPEN) :].removeprefix("\n"))
        if _OPEN.startswith(stripped):
            self._pending = text
            return []
        self._state = self._untagged_state
        return self._feed_untagged(text) if self._state == "open" else [(False, text)]

    def _feed_untagged(self, text: str) -> list[tuple[bool, str]]:
        """Handle text without a tag at its start: an opening tag makes it an answer, a closing tag reasoning."""
        if "<" not in text and not self._tail:
            self._last_char = text[-1:] or self._last_char
            return _non_empty(False, text)
        combined = self._tail + text
        closed = text.find(_CLOSE)
        opened = combined.find(_OPEN) - len(self._tail)
        if combined.find(_OPEN) >= 0 and (closed < 0 or opened < closed):
            self._state = "answer"
            return _non_empty(False, text)
        if closed >= 0:
            return self._close_untagged(text, closed)
        keep = _partial_close_length(text)
        text, self._pending = text[: len(text) - keep], text[len(text) - keep :]
        self._tail = _partial_open_tag(self._tail + text)
        self._last_char = text[-1:] or self._last_char
        return _non_empty(False, text)

    def _close_untagged(self, text: str, index: int) -> list[tuple[bool, str]]:
        before, rest = text[:index], text[index + len(_CLOSE) :]
        if (before or self._last_char)[-1:] in _MENTION_PREFIXES:
            self._state = "answer"
            return _non_empty(False, text)
        self.lone_close = True
        self._state = "after"
        return [*_non_empty(True, before.removesuffix("\n")), *self._feed_after(rest)]

    def _feed_thought(self, text: str) -> list[tuple[bool, str]]:
        thought, closed, rest = text.partition(_CLOSE)
        if closed:
            self._state = "after"
            return [*_non_empty(True, thought.removesuffix("\n")), *self._feed_after(rest)]
        keep = _partial_close_length(text)
        self._pending = text[len(text) - keep :]
        return _non_empty(True, text[: len(text) - keep])

    def _feed_after(self, text: str) -> list[tuple[bool, str]]:
        text = text.lstrip()
        if not text:
            return []
        self._state = "answer"
        return [(False, text)]


def _non_empty(is_thought: bool, text: str) -> list[tuple[bool, str]]:
    return [(is_thought, text)] if text else []


def _partial_open_tag(text: str) -> str:
    """Return the end of the text that may be the start of the opening tag."""
    _, bracket, rest = text[1 - len(_OPEN) :].rpartition("<")
    return bracket + rest if _OPEN.startswith(bracket + rest) else ""


def _partial_close_length(text: str) -> int:
    """Return how many characters at the end may be the start of the closing tag."""
    return next((n for n in range(len(_CLOSE) - 1, 0, -1) if text.endswith(_CLOSE[:n])), 0)
