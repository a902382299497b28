"""A session with the engine, a scripted model and the test's own tools."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from ostler.backends.engine.backend import Engine
from ostler.core.errors import BackendError
from ostler.models.model_types import (
    CallChunk,
    ModelClientDefaults,
    ModelRequest,
    ReplyChunk,
    ReplyFinished,
    TextChunk,
    Usage,
)
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ALLOW_ALL, open_test_session, run_turn
from ostler.workspace.local_workspace import LocalWorkspace


class Reply:
    """One reply of the model: text, calls as (tool, arguments), its cost, or the code of a failure."""

    def __init__(self, text: str = "", *calls: tuple[str, dict[str, Any]], cost: float | None = None, fails: str = ""):
        self.text, self.calls, self.cost, self.fails = text, calls, cost, fails
        self.tokens: tuple[int, int] | None = None
        self.finish = "calls" if calls else "stop"
        self.pause: asyncio.Event | None = None

    def counted(self, tokens_in: int, tokens_out: int) -> "Reply":
        self.tokens = (tokens_in, tokens_out)
        return self


class Model(ModelClientDefaults):
    """Calls a function for each reply and records the requests."""

    def __init__(self, reply: Callable[[ModelRequest], Reply], *, limit: int = 32_000) -> None:
        self.name = "fake"
        self.context_limit = limit
        self.requests: list[ModelRequest] = []
        self._reply = reply

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        self.requests.append(request)
        reply = self._reply(request)
        if reply.fails:
            raise BackendError("the model failed", code=reply.fails)
        if reply.text:
            yield TextChunk(reply.text)
        if reply.pause:
            await reply.pause.wait()
        for index, (tool, arguments) in enumerate(reply.calls):
            yield CallChunk(f"call-{len(self.requests)}-{index}", tool, json.dumps(arguments))
        if reply.tokens:
            yield Usage(*reply.tokens, cost=reply.cost)
        yield ReplyFinished(reply.finish)

    async def aclose(self) -> None: ...


def script(*replies: Reply) -> Callable[[ModelRequest], Reply]:
    """Return the replies in order, then repeat the last one."""
    remaining = list(replies)
    return lambda request: remaining.pop(0) if len(remaining) > 1 else remaining[0]


class EngineHarness:
    """Opens a session for a model and runs turns in it."""

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
        **options: Any,
    ) -> "EngineHarness":
        specs = [tool.spec for tool in tools]
        self.engine = Engine(make_model=lambda name: model, tools=lambda: specs, system=lambda: system, **options)
        self.session = await open_test_session(self.engine, tools, self._workspace, policy=policy, journal=journal)
        return self

    async def turn(self, text: str) -> Any:
        events, ended = await run_turn(self.session, text)
        self.events = events
        return ended

    def events_of(self, *kinds: type) -> list[Any]:
        return [event for event in self.session.events() if isinstance(event, kinds)]
