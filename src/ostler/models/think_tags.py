"""Tells the reasoning that some models write between `<think>` and `</think>` from the answer that follows."""

_OPEN = "<think>"
_CLOSE = "</think>"
_MENTION_PREFIXES = frozenset(" \t`\"'([*")


class ThinkSplitter:
    """Fed an answer in pieces; gives `(is_thought, text)`. Only a block at the very beginning is reasoning.

    A closing tag that nothing opened means that the server's template did: then `lone_close` is set, and all text
    given before was reasoning. A tag behind a blank, a quote or a backtick is only spoken of.
    """

    def __init__(self) -> None:
        self.lone_close = False
        self._state = "start"
        self._untagged_state = "open"  # where an answer that begins without a tag is
        self._pending = ""
        self._tail = ""
        self._last_char = ""

    def feed(self, text: str) -> list[tuple[bool, str]]:
        """What is certain by now; the beginning of a tag is held back."""
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
        """The server sends reasoning by itself: from now on a tag in the answer is only text."""
        self._untagged_state = "answer"
        if self._state == "open":
            self._state = "answer"

    def flush(self) -> list[tuple[bool, str]]:
        """At the end, or where the stream broke off: what was held back."""
        held, self._pending = self._pending, ""
        return [(self._state == "thought", held)] if held else []

    def _feed_start(self, text: str) -> list[tuple[bool, str]]:
        begun = text.lstrip()
        if begun.startswith(_OPEN):
            self._state = "thought"
            return self._feed_thought(begun[len(_OPEN) :].removeprefix("\n"))
        if _OPEN.startswith(begun):
            self._pending = text
            return []
        self._state = self._untagged_state
        return self._feed_untagged(text) if self._state == "open" else [(False, text)]

    def _feed_untagged(self, text: str) -> list[tuple[bool, str]]:
        """Answer, as it seems; an opening tag in it makes it certain, a closing one makes it reasoning."""
        if "<" not in text and not self._tail:
            self._last_char = text[-1:] or self._last_char
            return _non_empty(False, text)
        seen = self._tail + text
        closed = text.find(_CLOSE)
        opened = seen.find(_OPEN) - len(self._tail)
        if seen.find(_OPEN) >= 0 and (closed < 0 or opened < closed):
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
    """What at the end may be the beginning of the opening tag."""
    _, begun, rest = text[1 - len(_OPEN) :].rpartition("<")
    return begun + rest if _OPEN.startswith(begun + rest) else ""


def _partial_close_length(text: str) -> int:
    """How many characters at the end may be the beginning of the closing tag."""
    return next((n for n in range(len(_CLOSE) - 1, 0, -1) if text.endswith(_CLOSE[:n])), 0)
