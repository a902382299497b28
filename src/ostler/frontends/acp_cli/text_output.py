"""Text output of an ACP run: the agent's text, and labelled lines for everything else."""

from typing import Any, Protocol

import msgspec

from ostler.core.permission import Decision
from ostler.text.sanitise import Sanitiser, sanitise
from ostler.wire.acp import ToolCallFields, content_text, text_of
from ostler.wire.acp_observer import AcpObserver
from ostler.wire.acp_requests import PromptUsage, RequestPermissionRequest
from ostler.wire.acp_updates import (
    AgentMessageChunk,
    AgentThoughtChunk,
    PlanUpdate,
    SessionUpdate,
    UnknownUpdate,
    UsageUpdate,
)

MAX_SHOWN = 240


class TextWriter(Protocol):
    """A stream or `OutputStream` to write text to."""

    def write(self, text: str, /) -> object: ...


class PlainOutput(AcpObserver):
    """Writes the agent's text and nothing else."""

    def __init__(self, out: TextWriter) -> None:
        self._out = out
        self._sanitiser = Sanitiser()
        self._midline = False
        self.started = False
        self.ended = False

    def on_update(self, update: SessionUpdate, call: ToolCallFields | None) -> None:
        """Write message text; text before the first prompt and after the turn is not an answer and is skipped."""
        if self.started and not self.ended and isinstance(update, AgentMessageChunk):
            self._stream(content_text(update.content))

    def start_turn(self) -> None:
        self.started, self.ended = True, False

    def finish(self) -> None:
        """Write the buffered text and end the line."""
        self._write(self._sanitiser.flush())
        self._end_line()

    def end_turn(self) -> None:
        """Finish the text and ignore later updates, which are not part of the turn."""
        self.finish()
        self.ended = True

    def _stream(self, text: str) -> None:
        self._write(self._sanitiser.feed(text))

    def _write(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._midline = not text.endswith("\n")

    def _end_line(self) -> None:
        if self._midline:
            self._write("\n")


class LabelledOutput(PlainOutput):
    """Writes the agent's text, and a line such as `[tool] …` for each other update."""

    def __init__(self, out: TextWriter) -> None:
        super().__init__(out)
        self._thinking = False
        self._usage: UsageUpdate | None = None
        self._printed: dict[str, set[str]] = {}

    def on_update(self, update: SessionUpdate, call: ToolCallFields | None) -> None:
        if self.ended:
            return
        if isinstance(update, AgentThoughtChunk) and self.started:
            self._write_thought(content_text(update.content))
            return
        if self._thinking:
            self._thinking = False
            self._end_line()
        if call is not None:
            self._write_tool_call(call)
        elif isinstance(update, PlanUpdate):
            self.write_labelled("plan", _json({"entries": update.entries}))
        elif isinstance(update, UsageUpdate):
            self._usage = update
        elif isinstance(update, UnknownUpdate):
            self.write_labelled("update", _shorten(_json(update.raw)))
        elif isinstance(update, AgentMessageChunk) and not self.started:
            self.write_labelled("agent", content_text(update.content))
        else:
            super().on_update(update, call)

    def start_turn(self) -> None:
        """Forget the printed calls: ids may repeat in the new turn."""
        super().start_turn()
        self._printed = {}

    def on_decision(self, request: RequestPermissionRequest, decision: Decision) -> None:
        call = request.tool_call
        answer = {"allow": "auto-allow", "deny": "auto-deny"}.get(decision.answer, "cancelled")
        self.write_labelled("permission", f"{answer} {_title(call)} ({call.kind or 'other'})")
        if decision.answer == "deny" and decision.reason:
            self.write_labelled("permission", f"hint: {decision.reason}")

    def on_refused(self, operation: str, subject: str, reason: str) -> None:
        self.write_labelled("permission", f"auto-deny {operation} {subject}")
        self.write_labelled("permission", f"hint: {reason}")

    def on_failed(self, operation: str, subject: str, reason: str) -> None:
        self.write_labelled("tool.out", f"{operation} {subject} failed: {reason}")

    def on_terminal(self, action: str, terminal_id: str, detail: str = "") -> None:
        more = {"created": f" cmd={detail}", "exited": f" code={detail}"}.get(action, "")
        self.write_labelled("term", f"{action} id={terminal_id}{more}")
        if action == "output" and detail.strip():
            self.write_labelled("term", _shorten(detail.strip()))

    def write_usage(self, usage: PromptUsage | None) -> None:
        """Write the token counts and the cost of the turn."""
        parts = [f"in={usage.input_tokens} out={usage.output_tokens}"] if usage else []
        if self._usage:
            parts.append(f"context={self._usage.used}/{self._usage.size}")
            if self._usage.cost:
                parts.append(f"cost={self._usage.cost.amount:g} {self._usage.cost.currency}")
        if parts:
            self.write_labelled("usage", " ".join(parts))

    def _write_thought(self, text: str) -> None:
        if not self._thinking:
            self._write(self._sanitiser.flush())
            self._end_line()
            self._write("[thought] ")
            self._thinking = True
        self._write(sanitise(text))

    def _write_tool_call(self, call: ToolCallFields) -> None:
        """Write the parts of the call that were not written yet."""
        ending = " (failed)" if call.status == "failed" else ""
        self._write_once(call, "tool", f"{call.kind or 'other'} {_title(call)}{_location(call)}{ending}")
        if call.raw_input is not None:
            self._write_once(call, "tool.in", _shorten(_json(call.raw_input)))
        if call.raw_output is not None:
            self._write_once(call, "tool.out", _shorten(_json(call.raw_output)))
        elif text := text_of(call):
            self._write_once(call, "tool.out", _shorten(text))
        for item in call.content or ():
            if item.type == "diff":
                self._write_once(
                    call, "diff", _json({"path": item.path, "oldText": item.old_text, "newText": item.new_text})
                )

    def _write_once(self, call: ToolCallFields, label: str, text: str) -> None:
        printed = self._printed.setdefault(call.tool_call_id, set())
        if f"{label} {text}" not in printed:
            printed.add(f"{label} {text}")
            self.write_labelled(label, text)

    def write_labelled(self, label: str, text: str) -> None:
        """Write the text with `[label]` at the start of each line: an unlabelled line would look like the answer."""
        self._write(self._sanitiser.flush())
        self._end_line()
        lines = sanitise(text).splitlines() or [""]
        self._write("".join(f"[{label}] {line}\n" for line in lines))


def _title(call: ToolCallFields) -> str:
    """Return the title on one line: a second line could imitate a label."""
    return " ".join((call.title or call.tool_call_id).split())


def _location(call: ToolCallFields) -> str:
    first = call.locations[0] if call.locations else None
    if not (first and first.path):
        return ""
    return f" @ {first.path}:{first.line}" if first.line else f" @ {first.path}"


def _json(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"
