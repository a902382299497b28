"""The limits of a turn include its parallel children."""

import asyncio
import json

import pytest

from ostler.app.session_manager import LocalSessionManager
from ostler.core.events import ChildEnded, ChildStarted, ToolFinished
from ostler.core.sessions import OpenSessionRequest
from ostler.models.model_choice import ModelChoice
from ostler.models.model_types import CallChunk, ModelClientDefaults, ReplyFinished, TextChunk, Usage
from ostler.settings.run_options import RunOptions
from ostler.testing.session_fixture import run_turn

CHILDREN = 4
PRICE = 0.001

pytestmark = pytest.mark.req("EN-12", "MD-8")


class RestlessModel(ModelClientDefaults):
    """A model whose first call starts children; each child calls tools forever, in parallel."""

    name = "restless"
    context_limit = 1_000_000

    def __init__(self):
        self.calls, self.tokens, self.cost = 0, 0, 0.0
        self.at_once, self.most_at_once = 0, 0

    async def stream(self, request):
        self.calls += 1
        number = self.calls
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        for _ in range(20):
            await asyncio.sleep(0)
        self.at_once -= 1
        if any(tool.name == "task" for tool in request.tools) and number == 1:
            for child in range(CHILDREN):
                arguments = {"prompt": f"part {child}", "agent": "explore", "title": "part"}
                yield CallChunk(f"task-{child}", "task", json.dumps(arguments))
        else:
            yield TextChunk("looking")
            yield CallChunk(f"call-{number}", "glob", json.dumps({"pattern": f"{number}*"}))
        yield self._count(request)
        yield ReplyFinished("calls")

    def _count(self, request):
        text = request.system + str(request.tools) + str(request.history)
        usage = Usage(len(text) // 4, 50)
        tokens = usage.tokens_in + usage.tokens_out
        self.tokens += tokens
        self.cost += tokens * PRICE
        return Usage(usage.tokens_in, usage.tokens_out, cost=tokens * PRICE)

    async def aclose(self):
        """Nothing to close."""


async def run(tmp_path, monkeypatch, turns=1, **limits):
    for name in ("home", "workspace"):
        (tmp_path / name).mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    model = RestlessModel()
    options = RunOptions(cwd=str(tmp_path / "workspace"), ephemeral=True, **limits)
    manager = LocalSessionManager(options, lambda message: None, ModelChoice("restless", lambda name: model))
    session = await manager.open(OpenSessionRequest(options.cwd, interactive=False))
    try:
        for _ in range(turns):
            _, ended = await run_turn(session, "go")
        events = list(session.events())
    finally:
        await session.aclose()
    return model, ended, events


async def first_sizes(tmp_path, monkeypatch):
    """Return the tokens of the root's first call and of a child's first call."""
    model, _, _ = await run(tmp_path, monkeypatch, max_steps=1)
    root = model.tokens
    model, _, _ = await run(tmp_path, monkeypatch, max_steps=2)
    return root, model.tokens - root


@pytest.mark.parametrize("steps", [1, 3, 7])
@pytest.mark.invariant("S9")
async def test_steps_of_children_are_counted(tmp_path, monkeypatch, steps):
    model, ended, events = await run(tmp_path, monkeypatch, max_steps=steps)
    assert (ended.reason, ended.limit) == ("limit", f"{steps} step" + "s" * (steps > 1))
    assert model.calls == steps
    assert len([event for event in events if isinstance(event, ToolFinished)]) == CHILDREN


async def test_tokens_are_reserved_before_each_request(tmp_path, monkeypatch):
    root, child = await first_sizes(tmp_path, monkeypatch)
    limit = root + 6 * child
    model, ended, events = await run(tmp_path, monkeypatch, max_tokens=limit)
    assert ended.limit == f"{limit} tokens"
    assert model.most_at_once > 1
    assert root + 2 * child < model.tokens <= limit
    assert {event.reason for event in events if isinstance(event, ChildEnded)} == {"limit"}
    assert len([event for event in events if isinstance(event, ChildStarted)]) == CHILDREN


async def test_cost_is_reserved_before_each_request(tmp_path, monkeypatch):
    root, child = await first_sizes(tmp_path, monkeypatch)
    limit = (root + 6 * child) * PRICE
    model, ended, _ = await run(tmp_path, monkeypatch, max_cost=limit)
    assert ended.limit == f"${limit:g}"
    assert model.most_at_once > 1
    assert (root + 2 * child) * PRICE < model.cost <= limit


async def test_fewer_parallel_requests_with_a_small_budget(tmp_path, monkeypatch):
    root, child = await first_sizes(tmp_path, monkeypatch)
    model, _, _ = await run(tmp_path, monkeypatch, max_tokens=root + int(1.9 * child))
    assert model.calls == 2


async def test_time_limit_ends_children(tmp_path, monkeypatch):
    async def forever(self, request):
        self.calls += 1
        if self.calls == 1:
            for chunk in [CallChunk(f"t{n}", "task", json.dumps({"prompt": "p", "agent": "explore"})) for n in "ab"]:
                yield chunk
            yield ReplyFinished("calls")
        else:
            await asyncio.Event().wait()

    monkeypatch.setattr(RestlessModel, "stream", forever)
    model, ended, events = await run(tmp_path, monkeypatch, max_time=2.0)
    assert (ended.reason, ended.limit) == ("limit", "2 seconds")
    assert [event.reason for event in events if isinstance(event, ChildEnded)] == ["cancelled", "cancelled"]
    assert model.calls == 3


async def test_budget_is_reset_for_the_next_turn(tmp_path, monkeypatch):
    model, ended, _ = await run(tmp_path, monkeypatch, turns=2, max_steps=2)
    assert (model.calls, ended.limit) == (4, "2 steps")
