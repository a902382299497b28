"""Which calls of one reply run in parallel: adjacent read-only calls, under any alias."""

import asyncio

import pytest
from engine_harness import Model, Reply, script

from ostler.backends.engine.plugins.plugin import CONTINUE_TEXT
from ostler.core.events import ToolCalled, ToolFinished
from ostler.core.tools import ToolCall
from ostler.models.model_types import ToolResultsMessage
from ostler.testing.fake_tool import FakeTool

READ_CALLS = ("read", "cat", "SysBuiltIn.read_file", "readFile", "Grep", "search_text")


class ConcurrencyProbe:
    """Counts concurrent runs; with `all_of`, each run waits until that many have started."""

    def __init__(self, all_of: int = 1) -> None:
        self._all_of, self._running, self.max_concurrent = all_of, 0, 0
        self._all_started = asyncio.Event()

    async def run(self, params, context):
        self._running += 1
        self.max_concurrent = max(self.max_concurrent, self._running)
        if self._running >= self._all_of:
            self._all_started.set()
        async with asyncio.timeout(30):
            await self._all_started.wait()
        self._running -= 1
        return "seen"


@pytest.mark.req("TL-9")
async def test_read_only_calls_run_in_parallel_with_ordered_results(harness):
    probe = ConcurrencyProbe(all_of=len(READ_CALLS))
    tools = [FakeTool(name, probe.run, effects=False) for name in ("read", "grep")]
    model = Model(script(Reply("", *((name, {"n": n}) for n, name in enumerate(READ_CALLS))), Reply("Done.")))
    await harness.open(model, tools)
    assert (await harness.turn("look")).reason == "done"
    assert probe.max_concurrent == len(READ_CALLS)
    last_results = [message for message in model.requests[-1].history if isinstance(message, ToolResultsMessage)][-1]
    assert [result.call_id for result in last_results.results] == [f"call-1-{n}" for n in range(len(READ_CALLS))]


@pytest.mark.req("TL-9")
@pytest.mark.parametrize("name", ["write", "write_file", "SysBuiltIn.write_file", "saveFile", "an unknown tool"])
async def test_calls_with_effects_run_alone(harness, name):
    probe = ConcurrencyProbe()
    tools = [FakeTool("read", probe.run, effects=False), FakeTool("write", probe.run)]
    await harness.open(Model(script(Reply("", ("cat", {}), (name, {}), ("cat", {"n": 2})), Reply("Done."))), tools)
    assert (await harness.turn("change")).reason == "done"
    assert probe.max_concurrent == 1
    assert [event.result.call_id for event in harness.events_of(ToolFinished)] == ["call-1-0", "call-1-1", "call-1-2"]


async def test_alias_has_the_tools_kind(harness):
    read = FakeTool("read", effects=False)
    await harness.open(Model(script(Reply("", ("view_file", {})), Reply("Done."))), [read])
    await harness.turn("look")
    assert harness.events_of(ToolCalled)[0].kind == read.spec.kind


async def test_manual_call_during_a_model_call_is_deferred(harness):
    running, proceed = asyncio.Event(), asyncio.Event()

    async def slow(params, context):
        running.set()
        async with asyncio.timeout(30):
            await proceed.wait()
        return "slow work"

    async def quick(params, context):
        return "quick work"

    model = Model(script(Reply("", ("slow", {})), Reply("Done.")))
    await harness.open(model, [FakeTool("slow", slow), FakeTool("quick", quick)])
    turn = asyncio.create_task(harness.turn("work"))
    async with asyncio.timeout(30):
        await running.wait()
    await harness.session.call(ToolCall("manual", "quick", {}, origin="person"))
    proceed.set()
    assert (await turn).reason == "done"
    *_, results, typed, output, last = model.requests[-1].history
    assert [result.for_model for result in results.results] == ["slow work"]
    assert [typed.blocks[0].text, output.message.text, last.blocks[0].text] == [
        "!quick",
        "$ quick\nquick work",
        CONTINUE_TEXT,
    ]
