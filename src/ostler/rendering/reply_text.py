"""Follows the text of one reply and returns what is new, also if the reply is requested again."""

from typing import NamedTuple


class NewText(NamedTuple):
    """Text to show next. `replaces`: it starts the reply again, because it differs from the text shown so far."""

    text: str
    replaces: bool = False


class ReplyText:
    """The text of one reply. A second attempt is not shown again as far as it repeats the first."""

    def __init__(self) -> None:
        self._chunks: list[str] = []
        self._shown = ""  # the text of an earlier attempt, while the current one repeats it
        self._repeated = 0

    def add(self, text: str) -> NewText:
        """Add a delta."""
        if not self._shown:
            self._chunks.append(text)
            return NewText(text)
        rest = self._shown[self._repeated : self._repeated + len(text)]
        if not text.startswith(rest):
            return self._replace_shown(self._shown[: self._repeated] + text)
        self._repeated += len(rest)
        if self._repeated < len(self._shown):
            return NewText("")
        self._chunks, self._shown, self._repeated = [self._shown, text[len(rest) :]], "", 0
        return NewText(text[len(rest) :])

    def set(self, text: str) -> NewText:
        """Set the whole text so far, which may be that of a new attempt."""
        shown = self._shown or "".join(self._chunks)
        received = shown[: self._repeated] if self._shown else shown
        if text.startswith(received):
            return self.add(text[len(received) :])
        self._chunks, self._shown, self._repeated = [], shown, 0
        return self.add(text)

    def finish(self, text: str) -> NewText:
        """Set the final text. An empty one replaces nothing: there is nothing to show instead."""
        new = self.set(text)
        return self._replace_shown(text) if self._shown and text else new

    def _replace_shown(self, text: str) -> NewText:
        self._chunks, self._shown, self._repeated = [text], "", 0
        return NewText(text, replaces=True)
