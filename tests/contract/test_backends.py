"""Every backend plays the same scenes, numbered and named; one that cannot play a scene says so by name."""

import asyncio

import pytest
from drivers import DRIVERS, Calls, Crash, Hold, Say

from ostler.core.events import (
    InfoChanged,
    MessageDone,
    OptionChanged,
    PermissionAsked,
    PermissionDecided,
    StateChanged,
    Steered,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ostler.core.permission import Decision
from ostler.core.sessions import SetOption, Steer
from ostler.journal.memory_journal import MemoryJournal
from ostler.testing.scripted_model import ScriptedCall
from ostler.testing.session_fixture import ALLOW_ALL, ASK_ALL, make_prompt, open_test_session, run_turn
from ostler.workspace.local_workspace import LocalWorkspace

PATIENCE = 60.0


class Scene:
    """A session with one driver's backend, its events as they come, and waiting for one of them."""

    def __init__(self, driver, tmp_path, tools=()):
        self.driver = driver
        driver.folder = tmp_path
        self.workspace = LocalWorkspace(str(tmp_path))
        self.tools = list(tools)
        self.events = []

    async def open(self, turns, *, policy=ALLOW_ALL, journal=None):
        backend = self.driver.backend(turns, [tool.spec for tool in self.tools])
        self.session = await open_test_session(backend, self.tools, self.workspace, policy=policy, journal=journal)
        self.backend = backend
        self.reading = self.session.subscribe(since=2**62)
        return self

    async def until(self, kind, times=1):
        """The event that makes `times` of a kind."""
        async with asyncio.timeout(PATIENCE):
            while len(found := [e for e in self.events if isinstance(e, kind)]) < times:
                self.events.append((await anext(self.reading)).event)
        return found[-1]

    async def close(self):
        await self.session.aclose()
        self.driver.finish()

    def results(self):
        return [e.result for e in self.session.events() if isinstance(e, ToolFinished)]


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.name)
def driver(request):
    made = request.param()
    scene = request.node.get_closest_marker("scene").args[0]
    if scene in made.cannot:
        pytest.skip(f"{made.name}: {made.cannot[scene]}")
    return made


def one(tool, **arguments):
    return Calls((ScriptedCall(tool, arguments),))


@pytest.mark.req("EN-2")
@pytest.mark.scene("plain answer")
async def test_01_plain_answer(driver, tmp_path):
    scene = await Scene(driver, tmp_path).open([[Say("Hello "), Say("there.")]])
    events, ended = await run_turn(scene.session, "hi")
    assert ended.reason == "done"
    assert [e.message.text for e in events if isinstance(e, MessageDone)] == ["Hello there."]
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "Hello there."
    assert isinstance(events[0], TurnStarted)
    assert isinstance(events[-2], TurnEnded)
    assert events[-1] == StateChanged("idle")
    await scene.close()


@pytest.mark.req("EN-2")
@pytest.mark.scene("tool")
async def test_02_tool(driver, tmp_path):
    tool = driver.tool("probe")
    scene = await Scene(driver, tmp_path, [tool]).open([[Say("Looking."), one("probe", subject="here"), Say("Found.")]])
    events, ended = await run_turn(scene.session, "look")
    assert (ended.reason, ["here" in str(run) for run in tool.runs]) == ("done", [True])
    kinds = [type(e).__name__ for e in events]
    assert kinds.index("ToolCalled") < kinds.index("ToolStarted") < kinds.index("ToolFinished")
    assert [r.for_model for r in scene.results()] == [f"{tool.spec.name} ran"]
    await scene.close()


@pytest.mark.req("PM-7")
@pytest.mark.scene("refusal with feedback")
async def test_03_refusal_with_feedback(driver, tmp_path):
    tool = driver.tool("probe")
    scene = await Scene(driver, tmp_path, [tool]).open([[one("probe"), Say("As you wish.")]], policy=ASK_ALL)
    turn = scene.session.start(make_prompt("look"))
    ask = await scene.until(PermissionAsked)
    assert scene.session.answer(ask.ask_id, Decision("deny", by="person", feedback="use the other file"))
    assert not scene.session.answer(ask.ask_id, Decision("allow", by="person"))
    assert (await turn.wait()).reason == "done"
    assert [(r.status, "use the other file" in r.for_model) for r in scene.results()] == [("denied", True)]
    assert tool.runs == []
    await scene.close()


