"""Scenarios that every backend must pass; a driver lists the scenarios that do not apply to it."""

import asyncio

import pytest
from drivers import Calls, Crash, Hold, Say
from scenario import Scenario, single_call

from ostler.core.events import (
    InfoChanged,
    MessageDone,
    OptionChanged,
    PermissionAsked,
    PermissionDecided,
    StateChanged,
    Steered,
    TextDelta,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ostler.core.permission import Decision
from ostler.core.sessions import SetOption, Steer
from ostler.journal.memory_journal import MemoryJournal
from ostler.testing.scripted_model import ScriptedCall
from ostler.testing.session_fixture import ASK_ALL, make_prompt, run_turn


@pytest.mark.req("EN-2")
@pytest.mark.scenario("plain answer")
async def test_01_plain_answer(driver, tmp_path):
    scenario = await Scenario(driver, tmp_path).open([[Say("Hello "), Say("there.")]])
    events, ended = await run_turn(scenario.session, "hi")
    assert ended.reason == "done"
    assert [e.message.text for e in events if isinstance(e, MessageDone)] == ["Hello there."]
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "Hello there."
    assert isinstance(events[0], TurnStarted)
    assert isinstance(events[-2], TurnEnded)
    assert events[-1] == StateChanged("idle")
    await scenario.close()


@pytest.mark.req("EN-2")
@pytest.mark.scenario("tool")
@pytest.mark.invariant("P1")
async def test_02_tool(driver, tmp_path):
    tool = driver.tool("probe")
    scenario = await Scenario(driver, tmp_path, [tool]).open(
        [[Say("Looking."), single_call("probe", subject="here"), Say("Found.")]]
    )
    events, ended = await run_turn(scenario.session, "look")
    assert (ended.reason, ["here" in str(run) for run in tool.runs]) == ("done", [True])
    kinds = [type(e).__name__ for e in events]
    assert kinds.index("ToolCalled") < kinds.index("ToolStarted") < kinds.index("ToolFinished")
    assert [r.for_model for r in scenario.results()] == [f"{tool.spec.name} ran"]
    await scenario.close()


@pytest.mark.req("PM-7")
@pytest.mark.scenario("refusal with feedback")
async def test_03_refusal_with_feedback(driver, tmp_path):
    tool = driver.tool("probe")
    scenario = await Scenario(driver, tmp_path, [tool]).open(
        [[single_call("probe"), Say("As you wish.")]], policy=ASK_ALL
    )
    turn = scenario.session.start(make_prompt("look"))
    ask = await scenario.until(PermissionAsked)
    assert scenario.session.answer(ask.ask_id, Decision("deny", by="person", feedback="use the other file"))
    assert not scenario.session.answer(ask.ask_id, Decision("allow", by="person"))
    assert (await turn.wait()).reason == "done"
    assert [(r.status, "use the other file" in r.for_model) for r in scenario.results()] == [("denied", True)]
    assert tool.runs == []
    await scenario.close()


@pytest.mark.req("CL-9")
@pytest.mark.scenario("cancel during an approval request")
@pytest.mark.invariant("P12")
async def test_04_cancel_during_an_approval_request(driver, tmp_path):
    tool = driver.tool("probe")
    scenario = await Scenario(driver, tmp_path, [tool]).open(
        [[single_call("probe")], [Say("Fine.")]][:1], policy=ASK_ALL
    )
    turn = scenario.session.start(make_prompt("look"))
    await scenario.until(PermissionAsked)
    turn.cancel()
    assert (await turn.wait()).reason == "cancelled"
    decided = await scenario.until(PermissionDecided)
    assert decided.decision.answer == "cancel"
    assert [r.status for r in scenario.results()] == ["cancelled"]
    assert tool.runs == []
    assert scenario.session.state.asks == {}
    await scenario.session.aclose()


@pytest.mark.req("CL-9", "EN-2")
@pytest.mark.scenario("cancel during a call")
@pytest.mark.invariant("P12")
async def test_05_cancel_during_a_call(driver, tmp_path):
    running, stopped = asyncio.Event(), asyncio.Event()

    async def forever(arguments, context):
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    scenario = await Scenario(driver, tmp_path, [driver.tool("probe", forever)]).open([[single_call("probe")]])
    turn = scenario.session.start(make_prompt("look"))
    await running.wait()
    turn.cancel()
    assert (await turn.wait()).reason == "cancelled"
    assert stopped.is_set()
    assert [r.status for r in scenario.results()] == ["cancelled"]
    await scenario.session.aclose()


@pytest.mark.req("MD-5", "EN-2")
@pytest.mark.scenario("connection lost")
async def test_06_connection_lost(driver, tmp_path):
    scenario = await Scenario(driver, tmp_path).open([[Say("I was about to "), Crash()], [Say("Again, whole.")]])
    events, ended = await run_turn(scenario.session, "go")
    assert ended.reason == "failed"
    assert "the connection was lost" in str(ended.fault)
    messages = [e.message for e in events if isinstance(e, MessageDone)]
    assert [(m.text, m.truncated) for m in messages] == [("I was about to ", True)]
    _, ended = await run_turn(scenario.session, "once more")
    assert ended.reason == "done"
    await scenario.close()


@pytest.mark.scenario("two approval requests at once")
async def test_07_two_approval_requests_at_once(driver, tmp_path):
    first, second = driver.tool("first", effects=False), driver.tool("second", effects=False)
    both = Calls((ScriptedCall("first"), ScriptedCall("second")))
    scenario = await Scenario(driver, tmp_path, [first, second]).open([[both, Say("Done.")]], policy=ASK_ALL)
    turn = scenario.session.start(make_prompt("look"))
    await scenario.until(PermissionAsked, times=2)
    asks = {e.permission.title: e.ask_id for e in scenario.events if isinstance(e, PermissionAsked)}
    assert scenario.session.answer(asks[f"use {second.spec.name}"], Decision("deny", by="person"))
    assert scenario.session.answer(asks[f"use {first.spec.name}"], Decision("allow", by="person"))
    assert (await turn.wait()).reason == "done"
    assert (len(first.runs), len(second.runs)) == (1, 0)
    await scenario.close()


@pytest.mark.req("SH-4")
@pytest.mark.scenario("non-interactive session")
@pytest.mark.invariant("P7")
async def test_08_non_interactive_session(driver, tmp_path):
    tool = driver.tool("probe")
    policy = type(ASK_ALL)(rules=ASK_ALL.rules, interactive=False)
    scenario = await Scenario(driver, tmp_path, [tool]).open(
        [[single_call("probe"), Say("I could not.")]], policy=policy
    )
    events, ended = await run_turn(scenario.session, "look")
    assert ended.reason == "done"
    assert not any(isinstance(e, PermissionAsked) for e in events)
    assert [(r.status, "non-interactive" in r.for_model) for r in scenario.results()] == [("denied", True)]
    assert tool.runs == []
    await scenario.close()


@pytest.mark.req("SV-7")
@pytest.mark.scenario("repeated call id")
@pytest.mark.invariant("P2")
async def test_09_repeated_call_id(driver, tmp_path):
    tool = driver.tool("probe")
    again = Calls((ScriptedCall("probe", {}, "the-call"),))
    scenario = await Scenario(driver, tmp_path, [tool]).open([[again, again, Say("Once is enough.")]])
    _, ended = await run_turn(scenario.session, "look")
    assert ended.reason == "done"
    ids = [result.call_id for result in scenario.results()]
    # Some servers reuse call ids in each reply, so the engine runs both calls; the ids of a remote side are unique.
    assert len(tool.runs) == len(set(ids)) == (2 if driver.name in ("engine", "server") else 1)
    assert ids[0] == "the-call"
    await scenario.close()


@pytest.mark.req("EN-16")
@pytest.mark.scenario("steer")
async def test_10_steer(driver, tmp_path):
    hold = asyncio.Event()
    goes_on = [Calls(())] if driver.name in ("engine", "server") else []
    turns = [[Say("Working."), Hold(hold), *goes_on, Say("Left it is.")]]
    scenario = await Scenario(driver, tmp_path).open(turns)
    turn = scenario.session.start(make_prompt("go"))
    await scenario.until(TextDelta)
    assert await scenario.session.apply(Steer(make_prompt("turn left", "prompt-2")))
    hold.set()
    assert (await turn.wait()).reason == "done"
    assert (await scenario.until(Steered)).prompt.text == "turn left"
    await scenario.close()


@pytest.mark.req("MD-7")
@pytest.mark.scenario("option changed between turns")
async def test_11_option_changed_between_turns(driver, tmp_path):
    scenario = await Scenario(driver, tmp_path).open([[Say("One.")], [Say("Two.")]])
    await run_turn(scenario.session, "first")
    assert await scenario.session.apply(SetOption("model", "another"))
    assert (await scenario.until(OptionChanged)).value == "another"
    assert scenario.session.state.options == {"model": "another"}
    _, ended = await run_turn(scenario.session, "second")
    assert ended.reason == "done"
    await scenario.close()


@pytest.mark.scenario("turn started by the remote side")
async def test_12_turn_started_by_the_remote_side(driver, tmp_path):
    scenario = await Scenario(driver, tmp_path).open([[Say("I began.")]])
    scenario.backend.context.remote_turn_started(make_prompt("from afar"))
    assert (await scenario.until(TurnStarted)).prompt.text == "from afar"
    assert (await scenario.until(TurnEnded)).reason == "done"
    await scenario.close()


@pytest.mark.req("SE-1", "EN-2")
@pytest.mark.scenario("resume")
async def test_13_resume(driver, tmp_path):
    """A journal that ends in the middle of a turn is repaired with events, and the next turn works."""
    tool = driver.tool("probe")
    first = await Scenario(driver, tmp_path, [tool]).open([[single_call("probe"), Say("One.")]])
    await run_turn(first.session, "first")
    started = next(i for i, e in enumerate(first.session._journal.envelopes) if isinstance(e.event, ToolStarted))
    truncated_journal = MemoryJournal("session-1", first.session._journal.envelopes[: started + 1])
    await first.close()
    again = await Scenario(type(driver)(), tmp_path, [tool]).open([[Say("Two.")]], journal=truncated_journal)
    assert [r.status for r in again.results()] == ["unknown"]
    assert again.session.state.turn is None
    assert any(isinstance(e, InfoChanged) for e in again.session.events())
    _, ended = await run_turn(again.session, "second")
    assert ended.reason == "done"
    seqs = [envelope.seq for envelope in truncated_journal.envelopes]
    assert seqs == sorted(set(seqs))
    await again.close()


@pytest.mark.scenario("turn started by the remote side")
@pytest.mark.invariant("S6")
async def test_14_remote_turn_waits_for_the_local_turn(driver, tmp_path):
    hold = asyncio.Event()
    scenario = await Scenario(driver, tmp_path).open([[Hold(hold), Say("Ours.")], [Say("Theirs.")]])
    turn = scenario.session.start(make_prompt("ours"))
    await scenario.until(TurnStarted)
    scenario.backend.context.remote_turn_started(make_prompt("from afar", "prompt-2"))
    hold.set()
    assert (await turn.wait()).reason == "done"
    assert (await scenario.until(TurnStarted, times=2)).prompt.text == "from afar"
    assert (await scenario.until(TurnEnded, times=2)).reason == "done"
    await scenario.close()
