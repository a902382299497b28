"""The examination behind `ostler doctor model`: one small real request, and what its answer gives away."""

import os
import time
from pathlib import Path

import msgspec

from ostler.app.doctor import Finding
from ostler.app.models import choose_model
from ostler.app.trusting import load_settings
from ostler.models.loose_json import NotJson, read_json
from ostler.models.words import (
    Again,
    CallChunk,
    Chunk,
    Finished,
    Handed,
    ModelClient,
    Request,
    Silence,
    TextChunk,
    ThoughtChunk,
    Usage,
    UserSaid,
)
from ostler.vocabulary.errors import OstlerError
from ostler.vocabulary.prompt import Text
from ostler.vocabulary.tools import ToolSpec

WEATHER = ToolSpec(
    "weather",
    "read",
    "Tell the weather of a place.",
    {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
)
MOST_TOKENS = 1_000
QUESTION = "Count from one to thirty in words, on one line. Then use the tool: what is the weather in Paris?"
_ENDINGS = {
    "length": f"its reply was cut at {MOST_TOKENS:,} tokens",
    "refusal": "it declined to answer",
    "filtered": "a content filter cut its reply off",
}
_FORMS = {"field": "told apart by the server", "tags": "in <think> tags of its text, taken out of the answer"}


class _Heard(msgspec.Struct):
    """What one reply was like."""

    first: float = 0.0
    whole: float = 0.0
    pieces: int = 0
    calls: tuple[str, ...] = ()
    usage: Usage | None = None
    readable: bool = True  # the arguments of every call
    trouble: str = ""

    def take(self, chunk: Chunk, seconds: float) -> None:
        if isinstance(chunk, TextChunk | ThoughtChunk | CallChunk):
            self.first = self.first or seconds
        if isinstance(chunk, TextChunk | ThoughtChunk):
            self.pieces += 1
        elif isinstance(chunk, CallChunk):
            self.calls = (*self.calls, chunk.tool)
            self.readable = self.readable and _is_object(chunk.arguments)
        elif isinstance(chunk, Usage):
            self.usage = chunk
        elif isinstance(chunk, Silence | Again | Handed):
            self.trouble = chunk.reason
        elif isinstance(chunk, Finished):
            self.trouble = _ENDINGS.get(chunk.reason, self.trouble)
            self.trouble = f"the server ended its reply with {chunk.told!r}" if chunk.told else self.trouble
        self.whole = seconds


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(read_json(arguments.encode("utf-8", "replace")), dict)
    except NotJson:
        return False


async def examine_model(cwd: str, flags: dict[str, str]) -> list[Finding]:
    """Reachable, time to the first word, window, streaming, tools and dialect, reasoning, usage."""
    try:
        choice = await choose_model(load_settings(Path(cwd).resolve()), flags, os.environ)
    except OstlerError as error:
        return [Finding("model", "bad", error.fault.message, error.fault.hint)]
    found = [Finding("model", "good", choice.told)]
    client = choice.make("")
    try:
        heard = await _ask(client)
        if learn := getattr(client, "learn_window", None):
            await learn()  # a run asks beside its work; whoever asks the doctor wants to know
        found += _findings(heard, client)
    except OstlerError as error:
        found.append(Finding("answers", "bad", error.fault.message, error.fault.hint))
    finally:
        await client.aclose()
    return found


async def _ask(client: ModelClient) -> _Heard:
    request = Request("You are being tested.", (UserSaid((Text(QUESTION),)),), (WEATHER,), max_tokens=MOST_TOKENS)
    heard, begun = _Heard(), time.monotonic()
    async for chunk in client.stream(request):
        heard.take(chunk, time.monotonic() - begun)
    return heard


def _findings(heard: _Heard, client: ModelClient) -> list[Finding]:
    found = [
        _answers(heard),
        Finding("window", "good", f"{client.context_limit:,} tokens"),
        _streaming(heard),
        *_tools(heard, client),
        Finding("reasoning", "good", _FORMS.get(getattr(client, "reasoning", ""), "none seen")),
        _usage(heard.usage),
    ]
    return [*found, Finding("trouble", "poor", heard.trouble)] if heard.trouble else found


def _answers(heard: _Heard) -> Finding:
    if not heard.pieces and not heard.calls:
        return Finding("answers", "bad", "it ended its reply without a word", "look at the server's log")
    return Finding("answers", "good", f"first word after {heard.first:.2f} s, all after {heard.whole:.2f} s")


def _streaming(heard: _Heard) -> Finding:
    if heard.pieces > 1:
        return Finding("streaming", "good", f"{heard.pieces} pieces over {heard.whole - heard.first:.2f} s")
    if not heard.pieces:
        return Finding("streaming", "good", "not seen: it said nothing beside its call")
    return Finding("streaming", "poor", "the words came in one piece; little may be seen before an answer is whole")


def _tools(heard: _Heard, client: ModelClient) -> list[Finding]:
    if not heard.calls:
        remedy = "try --dialect text or --dialect xnl, or another model"
        return [Finding("tools", "bad", "it did not call the tool it was told to use", remedy)]
    in_text = getattr(client, "called_by", "") == "text"
    dialect = Finding("dialect", "good", "calls in its text, found there" if in_text else "the API's own calls")
    if not heard.readable:
        remedy = "try --dialect text or --dialect xnl, or look at how the server parses calls"
        return [Finding("tools", "bad", "the arguments of its call are no JSON object", remedy), dialect]
    if heard.calls == ("weather",):
        return [Finding("tools", "good", "it calls them"), dialect]
    names = ", ".join(heard.calls)
    return [Finding("tools", "poor", f"it called {names} instead of one tool once"), dialect]


def _usage(usage: Usage | None) -> Finding:
    if usage is None:
        return Finding("usage", "poor", "the server counts no tokens; they will be estimated")
    return Finding("usage", "good", f"{usage.tokens_in} tokens in, {usage.tokens_out} out")
