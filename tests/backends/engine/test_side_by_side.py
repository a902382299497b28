"""Which calls of one reply run together: neighbours that change nothing, by whatever name they are called."""

import asyncio

import pytest
from engine_play import Model, Said, script

from ostler.backends.engine.plugins.plugin import CONTINUE_TEXT
from ostler.core.events import ToolCalled, ToolFinished
from ostler.core.tools import ToolCall
from ostler.models.model_types import ToolResultsMessage
from ostler.testing.fake_tool import FakeTool

LOOKS = ("read", "cat", "SysBuiltIn.read_file", "readFile", "Grep", "search_text")


class Meeting:
    """Counts who is inside at once; with `all_of`, each stays until so many have come."""

    def __init__(self, all_of: int = 1) -> None:
        self._all_of, self._inside, self.most = all_of, 0, 0
        self._together = asyncio.Event()

    async def come(self, params, context):
        self._inside += 1
        self.most = max(self.most, self._inside)
        if self._inside >= self._all_of:
            self._together.set()
        async with asyncio.timeout(30):
            await self._together.wait()
        self._inside -= 1
        return "seen"


@pytest.mark.req("TL-9")
async def test_looks_run_side_by_side_by_any_name_and_their_results_are_in_call_order(harness):
    meeting = Meeting(all_of=len(LOOKS))
    tools = [FakeTool(name, meeting.come, effects=False) for name in ("read", "grep")]
    model = Model(script(Said("", *((name, {"n": n}) for n, name in enumerate(LOOKS))), Said("Done.")))
    await harness.open(model, tools)
    assert (await harness.turn("look")).reason == "done"
    assert meeting.most == len(LOOKS)
    told = [said for said in model.requests[-1].history if isinstance(said, ToolResultsMessage)][-1]
    assert [result.call_id for result in told.results] == [f"call-1-{n}" for n in range(len(LOOKS))]


@pytest.mark.req("TL-9")
@pytest.mark.parametrize("name", ["write", "write_file", "SysBuiltIn.write_file", "saveFile", "nobody knows it"])
async def test_whatever_may_change_something_runs_alone(harness, name):
    meeting = Meeting()
    tools = [FakeTool("read", meeting.come, effects=False), FakeTool("write", meeting.come)]
    await harness.open(Model(script(Said("", ("cat", {}), (name, {}), ("cat", {"n": 2})), Said("Done."))), tools)
    assert (await harness.turn("change")).reason == "done"
    assert meeting.most == 1
    assert [event.result.call_id for event in harness.past(ToolFinished)] == ["call-1-0", "call-1-1", "call-1-2"]


async def test_a_call_by_another_name_is_known_for_what_it_is(harness):
    read = FakeTool("read", effects=False)
    await harness.open(Model(script(Said("", ("view_file", {})), Said("Done."))), [read])
    await harness.turn("look")
    assert harness.past(ToolCalled)[0].kind == read.spec.kind


async def test_a_persons_call_while_the_models_runs_leaves_that_its_result(harness):
    running, go_on = asyncio.Event(), asyncio.Event()

    async def slow(params, context):
        running.set()
        async with asyncio.timeout(30):
            await go_on.wait()
        return "slow work"

    async def quick(params, context):
        return "quick work"

    model = Model(script(Said("", ("slow", {})), Said("Done.")))
    await harness.open(model, [FakeTool("slow", slow), FakeTool("quick", quick)])
    turn = asyncio.create_task(harness.turn("work"))
    async with asyncio.timeout(30):
        await running.wait()
    await harness.session.call(ToolCall("by-hand", "quick", {}, origin="person"))
    go_on.set()
    assert (await turn).reason == "done"
    *_, results, typed, came, last = model.requests[-1].history
    assert [result.for_model for result in results.results] == ["slow work"]
    assert [typed.blocks[0].text, came.message.text, last.blocks[0].text] == ["!quick", "quick work", CONTINUE_TEXT]