@pytest.mark.req("CL-9")
@pytest.mark.scene("cancel while asking")
async def test_04_cancel_while_asking(driver, tmp_path):
    tool = driver.tool("probe")
    scene = await Scene(driver, tmp_path, [tool]).open([[one("probe")], [Say("Fine.")]][:1], policy=ASK_ALL)
    turn = scene.session.start(make_prompt("look"))
    await scene.until(PermissionAsked)
    turn.cancel()
    assert (await turn.wait()).reason == "cancelled"
    decided = await scene.until(PermissionDecided)
    assert decided.decision.answer == "cancel"
    assert [r.status for r in scene.results()] == ["cancelled"]
    assert tool.runs == []
    assert scene.session.state.asks == {}
    await scene.session.aclose()


@pytest.mark.req("CL-9", "EN-2")
@pytest.mark.scene("cancel while running")
async def test_05_cancel_while_running(driver, tmp_path):
    running, stopped = asyncio.Event(), asyncio.Event()

    async def forever(arguments, context):
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    scene = await Scene(driver, tmp_path, [driver.tool("probe", forever)]).open([[one("probe")]])
    turn = scene.session.start(make_prompt("look"))
    await running.wait()
    turn.cancel()
    assert (await turn.wait()).reason == "cancelled"
    assert stopped.is_set()
    assert [r.status for r in scene.results()] == ["cancelled"]
    await scene.session.aclose()


@pytest.mark.req("MD-5", "EN-2")
@pytest.mark.scene("crash of the far side")
async def test_06_crash_of_the_far_side(driver, tmp_path):
    scene = await Scene(driver, tmp_path).open([[Say("I was about to "), Crash()], [Say("Again, whole.")]])
    events, ended = await run_turn(scene.session, "go")
    assert ended.reason == "failed"
    assert "the connection was lost" in str(ended.fault)
    cut = [e.message for e in events if isinstance(e, MessageDone)]
    assert [(m.text, m.truncated) for m in cut] == [("I was about to ", True)]
    _, ended = await run_turn(scene.session, "once more")
    assert ended.reason == "done"
    await scene.close()


@pytest.mark.scene("two asks at once")
async def test_07_two_asks_at_once(driver, tmp_path):
    first, second = driver.tool("first", effects=False), driver.tool("second", effects=False)
    both = Calls((ScriptedCall("first"), ScriptedCall("second")))
    scene = await Scene(driver, tmp_path, [first, second]).open([[both, Say("Done.")]], policy=ASK_ALL)
    turn = scene.session.start(make_prompt("look"))
    await scene.until(PermissionAsked, times=2)
    asks = {e.permission.title: e.ask_id for e in scene.events if isinstance(e, PermissionAsked)}
    assert scene.session.answer(asks[f"use {second.spec.name}"], Decision("deny", by="person"))
    assert scene.session.answer(asks[f"use {first.spec.name}"], Decision("allow", by="person"))
    assert (await turn.wait()).reason == "done"
    assert (len(first.runs), len(second.runs)) == (1, 0)
    await scene.close()


@pytest.mark.req("SH-4")
@pytest.mark.scene("unattended ask")
async def test_08_unattended_ask(driver, tmp_path):
    tool = driver.tool("probe")
    policy = type(ASK_ALL)(rules=ASK_ALL.rules, interactive=False)
    scene = await Scene(driver, tmp_path, [tool]).open([[one("probe"), Say("I could not.")]], policy=policy)
    events, ended = await run_turn(scene.session, "look")
    assert ended.reason == "done"
    assert not any(isinstance(e, PermissionAsked) for e in events)
    assert [(r.status, "nobody" in r.for_model) for r in scene.results()] == [("denied", True)]
    assert tool.runs == []
    await scene.close()


