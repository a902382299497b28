"""The output formats of a headless run: text, simple, json and jsonl."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TextIO

import msgspec

from ostler.core.errors import OstlerError
from ostler.core.events import (
    Envelope,
    Event,
    MessageDone,
    MessageSnapshot,
    TextDelta,
    ThoughtDelta,
    TurnEnded,
)
from ostler.frontends.headless.summary import RunSummary, SummaryBuilder
from ostler.rendering.style import Styler
from ostler.rendering.wait_notices import WaitNotices
from ostler.session.transcript import (
    CallBlock,
    NoticeBlock,
    PromptBlock,
    TextBlock,
    TodosBlock,
    Transcript,
    TranscriptBlock,
    TurnEndBlock,
)
from ostler.text.sanitise import sanitise
from ostler.text.stderr import notify
from ostler.wire.event_codec import encode_envelope

if TYPE_CHECKING:
    from ostler.frontends.headless.reply_writer import OpenReplies
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
    """Prints text as it arrives, and tool calls and results as soon as each is final. Parallel calls are in order."""

    machine_readable = False

    def __init__(self, out: TextIO, paint: Styler) -> None:
        self._out = out
        self._paint = paint
        self._transcript = Transcript()
        self._has_output = False
        self._notices: list[str] = []
        self._waiting = WaitNotices()

    def on_event(self, envelope: Envelope) -> None:
        event = envelope.event
        _report_waiting(self._waiting, event, self._before_notice)
        match event:
            case TextDelta() | MessageSnapshot():
                self._replies.on_event(event)
                self._out.flush()
            case MessageDone(message) if message.text or self._replies.is_open(message.id):
                self._print_message(event)
            case MessageDone() | ThoughtDelta():
                pass
            case _:
                self._print_block(self._transcript.apply(event))

    @cached_property
    def _calls(self) -> "ToolCallRenderer":
        from ostler.rendering.tool_calls import ToolCallRenderer  # imported late, while the model is working

        return ToolCallRenderer(self._paint)

    @cached_property
    def _replies(self) -> "OpenReplies":
        from ostler.frontends.headless.reply_writer import RESTARTED, OpenReplies, ReplyWriter
        from ostler.rendering.markdown_stream import MarkdownStream

        def make_writer() -> ReplyWriter:
            needs_gap = True

            def write(text: str) -> None:
                nonlocal needs_gap
                gap, needs_gap = "\n" if needs_gap and self._has_output else "", False
                self._has_output = True
                self._calls.on_text()
                self._out.write(gap + text)

            note = f"  {self._paint(RESTARTED, 'yellow')}\n"
            return ReplyWriter(write, lambda: MarkdownStream(self._paint, f"{self._paint('●', 'green')} "), note)

        return OpenReplies(make_writer)

    def _print_message(self, event: MessageDone) -> None:
        """Print the rest of a streamed message with a mark below it, or a whole message below its heading."""
        message = event.message
        if not self._replies.is_open(message.id):
            self._print_block(self._transcript.apply(event))
            return
        writer = self._replies.on_event(event)
        if writer and writer.has_text and message.truncated:
            self._print([self._paint("  [truncated]", "yellow")])
        elif writer and writer.has_text:
            self._print([self._paint("  ↑ PLAN" if message.is_intermediate else "  ↑ ANSWER", "dim")])
        self._out.flush()

    def _print_block(self, block: TranscriptBlock | None) -> None:
        if block is None or isinstance(block, PromptBlock):
            return
        from ostler.rendering.blocks import render_block  # imported late, while the model is working

        match block:
            case CallBlock():
                self._print(self._calls.render(block))
            case TodosBlock() if self._calls.running:
                pass  # the call shows its own plan
            case TextBlock():
                self._calls.on_text()
                self._print([*([""] if self._has_output else []), *render_block(block, self._paint)])
            case NoticeBlock() if self._replies.is_mid_row:
                self._notices += render_block(block, self._paint)  # printed below the reply
            case TurnEndBlock():
                self._replies.end()
                self._print(render_block(block, self._paint))
            case _:
                self._print(render_block(block, self._paint))

    def _print(self, lines: list[str]) -> None:
        lines, self._notices = [*lines, *self._notices], []
        if lines:
            self._replies.break_row()
            self._has_output = True
        for line in lines:
            self._out.write(line + "\n")
        self._out.flush()

    def _before_notice(self) -> None:
        """Keep a notice on standard error apart from the row that is being printed, if both are on the screen."""
        if self._paint.columns() > 0:
            self._replies.break_row()
            self._out.flush()

    def close(self, summary: RunSummary) -> None:
        for refusal in summary.refusals:
            self._print([self._paint(f"! denied: {sanitise(refusal)}", "yellow")])


class SimpleOutput:
    """Prints only the text of the model as it arrives or, with an output schema, only the value of the answer."""

    machine_readable = False

    def __init__(self, out: TextIO, *, structured: bool, on_screen: bool = False) -> None:
        """`on_screen`: the output is shown on a terminal."""
        self._out = out
        self._structured = structured
        self._on_screen = on_screen
        self._waiting = WaitNotices()

    def on_event(self, envelope: Envelope) -> None:
        event = envelope.event
        _report_waiting(self._waiting, event, self._before_notice)
        if not self._structured and isinstance(event, TextDelta | MessageSnapshot | MessageDone | TurnEnded):
            self._replies.on_event(event)
            self._out.flush()

    @cached_property
    def _replies(self) -> "OpenReplies":
        from ostler.frontends.headless.reply_writer import OpenReplies, ReplyWriter
        from ostler.rendering.markdown_stream import MarkdownStream

        def make_stream() -> MarkdownStream:
            return MarkdownStream(Styler(enabled=False), "", "")

        return OpenReplies(lambda: ReplyWriter(self._out.write, make_stream))

    def _before_notice(self) -> None:
        if self._on_screen:
            self._replies.break_row()
            self._out.flush()

    def close(self, summary: RunSummary) -> None:
        """Print the value, if any, and report notices, errors and denials on standard error."""
        if self._structured and summary.reason == "done":
            self._out.write(msgspec.json.encode(summary.output).decode() + "\n")
            self._out.flush()
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


def _report_waiting(waiting: WaitNotices, event: Event, before: Callable[[], None] = lambda: None) -> None:
    """Report on standard error why there is no output yet; call `before` first."""
    for line in waiting.render(event):
        before()
        notify(line)


def make_output(output_format: str, paint: Styler, out: TextIO | None = None, *, structured: bool = False) -> RunOutput:
    """Create the output of a format; `structured` if the answer must match a schema."""
    out = out or sys.stdout
    match output_format:
        case "simple":
            return SimpleOutput(out, structured=structured, on_screen=paint.columns() > 0)
        case "json":
            return JsonOutput(out)
        case "jsonl":
            return JsonlOutput(out)
        case _:
            return TextOutput(out, paint)


@contextmanager
def record_startup_error(output: RunOutput) -> Iterator[None]:
    """Also write an error before the run starts as a record, if the output is machine-readable."""
    try:
        yield
    except OstlerError as error:
        if output.machine_readable:
            output.close(SummaryBuilder().summarize_error(error))
        raise
