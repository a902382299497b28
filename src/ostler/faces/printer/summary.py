"""What a run came to: the last record of `-o jsonl`, the only one of `-o json`, and the exit status."""

from typing import Any

import msgspec

from ostler.vocabulary.errors import Fault, OstlerError
from ostler.vocabulary.events import (
    Envelope,
    MessageDone,
    Notice,
    PermissionDecided,
    ToolCalled,
    ToolFinished,
    TurnEnded,
    UsageReported,
)
from ostler.vocabulary.sessions import EndReason
from ostler.vocabulary.tools import ToolResult

EXIT: dict[EndReason, int] = {"done": 0, "failed": 1, "limit": 3, "timeout": 124, "cancelled": 130}
REFUSED = 4


class Trouble(msgspec.Struct, frozen=True):
    """What went wrong."""

    code: str
    message: str


class ToolDone(msgspec.Struct, frozen=True):
    """One call, in a line."""

    id: str
    tool: str
    status: str
    summary: str


class Used(msgspec.Struct, frozen=True):
    """Tokens of the whole run, and what they cost in US dollars, null where a price is not known."""

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float | None = None


class Summary(msgspec.Struct, frozen=True, tag="summary"):
    """`output` is the answer as a value where a shape was asked for, else null."""

    session: str
    answer: str
    reason: EndReason
    exit: int
    limit: str
    error: Trouble | None
    refusals: tuple[str, ...]
    tools: tuple[ToolDone, ...]
    notices: tuple[str, ...]
    usage: Used
    output: Any = None


class Tally:
    """Hears a run and sums it up."""

    def __init__(self) -> None:
        self.session = ""
        self.answer = ""
        self._refusals: list[str] = []
        self._decided: set[str] = set()
        self._names: dict[str, str] = {}
        self._tools: list[ToolDone] = []
        self._notices: list[str] = []
        self._usage = Used(cost=0.0)

    def hear(self, envelope: Envelope) -> None:
        match envelope.event:
            case MessageDone(message) if not message.has_more_to_do:
                self.answer = message.text
            case ToolCalled(call):
                self._names[call.id] = call.tool
            case ToolFinished(result):
                self._finish(result)
            case PermissionDecided(_, permission, decision) if decision.answer == "deny":
                self._decided.add(permission.call_id)
                self._refusals.append(f"{permission.title} ({decision.reason})")
            case UsageReported() as usage:
                self._use(usage)
            case Notice(_, text):
                self._notices.append(text)
            case _:
                pass

    def _finish(self, result: ToolResult) -> None:
        """What a hook refused, nobody decided on."""
        name, told = self._names.get(result.call_id, ""), result.for_human.summary
        self._tools.append(ToolDone(result.call_id, name, result.status, told))
        if result.status == "denied" and result.call_id not in self._decided:
            self._refusals.append(f"{name or 'a call'} ({told})")

    def ended(self, ended: TurnEnded, output: Any = None) -> Summary:
        """The end of a turn as the end of the run."""
        code = EXIT[ended.reason]
        return self._sum(
            ended.reason, REFUSED if code == 0 and self._refusals else code, ended.fault, ended.limit, output
        )

    def stopped(self, reason: EndReason) -> Summary:
        """A run that was stopped before there was a turn."""
        return self._sum(reason, EXIT[reason], None)

    def failed(self, error: OstlerError) -> Summary:
        """A run that an error ended outside of a turn."""
        return self._sum("failed", error.exit_code, error.fault)

    def _sum(self, reason: EndReason, code: int, fault: Fault | None, limit: str = "", output: Any = None) -> Summary:
        return Summary(
            self.session,
            self.answer,
            reason,
            code,
            limit,
            Trouble(fault.code, str(fault)) if fault else None,
            tuple(self._refusals),
            tuple(self._tools),
            tuple(self._notices),
            self._usage,
            output,
        )

    def _use(self, usage: UsageReported) -> None:
        self._usage = Used(
            self._usage.tokens_in + usage.tokens_in,
            self._usage.tokens_out + usage.tokens_out,
            self._usage.tokens_cached + usage.tokens_cached,
            None if self._usage.cost is None or usage.cost is None else self._usage.cost + usage.cost,
        )