@pytest.mark.req("SV-7")
@pytest.mark.scene("a call repeated by id")
async def test_09_a_call_repeated_by_id(driver, tmp_path):
    tool = driver.tool("probe")
    again = Calls((ScriptedCall("probe", {}, "the-call"),))
    scene = await Scene(driver, tmp_path, [tool]).open([[again, again, Say("Once is enough.")]])
    _, ended = await run_turn(scene.session, "look")
    assert ended.reason == "done"
    ids = [result.call_id for result in scene.results()]
    # A model's ids are words of its reply, which some servers count anew each time; a far side's name a call for good.
    assert len(tool.runs) == len(set(ids)) == (2 if driver.name == "engine" else 1)
    assert ids[0] == "the-call"
    await scene.close()


@pytest.mark.req("EN-16")
@pytest.mark.scene("steer")
async def test_10_steer(driver, tmp_path):
    hold = asyncio.Event()
    turns = [[Say("Working."), Hold(hold), *([Calls(())] if driver.name == "engine" else []), Say("Left it is.")]]
    scene = await Scene(driver, tmp_path).open(turns)
    turn = scene.session.start(make_prompt("go"))
    await scene.until(TextDelta)
    assert await scene.session.apply(Steer(make_prompt("turn left", "prompt-2")))
    hold.set()
    assert (await turn.wait()).reason == "done"
    assert (await scene.until(Steered)).prompt.text == "turn left"
    await scene.close()


@pytest.mark.req("MD-7")
@pytest.mark.scene("option changed between turns")
async def test_11_option_changed_between_turns(driver, tmp_path):
    scene = await Scene(driver, tmp_path).open([[Say("One.")], [Say("Two.")]])
    await run_turn(scene.session, "first")
    assert await scene.session.apply(SetOption("model", "another"))
    assert (await scene.until(OptionChanged)).value == "another"
    assert scene.session.state.options == {"model": "another"}
    _, ended = await run_turn(scene.session, "second")
    assert ended.reason == "done"
    await scene.close()


@pytest.mark.scene("a turn begun by the far side")
async def test_12_a_turn_begun_by_the_far_side(driver, tmp_path):
    scene = await Scene(driver, tmp_path).open([[Say("I began.")]])
    scene.backend.context.remote_turn_started(make_prompt("from afar"))
    assert (await scene.until(TurnStarted)).prompt.text == "from afar"
    assert (await scene.until(TurnEnded)).reason == "done"
    await scene.close()


@pytest.mark.req("SE-1", "EN-2")
@pytest.mark.scene("resume")
async def test_13_resume(driver, tmp_path):
    """A journal that stops in mid-turn: what was left open is closed by events, and the next turn goes on."""
    tool = driver.tool("probe")
    first = await Scene(driver, tmp_path, [tool]).open([[one("probe"), Say("One.")]])
    await run_turn(first.session, "first")
    started = next(i for i, e in enumerate(first.session._journal.envelopes) if isinstance(e.event, ToolStarted))
    torn = MemoryJournal("session-1", first.session._journal.envelopes[: started + 1])
    await first.close()
    again = await Scene(type(driver)(), tmp_path, [tool]).open([[Say("Two.")]], journal=torn)
    assert [r.status for r in again.results()] == ["unknown"]
    assert again.session.state.turn is None
    assert any(isinstance(e, InfoChanged) for e in again.session.events())
    _, ended = await run_turn(again.session, "second")
    assert ended.reason == "done"
    seqs = [envelope.seq for envelope in torn.envelopes]
    assert seqs == sorted(set(seqs))
    await again.close()


@pytest.mark.scene("a turn begun by the far side")
async def test_14_a_turn_begun_by_the_far_side_waits_for_ours(driver, tmp_path):
    hold = asyncio.Event()
    scene = await Scene(driver, tmp_path).open([[Hold(hold), Say("Ours.")], [Say("Theirs.")]])
    turn = scene.session.start(make_prompt("ours"))
    await scene.until(TurnStarted)
    scene.backend.context.remote_turn_started(make_prompt("from afar", "prompt-2"))
    hold.set()
    assert (await turn.wait()).reason == "done"
    assert (await scene.until(TurnStarted, times=2)).prompt.text == "from afar"
    assert (await scene.until(TurnEnded, times=2)).reason == "done"
    await scene.close()
