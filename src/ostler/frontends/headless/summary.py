"""Builds the summary record of a run and its exit status from the events."""

from typing import Any

import msgspec

from ostler.core.errors import Fault, OstlerError
from ostler.core.events import (
    Envelope,
    MessageDone,
    Notice,
    PermissionDecided,
    ServerStateChanged,
    ToolCalled,
    ToolFinished,
    TurnEnded,
    UsageReported,
)
from ostler.core.sessions import TurnEndReason
from ostler.core.tools import ToolResult

EXIT_CODES: dict[TurnEndReason, int] = {"done": 0, "failed": 1, "limit": 3, "timeout": 124, "cancelled": 130}
EXIT_DENIED = 4


class RunError(msgspec.Struct, frozen=True):
    """The error that ended the run."""

    code: str
    message: str


class ToolCallSummary(msgspec.Struct, frozen=True):
    """A tool call with a one-line summary."""

    id: str
    tool: str
    status: str
    summary: str


class RunUsage(msgspec.Struct, frozen=True):
    """Tokens of the whole run and their cost in US dollars; null if a price is unknown."""

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float | None = None


class RunSummary(msgspec.Struct, frozen=True, tag="summary"):
    """The summary of a run. `output` is the value of the answer if an output schema was given, else null."""

    session: str
    answer: str
    reason: TurnEndReason
    exit: int
    limit: str
    error: RunError | None
    refusals: tuple[str, ...]
    tools: tuple[ToolCallSummary, ...]
    notices: tuple[str, ...]
    usage: RunUsage
    output: Any = None


class SummaryBuilder:
    """Collects the events of a run and builds its summary."""

    def __init__(self) -> None:
        self.session = ""
        self.answer = ""
        self._text_before_calls = ""  # since the last answer
        self._refusals: list[str] = []
        self._decided_calls: set[str] = set()
        self._tool_names: dict[str, str] = {}
        self._tools: list[ToolCallSummary] = []
        self._notices: list[str] = []
        self._usage = RunUsage(cost=0.0)

    def on_event(self, envelope: Envelope) -> None:
        match envelope.event:
            case MessageDone(message) if not message.is_intermediate:
                self.answer, self._text_before_calls = message.text, ""
            case MessageDone(message):
                self._text_before_calls = message.text or self._text_before_calls
            case TurnEnded(reason="done") if self._text_before_calls:  # an ACP agent may end its turn with a call
                self.answer = self._text_before_calls
            case ToolCalled(call):
                self._tool_names[call.id] = call.tool
            case ToolFinished(result):
                self._add_tool_result(result)
            case PermissionDecided(_, permission, decision) if decision.answer == "deny":
                self._decided_calls.add(permission.call_id)
                reason = decision.reason
                if decision.who:
                    reason = f"denied by {decision.who}: {reason or decision.feedback}".removesuffix(": ")
                self._refusals.append(f"{permission.title} ({reason})")
            case UsageReported() as usage:
                self._add_usage(usage)
            case ServerStateChanged() as server if server.failure:
                self._notices.append(server.failure)
            case Notice(_, text):
                self._notices.append(text)
            case _:
                pass

    def _add_tool_result(self, result: ToolResult) -> None:
        """Add a call; a denial without a permission decision came from a hook."""
        name, summary = self._tool_names.get(result.call_id, ""), result.for_human.summary
        self._tools.append(ToolCallSummary(result.call_id, name, result.status, summary))
        if result.status == "denied" and result.call_id not in self._decided_calls:
            self._refusals.append(f"{name or 'a call'} ({summary})")

    def summarize_turn(self, turn_end: TurnEnded, output: Any = None) -> RunSummary:
        """Return the summary of a run that ended with a turn."""
        code = EXIT_CODES[turn_end.reason]
        return self._build(
            turn_end.reason,
            EXIT_DENIED if code == 0 and self._refusals else code,
            turn_end.fault,
            turn_end.limit,
            output,
        )

    def summarize_stop(self, reason: TurnEndReason) -> RunSummary:
        """Return the summary of a run that was stopped before its turn."""
        return self._build(reason, EXIT_CODES[reason], None)

    def summarize_error(self, error: OstlerError) -> RunSummary:
        """Return the summary of a run that failed outside of a turn."""
        return self._build("failed", error.exit_code, error.fault)

    def _build(
        self, reason: TurnEndReason, code: int, fault: Fault | None, limit: str = "", output: Any = None
    ) -> RunSummary:
        return RunSummary(
            self.session,
            self.answer,
            reason,
            code,
            limit,
            RunError(fault.code, str(fault)) if fault else None,
            tuple(self._refusals),
            tuple(self._tools),
            tuple(self._notices),
            self._usage,
            output,
        )

    def _add_usage(self, usage: UsageReported) -> None:
        self._usage = RunUsage(
            self._usage.tokens_in + usage.tokens_in,
            self._usage.tokens_out + usage.tokens_out,
            self._usage.tokens_cached + usage.tokens_cached,
            None if self._usage.cost is None or usage.cost is None else self._usage.cost + usage.cost,
        )
