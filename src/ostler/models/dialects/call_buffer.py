"""Holds back recognized calls until the following text shows whether they are real calls."""

from collections.abc import Callable
from typing import Literal

import msgspec

from ostler.core.tools import QUOTED_CALL
from ostler.models.dialects.call_json import TextCall
from ostler.models.dialects.markdown_context import MarkdownContext

_PendingRule = Literal["line", "end"]


class CallBuffer:
    """Output buffer for text and calls. Text passes immediately; some calls wait for the end of the line or answer.

    Blanks around calls are dropped: between calls, and before the first call if there is no text before it.
    """

    def __init__(self, was_shown: Callable[[str], bool] = lambda source: False) -> None:
        """`was_shown` returns whether a call is in a text that the model was shown, and thus only quoted."""
        self.context = MarkdownContext()
        self._was_shown = was_shown
        self.at_line_start = True
        self.just_called = False
        self._output: list[str | TextCall] = []
        self._only_blanks = True
        self._blanks: list[str] = []
        self._pending_calls: list[TextCall] = []
        self._pending_source: list[str] = []
        self._rule: _PendingRule = "end"

    def take_output(self) -> list[str | TextCall]:
        """Return and remove the output so far."""
        output, self._output = self._output, []
        return output

    def add_text(self, text: str) -> None:
        """Add text that is not part of a call."""
        if not text:
            return
        if not self._pending_calls or self._resolve_pending(text):
            self._emit_text(text)
        self.context.feed(text)
        line = text[text.rfind("\n") + 1 :]
        self.at_line_start = (len(line) < len(text) or self.at_line_start) and not line.strip()

    def add_calls(self, calls: list[TextCall], source: str) -> None:
        """Add calls that are valid regardless of what follows."""
        if self._rule == "line":
            self._emit_pending()
        self._release_as_text()
        self._output += _with_source(calls, source)
        self.mark_call()

    def add_calls_if_line_ends(self, calls: list[TextCall], source: str) -> None:
        """Add calls inside a line of text: valid if nothing follows on that line."""
        if self._rule == "end":
            self._release_as_text()
        self._hold_calls(calls, source, "line")

    def add_calls_if_last(self, calls: list[TextCall], source: str) -> None:
        """Add calls that are valid if the answer ends with them."""
        if self._rule == "line":
            self._emit_pending()
        self._hold_calls(calls, source, "end")

    def mark_call(self) -> None:
        """Note that a call was emitted here."""
        self._blanks.clear()
        self._only_blanks = self.just_called = self.at_line_start = True

    def finish(self, *, more_follows: bool = False) -> None:
        """Emit what is pending at the end of the text; with `more_follows`, the reply does not end with it."""
        if more_follows and self._rule == "end":
            self._release_as_text()
        self._emit_pending()
        if not self.just_called:
            self._output += self._blanks
        self._blanks.clear()

    def _hold_calls(self, calls: list[TextCall], source: str, rule: _PendingRule) -> None:
        self._pending_calls += _with_source(calls, source)
        self._pending_source.append(source)
        self._rule = rule
        self.at_line_start = True

    def _resolve_pending(self, text: str) -> bool:
        """Emit or reject pending calls by the text after them. Return False if it is still undecided."""
        if self._rule == "line" and not text.partition("\n")[0].strip() and "\n" in text:
            self._emit_pending()
        elif text.isspace():
            self._pending_source.append(text)
            return False
        else:
            self._release_as_text()
        return True

    def _emit_pending(self) -> None:
        if self._pending_calls and self._rule == "end" and any(map(self._was_shown, self._pending_source)):
            source = "".join(self._pending_source)
            self._release_as_text()
            self._output.append(TextCall(QUOTED_CALL, source))
        elif self._pending_calls:
            self._output += self._pending_calls
            self._clear_pending()
            self.mark_call()

    def _release_as_text(self) -> None:
        """Emit the pending calls as text."""
        if self._pending_calls:
            source = "".join(self._pending_source)
            self._clear_pending()
            self._emit_text(source)

    def _clear_pending(self) -> None:
        self._pending_calls, self._pending_source, self._rule = [], [], "end"

    def _emit_text(self, text: str) -> None:
        if self._only_blanks:
            if text.isspace():
                self._blanks.append(text)
                return
            text = text.lstrip() if self.just_called else "".join(self._blanks) + text
            self._blanks.clear()
            self._only_blanks = self.just_called = False
        self._output.append(text)


def _with_source(calls: list[TextCall], source: str) -> list[TextCall]:
    """Return the calls with the text they were found in at the first one."""
    return [msgspec.structs.replace(call, source=source.strip()) for call in calls[:1]] + calls[1:]
