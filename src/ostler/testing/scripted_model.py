"""A model client that plays scripted replies."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from typing import Any

import msgspec

from ostler.core.errors import BackendError
from ostler.models.model_types import (
    CallChunk,
    ModelClientDefaults,
    ModelRequest,
    ReplyChunk,
    ReplyFinished,
    TextChunk,
    ThoughtChunk,
    Usage,
)


class ScriptedCall(msgspec.Struct, frozen=True):
    """A call in a script. Without an id it gets one."""

    tool: str
    arguments: Mapping[str, Any] = {}
    id: str = ""


class ScriptedLine(msgspec.Struct, frozen=True):
    """One reply: thought, text, then calls; with `error` it fails after the text.

    `pause` is awaited after the text, so that a test can act during the stream. `check` is called with the request
    first.
    """

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    thought: str = ""
    error: str = ""
    pause: asyncio.Event | None = None
    check: Callable[[ModelRequest], None] | None = None


class ScriptedModel(ModelClientDefaults):
    """Plays its lines in order. A request without a line raises `BackendError`; see `finish` for unused lines."""

    def __init__(self, lines: Iterable[ScriptedLine], *, name: str = "scripted", context_limit: int = 32_000) -> None:
        self.name = name
        self.context_limit = context_limit
        self.requests: list[ModelRequest] = []
        self._lines = list(lines)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        self.requests.append(request)
        number = len(self.requests)
        if number > len(self._lines):
            raise BackendError(f"the script has only {len(self._lines)} lines, and line {number} was requested")
        line = self._lines[number - 1]
        if line.check:
            line.check(request)
        if line.thought:
            yield ThoughtChunk(line.thought)
        for text in line.text.splitlines(keepends=True):
            yield TextChunk(text)
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
        """Do nothing; call `finish` to check for unused lines."""

    def finish(self) -> None:
        """Raise `AssertionError` if lines were not used."""
        unused = len(self._lines) - len(self.requests)
        if unused > 0:
            raise AssertionError(f"{unused} of {len(self._lines)} scripted lines were not played")
