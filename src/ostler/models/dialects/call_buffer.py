"""What leaves the recogniser: text and calls in order, with calls kept back until what follows decides on them."""

from typing import Literal

from ostler.models.dialects.call_json import TextCall

_PendingRule = Literal["line", "end"]


class CallBuffer:
    """Text passes at once. Calls that are only meant if a line or the answer ends behind them wait for that.

    Blanks around calls are nothing to show: they are dropped between calls, and before the first if no word was said.
    """

    def __init__(self) -> None:
        self.last_char = ""
        self.at_line_start = True
        self.just_called = False
        self._output: list[str | TextCall] = []
        self._has_text = False
        self._only_blanks = True
        self._blanks: list[str] = []
        self._pending_calls: list[TextCall] = []
        self._pending_source: list[str] = []
        self._rule: _PendingRule = "end"

    def take_output(self) -> list[str | TextCall]:
        """What there is to pass on now."""
        out, self._output = self._output, []
        return out

    def add_text(self, text: str) -> None:
        """Text that is no call."""
        if not text:
            return
        if not self._pending_calls or self._resolve_pending(text):
            self._emit_text(text)
        self.last_char = text[-1]
        line = text[text.rfind("\n") + 1 :]
        self.at_line_start = (len(line) < len(text) or self.at_line_start) and not line.strip()

    def add_calls(self, calls: list[TextCall]) -> None:
        """Calls that are meant, whatever follows."""
        if self._rule == "line":
            self._emit_pending()
        self._release_as_text()
        self._output += calls
        self.mark_call()

    def add_calls_if_line_ends(self, calls: list[TextCall], source: str) -> None:
        """Calls within a line of words."""
        if self._rule == "end":
            self._release_as_text()
        self._hold_calls(calls, source, "line")

    def add_calls_if_first_or_last(self, calls: list[TextCall], source: str) -> None:
        """Calls that nothing marks as such: meant if the answer begins or ends with them."""
        if self._has_text or self._pending_calls:
            self.add_calls_if_last(calls, source)
        else:
            self.add_calls(calls)

    def add_calls_if_last(self, calls: list[TextCall], source: str) -> None:
        """Calls that are meant if the answer ends with them."""
        if self._rule == "line":
            self._emit_pending()
        self._hold_calls(calls, source, "end")

    def mark_call(self) -> None:
        """Calls were passed on here."""
        self._blanks.clear()
        self._only_blanks = self.just_called = self.at_line_start = True
        self.last_char = ""

    def finish(self) -> None:
        """The answer is over."""
        self._emit_pending()
        if not self.just_called:
            self._output += self._blanks
        self._blanks.clear()

    def _hold_calls(self, calls: list[TextCall], source: str, rule: _PendingRule) -> None:
        self._pending_calls += calls
        self._pending_source.append(source)
        self._rule = rule
        self.at_line_start, self.last_char = True, ""

    def _resolve_pending(self, text: str) -> bool:
        """Whether text after waiting calls settled what becomes of them."""
        if self._rule == "line" and not text.partition("\n")[0].strip() and "\n" in text:
            self._emit_pending()
        elif text.isspace():
            self._pending_source.append(text)
            return False
        else:
            self._release_as_text()
        return True

    def _emit_pending(self) -> None:
        if self._pending_calls:
            self._output += self._pending_calls
            self._clear_pending()
            self.mark_call()

    def _release_as_text(self) -> None:
        """The waiting calls were only words."""
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
            self._has_text = True
        self._output.append(text)
