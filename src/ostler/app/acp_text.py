"""What a person is shown of an agent's turn: its words as they come, and marked lines for all else."""

from typing import Any, Protocol

import msgspec

from ostler.backends.acp.showing import text_of, words
from ostler.backends.acp.watch import Watch
from ostler.text.sanitise import Sanitiser, sanitise
from ostler.vocabulary.permission import Decision
from ostler.wire.acp import ToolCallFields
from ostler.wire.acp_calls import PermissionRequest, PromptUsage
from ostler.wire.acp_updates import (
    AgentMessageChunk,
    AgentThoughtChunk,
    PlanTold,
    UnknownUpdate,
    Update,
    UsageTold,
)

MOST_SHOWN = 240


class Writer(Protocol):
    """Where text goes."""

    def write(self, text: str, /) -> object: ...


class SimpleText(Watch):
    """The agent's words, and nothing else."""

    def __init__(self, out: Writer) -> None:
        self._out = out
        self._clean = Sanitiser()
        self._midline = False
        self.begun = False

    def updated(self, update: Update, call: ToolCallFields | None) -> None:
        """What an agent says before the first prompt is no answer to it."""
        if self.begun and isinstance(update, AgentMessageChunk):
            self._stream(words(update.content))

    def begin(self) -> None:
        """A turn begins."""
        self.begun = True

    def finish(self) -> None:
        """End the line, if words were the last that was written."""
        self._write(self._clean.flush())
        self._fresh()

    def _stream(self, text: str) -> None:
        self._write(self._clean.feed(text))

    def _write(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._midline = not text.endswith("\n")

    def _fresh(self) -> None:
        if self._midline:
            self._write("\n")


class MarkedText(SimpleText):
    """The words, and a line with a mark for each thing besides."""

    def __init__(self, out: Writer) -> None:
        super().__init__(out)
        self._thinking = False
        self._usage: UsageTold | None = None
        self._shown: dict[str, set[str]] = {}

    def updated(self, update: Update, call: ToolCallFields | None) -> None:
        if isinstance(update, AgentThoughtChunk) and self.begun:
            self._think(words(update.content))
            return
        if self._thinking:
            self._thinking = False
            self._fresh()
        if call is not None:
            self._tool(call)
        elif isinstance(update, PlanTold):
            self.mark("plan", _json({"entries": update.entries}))
        elif isinstance(update, UsageTold):
            self._usage = update
        elif isinstance(update, UnknownUpdate):
            self.mark("update", _cut(_json(update.raw)))
        elif isinstance(update, AgentMessageChunk) and not self.begun:
            self.mark("agent", words(update.content))
        else:
            super().updated(update, call)

    def begin(self) -> None:
        """What was shown of calls in an earlier turn says nothing about those of this one."""
        super().begin()
        self._shown = {}

    def decided(self, asked: PermissionRequest, decision: Decision) -> None:
        call = asked.tool_call
        answer = {"allow": "auto-allow", "deny": "auto-deny"}.get(decision.answer, "cancelled")
        self.mark("permission", f"{answer} {_title(call)} ({call.kind or 'other'})")
        if decision.answer == "deny" and decision.reason:
            self.mark("permission", f"hint: {decision.reason}")

    def refused(self, operation: str, what: str, why: str) -> None:
        self.mark("permission", f"auto-deny {operation} {what}")
        self.mark("permission", f"hint: {why}")

    def failed(self, operation: str, what: str, why: str) -> None:
        self.mark("tool.out", f"{operation} {what} failed: {why}")

    def terminal(self, what: str, terminal_id: str, detail: str = "") -> None:
        more = {"created": f" cmd={detail}", "exited": f" code={detail}"}.get(what, "")
        self.mark("term", f"{what} id={terminal_id}{more}")
        if what == "output" and detail.strip():
            self.mark("term", _cut(detail.strip()))

    def used(self, spent: PromptUsage | None) -> None:
        """What the turn used, last of all."""
        told = [f"in={spent.input_tokens} out={spent.output_tokens}"] if spent else []
        if self._usage:
            told.append(f"context={self._usage.used}/{self._usage.size}")
            if self._usage.cost:
                told.append(f"cost={self._usage.cost.amount:g} {self._usage.cost.currency}")
        if told:
            self.mark("usage", " ".join(told))

    def _think(self, text: str) -> None:
        if not self._thinking:
            self._write(self._clean.flush())
            self._fresh()
            self._write("[thought] ")
            self._thinking = True
        self._write(sanitise(text))

    def _tool(self, call: ToolCallFields) -> None:
        """A line when there is something new to say of the call."""
        ending = " (failed)" if call.status == "failed" else ""
        self._once(call, "tool", f"{call.kind or 'other'} {_title(call)}{_place(call)}{ending}")
        if call.raw_input is not None:
            self._once(call, "tool.in", _cut(_json(call.raw_input)))
        if call.raw_output is not None:
            self._once(call, "tool.out", _cut(_json(call.raw_output)))
        elif text := text_of(call):
            self._once(call, "tool.out", _cut(text))
        for item in call.content or ():
            if item.type == "diff":
                self._once(call, "diff", _json({"path": item.path, "oldText": item.old_text, "newText": item.new_text}))

    def _once(self, call: ToolCallFields, mark: str, text: str) -> None:
        shown = self._shown.setdefault(call.tool_call_id, set())
        if f"{mark} {text}" not in shown:
            shown.add(f"{mark} {text}")
            self.mark(mark, text)

    def mark(self, mark: str, text: str) -> None:
        """A line of its own."""
        self._write(self._clean.flush())
        self._fresh()
        self._write(f"[{mark}] {sanitise(text)}\n")


def _title(call: ToolCallFields) -> str:
    """In one line: a line of its own would pass for ours."""
    return " ".join((call.title or call.tool_call_id).split())


def _place(call: ToolCallFields) -> str:
    first = call.locations[0] if call.locations else None
    if not (first and first.path):
        return ""
    return f" @ {first.path}:{first.line}" if first.line else f" @ {first.path}"


def _json(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _cut(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "…"
