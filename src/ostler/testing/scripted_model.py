"""A model that says what its script says, and complains about what was not played."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

import msgspec

from ostler.core.errors import BackendError
from ostler.models.model_types import CallChunk, ModelRequest, ReplyChunk, ReplyFinished, TextChunk, ThoughtChunk, Usage


class ScriptedCall(msgspec.Struct, frozen=True):
    """A call in a script; without an id it gets one of its own."""

    tool: str
    arguments: Mapping[str, Any] = {}
    id: str = ""


class ScriptedLine(msgspec.Struct, frozen=True):
    """One reply: thought, text, then calls; or a failure instead.

    `pause` is waited for after the text, so that a test can act in mid-stream; `check` sees the request first.
    """

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    thought: str = ""
    error: str = ""
    pause: asyncio.Event | None = None
    check: Callable[[ModelRequest], None] | None = None


class ScriptedModel:
    """Plays its lines in order; one call too many, or a line too few, is an error."""

    def __init__(self, lines: Iterable[ScriptedLine], *, name: str = "scripted", context_limit: int = 32_000) -> None:
        self.name = name
        self.context_limit = context_limit
        self.requests: list[ModelRequest] = []
        self._lines = list(lines)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        self.requests.append(request)
        number = len(self.requests)
        if number > len(self._lines):
            raise BackendError(f"the script has {len(self._lines)} lines and was asked for line {number}")
        line = self._lines[number - 1]
        if line.check:
            line.check(request)
        if line.thought:
            yield ThoughtChunk(line.thought)
        for word in line.text.splitlines(keepends=True):
            yield TextChunk(word)
            await asyncio.sleep(0)
        if line.pause:
            await line.pause.wait()
        if line.error:
            raise BackendError(line.error)
        for index, call in enumerate(line.calls):
            yield CallChunk(call.id or f"call-{number}-{index}", call.tool, json.dumps(call.arguments))
        yield Usage(tokens_in=10 * number, tokens_out=len(line.text) // 4 + 1)
        yield ReplyFinished("calls" if line.calls else "stop")

    async def aclose(self) -> None:
        """Nothing to give back; leftovers are `finish`'s to find."""

    def finish(self) -> None:
        """Raise if lines were left over."""
        left = len(self._lines) - len(self.requests)
        if left > 0:
            raise AssertionError(f"{left} of {len(self._lines)} scripted lines were not played")
