"""The four ways a headless run speaks: text, simple, json, jsonl."""

import sys
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TextIO

import msgspec

from ostler.drawing.paint import Paint
from ostler.drawing.waiting import WaitingLines
from ostler.faces.printer.aside import say
from ostler.faces.printer.summary import Summary
from ostler.session.transcript import Block, CallBlock, PromptBlock, TextBlock, TodosBlock, Transcript
from ostler.text.sanitise import sanitise
from ostler.vocabulary.events import Envelope, Event
from ostler.wire.codec import encode_envelope

if TYPE_CHECKING:
    from ostler.drawing.calls import CallLines

KINDS = ("text", "simple", "json", "jsonl")
STOPPED = {"timeout": "the time was up; what was said until then may be half an answer", "cancelled": "cancelled"}


class Output(Protocol):
    """Hears every event, and the summary last; `records` is for machines, which get one also where nothing began."""

    records: bool

    def hear(self, envelope: Envelope) -> None: ...

    def close(self, summary: Summary) -> None: ...


class TextOutput:
    """For people: segments, tool lines, results, as each is settled; of calls side by side the first is shown first."""

    records = False

    def __init__(self, out: TextIO, paint: Paint) -> None:
        self._out = out
        self._paint = paint
        self._transcript = Transcript()
        self._printed: set[str] = set()
        self._begun = False
        self._waiting = WaitingLines()

    def hear(self, envelope: Envelope) -> None:
        _tell_waiting(self._waiting, envelope.event)
        block = self._transcript.take(envelope.event)
        if block is None or block.id in self._printed or isinstance(block, PromptBlock):
            return
        if isinstance(block, CallBlock):
            self._print(self._calls.take(block))
        elif block.settled and not (self._calls.running and isinstance(block, TodosBlock)):  # the call shows its plan
            self._settled(block)

    @cached_property
    def _calls(self) -> "CallLines":
        from ostler.drawing.calls import CallLines  # what draws is read while the model thinks

        return CallLines(self._paint)

    def _settled(self, block: Block) -> None:
        from ostler.drawing.lines import block_lines

        words = isinstance(block, TextBlock)
        if words:
            self._calls.words()
        gap = [""] if self._begun and words else []
        self._printed.add(block.id)
        self._print([*gap, *block_lines(block, self._paint)])

    def _print(self, lines: list[str]) -> None:
        self._begun = self._begun or bool(lines)
        for line in lines:
            self._out.write(line + "\n")
        self._out.flush()

    def close(self, summary: Summary) -> None:
        for refusal in summary.refusals:
            self._print([self._paint(f"! not allowed here: {sanitise(refusal)}", "yellow")])


class SimpleOutput:
    """The answer's words and nothing else; where a shape was asked for, the value that fits it."""

    records = False

    def __init__(self, out: TextIO, *, shaped: bool) -> None:
        self._out = out
        self._shaped = shaped
        self._transcript = Transcript()
        self._waiting = WaitingLines()

    def hear(self, envelope: Envelope) -> None:
        _tell_waiting(self._waiting, envelope.event)
        block = self._transcript.take(envelope.event)
        if isinstance(block, TextBlock) and block.settled and block.segment == "answer" and not self._shaped:
            self._print(sanitise(block.text).rstrip("\n"))

    def close(self, summary: Summary) -> None:
        """What went wrong is no part of the answer."""
        if self._shaped and summary.reason == "done":
            self._print(msgspec.json.encode(summary.output).decode())
        error = [summary.error.message] if summary.error else []
        limit = [f"the run reached a limit: {summary.limit}"] if summary.limit else []
        stopped = [STOPPED[summary.reason]] if summary.reason in STOPPED else []
        for line in (
            *summary.notices,
            *error,
            *limit,
            *stopped,
            *(f"not allowed here: {why}" for why in summary.refusals),
        ):
            say(line)

    def _print(self, line: str) -> None:
        self._out.write(line + "\n")
        self._out.flush()


class JsonOutput:
    """One object at the end."""

    records = True

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._waiting = WaitingLines()

    def hear(self, envelope: Envelope) -> None:
        """Everything is in the summary, but why there is none yet."""
        _tell_waiting(self._waiting, envelope.event)

    def close(self, summary: Summary) -> None:
        self._out.write(msgspec.json.encode(summary).decode() + "\n")
        self._out.flush()


class JsonlOutput:
    """Every event as it happens, and the summary as the last record."""

    records = True

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def hear(self, envelope: Envelope) -> None:
        self._out.write(encode_envelope(envelope).decode() + "\n")
        self._out.flush()

    def close(self, summary: Summary) -> None:
        self._out.write(msgspec.json.encode(summary).decode() + "\n")
        self._out.flush()


def _tell_waiting(waiting: WaitingLines, event: Event) -> None:
    """Why nothing comes, for whoever looks."""
    for line in waiting.take(event):
        say(line)


def make_output(kind: str, paint: Paint, out: TextIO | None = None, *, shaped: bool = False) -> Output:
    """The output of that name; `shaped` where the answer must fit a schema."""
    out = out or sys.stdout
    match kind:
        case "simple":
            return SimpleOutput(out, shaped=shaped)
        case "json":
            return JsonOutput(out)
        case "jsonl":
            return JsonlOutput(out)
        case _:
            return TextOutput(out, paint)
