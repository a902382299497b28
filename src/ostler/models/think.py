"""Tells the reasoning that some models write between `<think>` and `</think>` from the answer that follows."""

_OPEN = "<think>"
_CLOSE = "</think>"
_MENTIONED_AFTER = frozenset(" \t`\"'([*")


class ThinkSplitter:
    """Fed an answer in pieces; gives `(is_thought, text)`. Only a block at the very beginning is reasoning.

    A closing tag that nothing opened means that the server's template did: then `lone_close` is set, and all text
    given before was reasoning. A tag behind a blank, a quote or a backtick is only spoken of.
    """

    def __init__(self) -> None:
        self.lone_close = False
        self._place = "start"
        self._unmarked = "open"  # where an answer that begins without a tag is
        self._held = ""
        self._tail = ""
        self._last = ""

    def feed(self, text: str) -> list[tuple[bool, str]]:
        """What is certain by now; the beginning of a tag is held back."""
        if self._place == "answer":
            return [(False, text)]
        text, self._held = self._held + text, ""
        if self._place == "open":
            return self._unless_closed(text)
        if self._place == "start":
            return self._start(text)
        if self._place == "thought":
            return self._thought(text)
        return self._after(text)

    def told_apart(self) -> None:
        """The server sends reasoning by itself: from now on a tag in the answer is only text."""
        self._unmarked = "answer"
        if self._place == "open":
            self._place = "answer"

    def flush(self) -> list[tuple[bool, str]]:
        """At the end, or where the stream broke off: what was held back."""
        held, self._held = self._held, ""
        return [(self._place == "thought", held)] if held else []

    def _start(self, text: str) -> list[tuple[bool, str]]:
        begun = text.lstrip()
        if begun.startswith(_OPEN):
            self._place = "thought"
            return self._thought(begun[len(_OPEN) :].removeprefix("\n"))
        if _OPEN.startswith(begun):
            self._held = text
            return []
        self._place = self._unmarked
        return self._unless_closed(text) if self._place == "open" else [(False, text)]

    def _unless_closed(self, text: str) -> list[tuple[bool, str]]:
        """Answer, as it seems; an opening tag in it makes it certain, a closing one makes it reasoning."""
        if "<" not in text and not self._tail:
            self._last = text[-1:] or self._last
            return _some(False, text)
        seen = self._tail + text
        closed = text.find(_CLOSE)
        opened = seen.find(_OPEN) - len(self._tail)
        if seen.find(_OPEN) >= 0 and (closed < 0 or opened < closed):
            self._place = "answer"
            return _some(False, text)
        if closed >= 0:
            return self._close(text, closed)
        keep = _tag_begun(text)
        text, self._held = text[: len(text) - keep], text[len(text) - keep :]
        self._tail = _opening_begun(self._tail + text)
        self._last = text[-1:] or self._last
        return _some(False, text)

    def _close(self, text: str, at: int) -> list[tuple[bool, str]]:
        before, rest = text[:at], text[at + len(_CLOSE) :]
        if (before or self._last)[-1:] in _MENTIONED_AFTER:
            self._place = "answer"
            return _some(False, text)
        self.lone_close = True
        self._place = "after"
        return [*_some(True, before.removesuffix("\n")), *self._after(rest)]

    def _thought(self, text: str) -> list[tuple[bool, str]]:
        thought, closed, rest = text.partition(_CLOSE)
        if closed:
            self._place = "after"
            return [*_some(True, thought.removesuffix("\n")), *self._after(rest)]
        keep = _tag_begun(text)
        self._held = text[len(text) - keep :]
        return _some(True, text[: len(text) - keep])

    def _after(self, text: str) -> list[tuple[bool, str]]:
        text = text.lstrip()
        if not text:
            return []
        self._place = "answer"
        return [(False, text)]


def _some(is_thought: bool, text: str) -> list[tuple[bool, str]]:
    return [(is_thought, text)] if text else []


def _opening_begun(text: str) -> str:
    """What at the end may be the beginning of the opening tag."""
    _, begun, rest = text[1 - len(_OPEN) :].rpartition("<")
    return begun + rest if _OPEN.startswith(begun + rest) else ""


def _tag_begun(text: str) -> int:
    """How many characters at the end may be the beginning of the closing tag."""
    return next((n for n in range(len(_CLOSE) - 1, 0, -1) if text.endswith(_CLOSE[:n])), 0)
