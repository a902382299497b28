"""A session with the engine, a scripted model and tools of the test's own."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from ostler.backends.engine.backend import Engine
from ostler.core.errors import BackendError
from ostler.models.model_types import CallChunk, ModelRequest, ReplyChunk, ReplyFinished, TextChunk, Usage
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ALLOW_ALL, open_test_session, run_turn
from ostler.workspace.local_workspace import LocalWorkspace


class Said:
    """One reply of the model: words, calls as (tool, arguments), what it cost, or a failure's code."""

    def __init__(self, text: str = "", *calls: tuple[str, dict[str, Any]], cost: float | None = None, fails: str = ""):
        self.text, self.calls, self.cost, self.fails = text, calls, cost, fails
        self.tokens: tuple[int, int] | None = None
        self.finish = "calls" if calls else "stop"
        self.pause: asyncio.Event | None = None

    def counted(self, tokens_in: int, tokens_out: int) -> "Said":
        self.tokens = (tokens_in, tokens_out)
        return self


class Model:
    """Asks a function for each reply; it keeps the requests, and counts four bytes of words as a token."""

    def __init__(self, reply: Callable[[ModelRequest], Said], *, limit: int = 32_000) -> None:
        self.name = "fake"
        self.context_limit = limit
        self.requests: list[ModelRequest] = []
        self._reply = reply

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        self.requests.append(request)
        said = self._reply(request)
        if said.fails:
            raise BackendError("the model failed", code=said.fails)
        if said.text:
            yield TextChunk(said.text)
        if said.pause:
            await said.pause.wait()
        for index, (tool, arguments) in enumerate(said.calls):
            yield CallChunk(f"call-{len(self.requests)}-{index}", tool, json.dumps(arguments))
        if said.tokens:
            yield Usage(*said.tokens, cost=said.cost)
        yield ReplyFinished(said.finish)

    async def aclose(self) -> None: ...


def script(*lines: Said) -> Callable[[ModelRequest], Said]:
    """Replies in order; the last one again and again."""
    left = list(lines)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


class Play:
    """Opens a session for a model, and plays turns in it."""

    def __init__(self, folder: str) -> None:
        self._workspace = LocalWorkspace(folder)
        self.session: Any = None
        self.engine: Engine

    async def open(
        self,
        model: Model,
        tools: Sequence[FakeTool] = (),
        *,
        policy: Any = ALLOW_ALL,
        journal: Any = None,
        system: str = "Be good.",
        **how: Any,
    ) -> "Play":
        specs = [tool.spec for tool in tools]
        self.engine = Engine(make_model=lambda name: model, tools=lambda: specs, system=lambda: system, **how)
        self.session = await open_test_session(self.engine, tools, self._workspace, policy=policy, journal=journal)
        return self

    async def turn(self, text: str) -> Any:
        events, ended = await run_turn(self.session, text)
        self.events = events
        return ended

    def past(self, *kinds: type) -> list[Any]:
        return [event for event in self.session.events() if isinstance(event, kinds)]
