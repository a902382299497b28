"""The output formats of a headless run: text, simple, json and jsonl."""

import sys
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TextIO

import msgspec

from ostler.core.events import Envelope, Event
from ostler.frontends.headless.summary import RunSummary
from ostler.rendering.style import Styler
from ostler.rendering.wait_notices import WaitNotices
from ostler.session.transcript import CallBlock, PromptBlock, TextBlock, TodosBlock, Transcript, TranscriptBlock
from ostler.text.sanitise import sanitise
from ostler.text.stderr import notify
from ostler.wire.event_codec import encode_envelope

if TYPE_CHECKING:
    from ostler.rendering.tool_calls import ToolCallRenderer

STOP_MESSAGES = {"timeout": "timed out; the answer may be incomplete", "cancelled": "cancelled"}


class RunOutput(Protocol):
    """Receives every event, and the summary last.

    A `machine_readable` output gets a summary also if the run fails before it starts.
    """

    machine_readable: bool

    def on_event(self, envelope: Envelope) -> None: ...

    def close(self, summary: RunSummary) -> None: ...


class TextOutput:
    """Prints text, tool calls and results as soon as each is final. Parallel calls are shown in order."""

    machine_readable = False

    def __init__(self, out: TextIO, paint: Styler) -> None:
        self._out = out
        self._paint = paint
        self._transcript = Transcript()
        self._printed_blocks: set[str] = set()
        self._has_output = False
        self._waiting = WaitNotices()

    def on_event(self, envelope: Envelope) -> None:
        _report_waiting(self._waiting, envelope.event)
        block = self._transcript.apply(envelope.event)
        if block is None or block.id in self._printed_blocks or isinstance(block, PromptBlock):
            return
        if isinstance(block, CallBlock):
            self._print(self._calls.render(block))
        elif block.final and not (self._calls.running and isinstance(block, TodosBlock)):  # the call shows its own plan
            self._print_block(block)

    @cached_property
    def _calls(self) -> "ToolCallRenderer":
        from ostler.rendering.tool_calls import ToolCallRenderer  # imported late, while the model is working

        return ToolCallRenderer(self._paint)

    def _print_block(self, block: TranscriptBlock) -> None:
        from ostler.rendering.blocks import render_block

        is_text = isinstance(block, TextBlock)
        if is_text:
            self._calls.on_text()
        gap = [""] if self._has_output and is_text else []
        self._printed_blocks.add(block.id)
        self._print([*gap, *render_block(block, self._paint)])

    def _print(self, lines: list[str]) -> None:
        self._has_output = self._has_output or bool(lines)
        for line in lines:
            self._out.write(line + "\n")
        self._out.flush()

    def close(self, summary: RunSummary) -> None:
        for refusal in summary.refusals:
            self._print([self._paint(f"! denied: {sanitise(refusal)}", "yellow")])


class SimpleOutput:
    """Prints only the text of the answer or, with an output schema, only its value."""

    machine_readable = False

    def __init__(self, out: TextIO, *, structured: bool) -> None:
        self._out = out
        self._structured = structured
        self._transcript = Transcript()
        self._waiting = WaitNotices()
        self._printed = ""

    def on_event(self, envelope: Envelope) -> None:
        _report_waiting(self._waiting, envelope.event)
        block = self._transcript.apply(envelope.event)
        if isinstance(block, TextBlock) and block.final and block.segment == "answer":
            self._print_answer(block.text)

    def _print_answer(self, text: str) -> None:
        self._printed = text
        if not self._structured:
            self._print(sanitise(text).rstrip("\n"))

    def close(self, summary: RunSummary) -> None:
        """Print the value, if any, and report notices, errors and denials on standard error."""
        if summary.answer and summary.answer != self._printed:
            self._print_answer(summary.answer)
        if self._structured and summary.reason == "done":
            self._print(msgspec.json.encode(summary.output).decode())
        error = [summary.error.message] if summary.error else []
        limit = [f"the run reached a limit: {summary.limit}"] if summary.limit else []
        stopped = [STOP_MESSAGES[summary.reason]] if summary.reason in STOP_MESSAGES else []
        for line in (
            *summary.notices,
            *error,
            *limit,
            *stopped,
            *(f"denied: {refusal}" for refusal in summary.refusals),
        ):
            notify(line)

    def _print(self, line: str) -> None:
        self._out.write(line + "\n")
        self._out.flush()


class JsonOutput:
    """Prints one JSON object at the end."""

    machine_readable = True

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._waiting = WaitNotices()

    def on_event(self, envelope: Envelope) -> None:
        """Report only waits; everything else is in the summary."""
        _report_waiting(self._waiting, envelope.event)

    def close(self, summary: RunSummary) -> None:
        self._out.write(msgspec.json.encode(summary).decode() + "\n")
        self._out.flush()


class JsonlOutput:
    """Prints every event as it happens, and the summary as the last line."""

    machine_readable = True

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def on_event(self, envelope: Envelope) -> None:
        self._out.write(encode_envelope(envelope).decode() + "\n")
        self._out.flush()

    def close(self, summary: RunSummary) -> None:
        self._out.write(msgspec.json.encode(summary).decode() + "\n")
        self._out.flush()


def _report_waiting(waiting: WaitNotices, event: Event) -> None:
    """Report on standard error why there is no output yet."""
    for line in waiting.render(event):
        notify(line)


def make_output(output_format: str, paint: Styler, out: TextIO | None = None, *, structured: bool = False) -> RunOutput:
    """Create the output of a format; `structured` if the answer must match a schema."""
    out = out or sys.stdout
    match output_format:
        case "simple":
            return SimpleOutput(out, structured=structured)
        case "json":
            return JsonOutput(out)
        case "jsonl":
            return JsonlOutput(out)
        case _:
            return TextOutput(out, paint)
