"""Detects repeated steps and repeated text."""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from ostler.backends.engine.plugins.command_normalizer import normalize_command
from ostler.core.tools import ToolCall, ToolResult
from ostler.text.lazy_regex import lazy_regex

MAX_PERIOD = 4
NUDGE_AT, STOP_AT = 2, 3
# Waiting calls may be repeated this many times more often.
WAITING_FACTOR = 8
# Status queries are reminded like other steps, but stopped later.
STOP_POLLING_AT = 8
# Calls that differ only in text they print themselves are reminded like equal ones, but stopped much later.
STOP_SIMILAR_AT = 12

# Arguments that only comment on a call.
_REMARKS = frozenset(["reason", "description", "explanation", "title"])
_WAITING_WORDS = lazy_regex(r"\b(sleep|wait|watch|poll|tail -f|timeout)\b")
_STATUS_WORDS = lazy_regex(
    r"(?<![a-z])(status|state|progress|health|healthz|ready|pending|queue)(?![a-z])", re.IGNORECASE
)
# Output that differs in each run: durations, addresses, ids, temporary names.
_VOLATILE = lazy_regex(
    r"0x[0-9a-f]+|\b(?:in|took|after) \d+(?:\.\d+)? ?m?s(?:ec(?:onds?)?)?\b|\d\d:\d\d:\d\d(?:[.,]\d+)?"
    r"|\b\d+\.\d+ ?m?s\b|/tmp/tmp\w{6,10}|\bpytest-\d+\b|\bpid[ =:]*\d+"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
)

_TAIL = 12_000
_PROBE = 40
_LONG_UNIT = 200
_SHORT_UNITS_LENGTH = 1000
_MORE_IN_CODE = 4

LoopVerdict = Literal["", "nudge", "stop"]


class StepFingerprint(NamedTuple):
    """Hashes of a step: `similar` ignores text that its commands print themselves, `exact` does not."""

    similar: int
    exact: int


class RepetitionDetector:
    """Detects when the latest steps repeat the ones before, with any period up to `MAX_PERIOD`."""

    def __init__(self) -> None:
        self._steps: list[StepFingerprint] = []
        self._nudged = False

    def add_step(self, fingerprint: StepFingerprint, *, waiting: bool = False, polling: bool = False) -> LoopVerdict:
        self._steps.append(fingerprint)
        factor = WAITING_FACTOR if waiting else 1
        rounds, period = max((self._rounds(period), period) for period in range(1, MAX_PERIOD + 1))
        stop_at = STOP_POLLING_AT if polling and not waiting else STOP_AT * factor
        if not self._last_round_is_equal(period):
            stop_at = max(stop_at, STOP_SIMILAR_AT)
        if rounds < NUDGE_AT * factor:
            self._nudged = False if rounds < NUDGE_AT else self._nudged
            return ""
        if rounds >= stop_at and self._nudged:
            return "stop"
        if self._nudged:
            return ""
        self._nudged = True
        return "nudge"

    def _rounds(self, period: int) -> int:
        """Return how often the last `period` steps occur in a row at the end."""
        steps, same = self._steps, 0
        limit = min(len(steps) - period, period * STOP_AT * WAITING_FACTOR)
        while same < limit and steps[-1 - same].similar == steps[-1 - same - period].similar:
            same += 1
        return same // period + 1

    def _last_round_is_equal(self, period: int) -> bool:
        """Return whether the calls of the last round are exactly those of the round before."""
        last, before = self._steps[-period:], self._steps[-2 * period : -period]
        return [step.exact for step in last] == [step.exact for step in before]


def step_fingerprint(exchanges: Iterable[tuple[ToolCall, ToolResult | None]]) -> StepFingerprint:
    """Return the hashes of a step, ignoring remarks, durations, addresses and temporary paths."""
    exchanges = list(exchanges)
    similar = sorted(map(_normalize_exchange, exchanges))
    printed = [normalize_command(_command(call))[1] for call, _ in exchanges]
    return StepFingerprint(hash(tuple(similar)), hash((tuple(similar), str(printed))))


def _normalize_exchange(exchange: tuple[ToolCall, ToolResult | None]) -> tuple[str, str, str, str]:
    """Return a call and its result without remarks, volatile output and lines that the command itself prints."""
    import json  # imported only when there are calls

    call, result = exchange
    command, printed = normalize_command(_command(call))
    relevant = {name: value for name, value in call.arguments.items() if name not in _REMARKS}
    arguments = json.dumps({**relevant, **({"command": command} if command else {})}, sort_keys=True, default=str)
    output = _VOLATILE.sub("", result.for_model) if result else ""
    if printed:
        output = "\n".join(line for line in output.split("\n") if line.strip() not in printed)
    return call.tool, arguments if call.arguments else call.raw, result.status if result else "", output


def _command(call: ToolCall) -> str:
    return str(call.arguments.get("command") or "")


def is_waiting(calls: Iterable[ToolCall]) -> bool:
    """Return whether a call waits for something, and so may be repeated."""
    return any(
        call.arguments.get("wait") or _WAITING_WORDS.search(normalize_command(_command(call))[0]) for call in calls
    )


def is_polling(calls: Iterable[ToolCall]) -> bool:
    """Return whether all calls query a status."""
    targets = [normalize_command(_command(call))[0] or str(call.arguments.get("path") or "") for call in calls]
    return bool(targets) and all(map(_STATUS_WORDS.search, targets))


def is_repetitive(text: str) -> bool:
    """Return whether a text ends with the same passage repeated."""
    tail = text[-_TAIL:]
    found = tail.rfind(tail[-_PROBE:], 0, len(tail) - 1) if len(tail) > _PROBE else -1
    if found < 0:
        return False
    period = len(tail) - _PROBE - found
    unit = tail[-period:]
    if sum(map(str.isalpha, unit)) < NUDGE_AT:
        return False
    rounds = 1
    while tail[-period * (rounds + 1) : -period * rounds] == unit:
        rounds += 1
    in_code = text.count("```") % 2
    if period >= _LONG_UNIT and not in_code:
        return rounds >= STOP_AT
    return rounds >= STOP_AT and rounds * period >= _SHORT_UNITS_LENGTH * (_MORE_IN_CODE if in_code else 1)
