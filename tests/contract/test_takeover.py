"""A session that one process releases in mid-turn and another takes over, with every backend."""

import asyncio
from itertools import pairwise

import pytest
from drivers import Hold, Say
from scenario import Scenario, single_call

from ostler.backends.engine.history import fold_history
from ostler.core.events import (
    Notice,
    PermissionAsked,
    PermissionDecided,
    TextDelta,
    ToolCalled,
    ToolFinished,
    TurnEnded,
    TurnStarted,
)
from ostler.core.permission import Decision
from ostler.journal.memory_journal import MemoryJournal
from ostler.models.model_types import AssistantMessage, ToolResultsMessage
from ostler.testing.session_fixture import ASK_ALL, make_prompt, run_turn

pytestmark = pytest.mark.req("SV-8")


def copy_journal(session):
    return MemoryJournal("session-1", session._journal.envelopes)


def assert_valid(journal):
    """Assert that numbers grow, each call has one result, each turn one end, and results follow their calls."""
    events = [envelope.event for envelope in journal.envelopes]
    seqs = [envelope.seq for envelope in journal.envelopes]
    assert seqs == sorted(set(seqs))
    results = [event.result.call_id for event in events if isinstance(event, ToolFinished)]
    assert len(results) == len(set(results))
    started = [event.turn_id for event in events if isinstance(event, TurnStarted)]
    assert [event.turn_id for event in events if isinstance(event, TurnEnded)] == started
    history = fold_history(events)
    for message, following in pairwise(history):
        if isinstance(message, AssistantMessage) and message.message.calls:
            assert isinstance(following, ToolResultsMessage)
            assert [r.call_id for r in following.results] == [call.id for call in message.message.calls]


async def finish(scenario):
    """Wait for the end of the turn, if the backend continues it, and run another turn."""
    session = scenario.session
    if session.info.can_take_over:
        assert session.turn is not None
        assert (await session.turn.wait()).reason == "done"
    else:
        assert (session.turn, session.state.turn) == (None, None)
        notices = [e.text for e in session.events() if isinstance(e, Notice)]
        assert any("cannot continue the turn of another process" in text for text in notices)
    _, ended = await run_turn(session, "again")
    assert ended.reason == "done"
    assert_valid(session._journal)
    await scenario.close()


def successor(driver):
    """Return the driver of the other process. A server goes on without its clients."""
    return driver.successor() if hasattr(driver, "successor") else type(driver)()


def rest_of_script(scenario, *moves):
    """Return what the remote side does after the takeover: the rest of the turn, if it is continued, and a turn.

    A remote side that goes on without its client has the rest of its script.
    """
    continues = scenario.session.info.can_take_over and not hasattr(scenario.driver, "successor")
    return [list(moves), [Say("Again.")]] if continues else [[Say("Again.")]]


@pytest.mark.scenario("takeover")
async def test_turn_released_during_a_call_is_continued_elsewhere(driver, tmp_path):
    running = asyncio.Event()

    async def forever(arguments, context):
        running.set()
        await asyncio.Event().wait()

    tools = [driver.tool("first", effects=False), driver.tool("second", forever)]
    script = [[single_call("first"), single_call("second"), Say("Done.")]]
    scenario = await Scenario(driver, tmp_path, tools).open(script)
    turn = scenario.session.start(make_prompt("go"))
    await running.wait()
    other = successor(driver)
    await scenario.session.release()
    assert (await turn.wait()).reason == "cancelled"
    journal = copy_journal(scenario.session)
    events = [envelope.event for envelope in journal.envelopes]
    assert not any(isinstance(event, TurnEnded) for event in events)
    assert [e.result.status for e in events if isinstance(e, ToolFinished)] == ["ok"]

    again = await Scenario(other, tmp_path, tools).open(
        rest_of_script(scenario, Say("Done.")), journal=journal, takeover=True
    )
    assert [result.status for result in again.results()] == ["ok", "unknown"]
    await finish(again)
    assert [len(tool.runs) for tool in tools] == [1, 1]


@pytest.mark.scenario("takeover")
async def test_turn_released_during_an_approval_request_asks_again(driver, tmp_path):
    tool = driver.tool("probe")
    scenario = await Scenario(driver, tmp_path, [tool]).open([[single_call("probe"), Say("Done.")]], policy=ASK_ALL)
    scenario.session.start(make_prompt("go"))
    await scenario.until(PermissionAsked)
    other = successor(driver)
    await scenario.session.release()
    journal = copy_journal(scenario.session)
    events = [envelope.event for envelope in journal.envelopes]
    decided = [event.decision for event in events if isinstance(event, PermissionDecided)]
    assert [(d.answer, d.by) for d in decided] == [("cancel", "nobody")]
    assert not any(isinstance(event, ToolFinished | TurnEnded) for event in events)

    moves = (single_call("probe"), Say("Done.")) if driver.name == "scripted" else (Say("Done."),)
    again = await Scenario(other, tmp_path, [tool]).open(
        rest_of_script(scenario, *moves), policy=ASK_ALL, journal=journal, takeover=True
    )
    if again.session.info.can_take_over:
        ask = await again.until(PermissionAsked)
        assert again.session.answer(ask.ask_id, Decision("allow", by="person"))
    await finish(again)
    assert len(tool.runs) == (1 if again.session.info.can_take_over else 0)
    if driver.name == "engine":
        called = [event.call.id for event in again.session.events() if isinstance(event, ToolCalled)]
        assert len(called) == 1


@pytest.mark.scenario("takeover")
async def test_turn_released_during_a_reply_is_continued_elsewhere(driver, tmp_path):
    hold = asyncio.Event()
    scenario = await Scenario(driver, tmp_path).open([[Say("I was about to "), Hold(hold), Say("finish.")]])
    scenario.session.start(make_prompt("go"))
    await scenario.until(TextDelta)
    other = successor(driver)
    await scenario.session.release()
    hold.set()
    journal = copy_journal(scenario.session)
    again = await Scenario(other, tmp_path).open(rest_of_script(scenario, Say("Done.")), journal=journal, takeover=True)
    await finish(again)


@pytest.mark.scenario("takeover")
async def test_takeover_of_a_session_without_a_running_turn_opens_it(driver, tmp_path):
    scenario = await Scenario(driver, tmp_path).open([[Say("One.")]])
    await run_turn(scenario.session, "go")
    other = successor(driver)
    await scenario.session.release()
    again = await Scenario(other, tmp_path).open([[Say("Two.")]], journal=copy_journal(scenario.session), takeover=True)
    assert again.session.turn is None
    _, ended = await run_turn(again.session, "again")
    assert ended.reason == "done"
    assert_valid(again.session._journal)
    await again.close()
