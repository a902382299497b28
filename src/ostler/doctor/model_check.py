"""Checks behind `ostler doctor model`: sends one small request and evaluates the reply."""

import os
import time
from pathlib import Path

import msgspec

from ostler.core.errors import OstlerError
from ostler.core.prompt import TextContent
from ostler.core.tools import ToolSpec
from ostler.doctor.checks import DoctorFinding
from ostler.knowledge.trusted_settings import load_settings
from ostler.models.loose_json import LooseJsonError, read_json
from ostler.models.model_choice import choose_model
from ostler.models.model_types import (
    CallChunk,
    FallbackStarted,
    ModelClient,
    ModelRequest,
    NoData,
    ReplyChunk,
    ReplyFinished,
    RetryScheduled,
    TextChunk,
    ThoughtChunk,
    Usage,
    UserMessage,
)

WEATHER_TOOL = ToolSpec(
    "weather",
    "read",
    "Tell the weather of a place.",
    {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
)
MAX_TOKENS = 1_000
QUESTION = "Count from one to thirty in words, on one line. Then use the tool: what is the weather in Paris?"
_FINISH_MESSAGES = {
    "length": f"the reply was truncated at {MAX_TOKENS:,} tokens",
    "refusal": "the model declined to answer",
    "filtered": "a content filter stopped the reply",
}
_REASONING_FORMS = {"field": "sent separately by the server", "tags": "in <think> tags, removed from the answer"}


class _ReplyStats(msgspec.Struct):
    """Measurements of one reply."""

    first_seconds: float = 0.0
    total_seconds: float = 0.0
    chunks: int = 0
    calls: tuple[str, ...] = ()
    usage: Usage | None = None
    arguments_valid: bool = True  # the arguments of every call
    problem: str = ""

    def add(self, chunk: ReplyChunk, seconds: float) -> None:
        if isinstance(chunk, TextChunk | ThoughtChunk | CallChunk):
            self.first_seconds = self.first_seconds or seconds
        if isinstance(chunk, TextChunk | ThoughtChunk):
            self.chunks += 1
        elif isinstance(chunk, CallChunk):
            self.calls = (*self.calls, chunk.tool)
            self.arguments_valid = self.arguments_valid and _is_json_object(chunk.arguments)
        elif isinstance(chunk, Usage):
            self.usage = chunk
        elif isinstance(chunk, NoData | RetryScheduled | FallbackStarted):
            self.problem = chunk.reason
        elif isinstance(chunk, ReplyFinished):
            self.problem = _FINISH_MESSAGES.get(chunk.reason, self.problem)
            self.problem = (
                f"the server ended the reply with {chunk.server_reason!r}" if chunk.server_reason else self.problem
            )
        self.total_seconds = seconds


def _is_json_object(arguments: str) -> bool:
    try:
        return isinstance(read_json(arguments.encode("utf-8", "replace")), dict)
    except LooseJsonError:
        return False


async def check_model(cwd: str, flags: dict[str, str]) -> list[DoctorFinding]:
    """Check connection, latency, context window, streaming, tools and dialect, reasoning and usage."""
    try:
        choice = await choose_model(load_settings(Path(cwd).resolve()), flags, os.environ)
    except OstlerError as error:
        return [DoctorFinding("model", "error", error.fault.message, error.fault.hint)]
    findings = [DoctorFinding("model", "ok", choice.description)]
    client = choice.make("")
    try:
        stats = await _send_request(client)
        await client.fetch_window()  # a run fetches it in the background; here it must be known
        findings += _findings(stats, client)
    except OstlerError as error:
        findings.append(DoctorFinding("answers", "error", error.fault.message, error.fault.hint))
    finally:
        await client.aclose()
    return findings


async def _send_request(client: ModelClient) -> _ReplyStats:
    request = ModelRequest(
        "You are being tested.", (UserMessage((TextContent(QUESTION),)),), (WEATHER_TOOL,), max_tokens=MAX_TOKENS
    )
    stats, start = _ReplyStats(), time.monotonic()
    async for chunk in client.stream(request):
        stats.add(chunk, time.monotonic() - start)
    return stats


def _findings(stats: _ReplyStats, client: ModelClient) -> list[DoctorFinding]:
    findings = [
        _check_answers(stats),
        DoctorFinding("window", "ok", f"{client.context_limit:,} tokens"),
        _check_streaming(stats),
        *_check_tools(stats, client),
        DoctorFinding("reasoning", "ok", _REASONING_FORMS.get(client.reasoning, "none seen")),
        _check_usage(stats.usage),
    ]
    return [*findings, DoctorFinding("trouble", "warning", stats.problem)] if stats.problem else findings


def _check_answers(stats: _ReplyStats) -> DoctorFinding:
    if not stats.chunks and not stats.calls:
        return DoctorFinding("answers", "error", "the reply is empty", "check the server's log")
    return DoctorFinding(
        "answers", "ok", f"first output after {stats.first_seconds:.2f} s, complete after {stats.total_seconds:.2f} s"
    )


def _check_streaming(stats: _ReplyStats) -> DoctorFinding:
    if stats.chunks > 1:
        return DoctorFinding(
            "streaming", "ok", f"{stats.chunks} chunks over {stats.total_seconds - stats.first_seconds:.2f} s"
        )
    if not stats.chunks:
        return DoctorFinding("streaming", "ok", "not tested: the reply has no text")
    return DoctorFinding(
        "streaming", "warning", "the text arrived in one chunk; answers may appear only when they are complete"
    )


def _check_tools(stats: _ReplyStats, client: ModelClient) -> list[DoctorFinding]:
    if client.edits_in_text:
        return [DoctorFinding("tools", "ok", "not needed: this small model edits in the text of its answers")]
    if not stats.calls:
        remedy = "try --dialect text or --dialect xnl, or another model"
        return [DoctorFinding("tools", "error", "the model did not call the tool", remedy)]
    in_text = client.called_by == "text"
    dialect = DoctorFinding("dialect", "ok", "tool calls in the text" if in_text else "native API tool calls")
    if not stats.arguments_valid:
        remedy = "try --dialect text or --dialect xnl, or check the server's tool call parser"
        return [DoctorFinding("tools", "error", "the arguments of the call are not a JSON object", remedy), dialect]
    if stats.calls == ("weather",):
        return [DoctorFinding("tools", "ok", "the model calls tools"), dialect]
    names = ", ".join(stats.calls)
    return [DoctorFinding("tools", "warning", f"the model called {names} instead of weather once"), dialect]


def _check_usage(usage: Usage | None) -> DoctorFinding:
    if usage is None:
        return DoctorFinding("usage", "warning", "the server does not report token usage; it is estimated")
    return DoctorFinding("usage", "ok", f"{usage.tokens_in} tokens in, {usage.tokens_out} out")
