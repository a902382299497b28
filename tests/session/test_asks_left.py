"""An ask that is open when its turn ends: decided once, and no late answer counts."""

import asyncio

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.testing.stagehand import ASK_ALL, open_session, prompt
from ostler.vocabulary.events import PermissionDecided, QuestionAnswered, RuleAdded
from ostler.vocabulary.permission import Decision, Need, Permission, Question, Reply
from ostler.workspace.ground import Workspace

pytestmark = pytest.mark.req("PM-6")

PATIENCE = 60


async def test_it_is_decided_once_and_a_late_answer_makes_no_rule(tmp_path):
    waiting = []

    async def leave(stage, said):
        permission = Permission("push", (Need("bash", "git push"),))
        waiting.append(asyncio.ensure_future(stage.decide(permission)))
        waiting.append(asyncio.ensure_future(stage.ask(Question("q", "Which?"))))
        while not (session.state.asks and session.state.questions):
            await asyncio.sleep(0)

    session = await open_session(ScriptedBackend([leave]), [], Workspace(str(tmp_path)), policy=ASK_ALL)
    async with asyncio.timeout(PATIENCE):
        turn = session.start(prompt("go"))
        while not session.state.asks:
            await asyncio.sleep(0)
        (ask_id,) = session.state.asks
        await turn.wait()
        late = session.settle(ask_id, Decision("allow", by="person", lasts="session"))
        decision, reply = await asyncio.gather(*waiting)
    assert not late
    assert (decision, reply) == (Decision("cancel", by="nobody"), Reply("cancel"))
    past = list(session.past())
    assert len([event for event in past if isinstance(event, PermissionDecided)]) == 1
    assert len([event for event in past if isinstance(event, QuestionAnswered)]) == 1
    assert not any(isinstance(event, RuleAdded) for event in past)
    await session.aclose()
