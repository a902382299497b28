"""What leaves the recogniser: text and calls in order, with calls kept back until what follows decides on them."""

from typing import Literal

from ostler.models.dialects.call_json import TextCall

_Rule = Literal["line", "end"]


class Outlet:
    """Text passes at once. Calls that are only meant if a line or the answer ends behind them wait for that.

    Blanks around calls are nothing to show: they are dropped between calls, and before the first if no word was said.
    """

    def __init__(self) -> None:
        self.last = ""
        self.at_line_start = True
        self.just_called = False
        self._out: list[str | TextCall] = []
        self._spoken = False
        self._quiet = True
        self._blanks: list[str] = []
        self._waiting: list[TextCall] = []
        self._source: list[str] = []
        self._rule: _Rule = "end"

    def take(self) -> list[str | TextCall]:
        """What there is to pass on now."""
        out, self._out = self._out, []
        return out

    def say(self, text: str) -> None:
        """Text that is no call."""
        if not text:
            return
        if not self._waiting or self._decide(text):
            self._put(text)
        self.last = text[-1]
        line = text[text.rfind("\n") + 1 :]
        self.at_line_start = (len(line) < len(text) or self.at_line_start) and not line.strip()

    def call(self, calls: list[TextCall]) -> None:
        """Calls that are meant, whatever follows."""
        if self._rule == "line":
            self._run_waiting()
        self._release()
        self._out += calls
        self.called()

    def call_if_line_ends(self, calls: list[TextCall], source: str) -> None:
        """Calls within a line of words."""
        if self._rule == "end":
            self._release()
        self._wait(calls, source, "line")

    def call_if_first_or_last(self, calls: list[TextCall], source: str) -> None:
        """Calls that nothing marks as such: meant if the answer begins or ends with them."""
        if self._spoken or self._waiting:
            self.call_if_last(calls, source)
        else:
            self.call(calls)

    def call_if_last(self, calls: list[TextCall], source: str) -> None:
        """Calls that are meant if the answer ends with them."""
        if self._rule == "line":
            self._run_waiting()
        self._wait(calls, source, "end")

    def called(self) -> None:
        """Calls were passed on here."""
        self._blanks.clear()
        self._quiet = self.just_called = self.at_line_start = True
        self.last = ""

    def end(self) -> None:
        """The answer is over."""
        self._run_waiting()
        if not self.just_called:
            self._out += self._blanks
        self._blanks.clear()

    def _wait(self, calls: list[TextCall], source: str, rule: _Rule) -> None:
        self._waiting += calls
        self._source.append(source)
        self._rule = rule
        self.at_line_start, self.last = True, ""

    def _decide(self, text: str) -> bool:
        """Whether text after waiting calls settled what becomes of them."""
        if self._rule == "line" and not text.partition("\n")[0].strip() and "\n" in text:
            self._run_waiting()
        elif text.isspace():
            self._source.append(text)
            return False
        else:
            self._release()
        return True

    def _run_waiting(self) -> None:
        if self._waiting:
            self._out += self._waiting
            self._forget()
            self.called()

    def _release(self) -> None:
        """The waiting calls were only words."""
        if self._waiting:
            source = "".join(self._source)
            self._forget()
            self._put(source)

    def _forget(self) -> None:
        self._waiting, self._source, self._rule = [], [], "end"

    def _put(self, text: str) -> None:
        if self._quiet:
            if text.isspace():
                self._blanks.append(text)
                return
            text = text.lstrip() if self.just_called else "".join(self._blanks) + text
            self._blanks.clear()
            self._quiet = self.just_called = False
            self._spoken = True
        self._out.append(text)
