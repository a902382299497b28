"""The examination behind `ostler doctor model`: one small real request, and what its answer gives away."""

import os
import time
from pathlib import Path

import msgspec

from ostler.app.doctor import DoctorFinding
from ostler.app.model_choice import choose_model
from ostler.app.trusted_settings import load_settings
from ostler.core.errors import OstlerError
from ostler.core.prompt import TextContent
from ostler.core.tools import ToolSpec
from ostler.models.loose_json import LooseJsonError, read_json
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
    "length": f"its reply was cut at {MAX_TOKENS:,} tokens",
    "refusal": "it declined to answer",
    "filtered": "a content filter cut its reply off",
}
_REASONING_FORMS = {"field": "told apart by the server", "tags": "in <think> tags of its text, taken out of the answer"}


class _ReplyStats(msgspec.Struct):
    """What one reply was like."""

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
                f"the server ended its reply with {chunk.server_reason!r}" if chunk.server_reason else self.problem
            )
        self.total_seconds = seconds


def _is_json_object(arguments: str) -> bool:
    try:
        return isinstance(read_json(arguments.encode("utf-8", "replace")), dict)
    except LooseJsonError:
        return False


async def check_model(cwd: str, flags: dict[str, str]) -> list[DoctorFinding]:
    """Reachable, time to the first word, window, streaming, tools and dialect, reasoning, usage."""
    try:
        choice = await choose_model(load_settings(Path(cwd).resolve()), flags, os.environ)
    except OstlerError as error:
        return [DoctorFinding("model", "bad", error.fault.message, error.fault.hint)]
    found = [DoctorFinding("model", "good", choice.description)]
    client = choice.make("")
    try:
        heard = await _send_request(client)
        if learn := getattr(client, "fetch_window", None):
            await learn()  # a run asks beside its work; whoever asks the doctor wants to know
        found += _findings(heard, client)
    except OstlerError as error:
        found.append(DoctorFinding("answers", "bad", error.fault.message, error.fault.hint))
    finally:
        await client.aclose()
    return found


async def _send_request(client: ModelClient) -> _ReplyStats:
    request = ModelRequest(
        "You are being tested.", (UserMessage((TextContent(QUESTION),)),), (WEATHER_TOOL,), max_tokens=MAX_TOKENS
    )
    heard, begun = _ReplyStats(), time.monotonic()
    async for chunk in client.stream(request):
        heard.add(chunk, time.monotonic() - begun)
    return heard


def _findings(stats: _ReplyStats, client: ModelClient) -> list[DoctorFinding]:
    found = [
        _check_answers(stats),
        DoctorFinding("window", "good", f"{client.context_limit:,} tokens"),
        _check_streaming(stats),
        *_check_tools(stats, client),
        DoctorFinding("reasoning", "good", _REASONING_FORMS.get(getattr(client, "reasoning", ""), "none seen")),
        _check_usage(stats.usage),
    ]
    return [*found, DoctorFinding("trouble", "poor", stats.problem)] if stats.problem else found


def _check_answers(stats: _ReplyStats) -> DoctorFinding:
    if not stats.chunks and not stats.calls:
        return DoctorFinding("answers", "bad", "it ended its reply without a word", "look at the server's log")
    return DoctorFinding(
        "answers", "good", f"first word after {stats.first_seconds:.2f} s, all after {stats.total_seconds:.2f} s"
    )


def _check_streaming(stats: _ReplyStats) -> DoctorFinding:
    if stats.chunks > 1:
        return DoctorFinding(
            "streaming", "good", f"{stats.chunks} pieces over {stats.total_seconds - stats.first_seconds:.2f} s"
        )
    if not stats.chunks:
        return DoctorFinding("streaming", "good", "not seen: it said nothing beside its call")
    return DoctorFinding(
        "streaming", "poor", "the words came in one piece; little may be seen before an answer is whole"
    )


def _check_tools(stats: _ReplyStats, client: ModelClient) -> list[DoctorFinding]:
    if not stats.calls:
        remedy = "try --dialect text or --dialect xnl, or another model"
        return [DoctorFinding("tools", "bad", "it did not call the tool it was told to use", remedy)]
    in_text = getattr(client, "called_by", "") == "text"
    dialect = DoctorFinding("dialect", "good", "calls in its text, found there" if in_text else "the API's own calls")
    if not stats.arguments_valid:
        remedy = "try --dialect text or --dialect xnl, or look at how the server parses calls"
        return [DoctorFinding("tools", "bad", "the arguments of its call are no JSON object", remedy), dialect]
    if stats.calls == ("weather",):
        return [DoctorFinding("tools", "good", "it calls them"), dialect]
    names = ", ".join(stats.calls)
    return [DoctorFinding("tools", "poor", f"it called {names} instead of one tool once"), dialect]


def _check_usage(usage: Usage | None) -> DoctorFinding:
    if usage is None:
        return DoctorFinding("usage", "poor", "the server counts no tokens; they will be estimated")
    return DoctorFinding("usage", "good", f"{usage.tokens_in} tokens in, {usage.tokens_out} out")
