"""An ask that is open when its turn ends: decided once, and no late answer counts."""

import asyncio

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import PermissionDecided, QuestionAnswered, RuleAdded
from ostler.core.permission import Decision, Need, Permission, Question, QuestionReply
from ostler.testing.session_fixture import ASK_ALL, make_prompt, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("PM-6")

PATIENCE = 60


async def test_it_is_decided_once_and_a_late_answer_makes_no_rule(tmp_path):
    waiting = []

    async def leave(context, said):
        permission = Permission("push", (Need("bash", "git push"),))
        waiting.append(asyncio.ensure_future(context.decide(permission)))
        waiting.append(asyncio.ensure_future(context.ask(Question("q", "Which?"))))
        while not (session.state.asks and session.state.questions):
            await asyncio.sleep(0)

    session = await open_test_session(ScriptedBackend([leave]), [], LocalWorkspace(str(tmp_path)), policy=ASK_ALL)
    async with asyncio.timeout(PATIENCE):
        turn = session.start(make_prompt("go"))
        while not session.state.asks:
            await asyncio.sleep(0)
        (ask_id,) = session.state.asks
        await turn.wait()
        late = session.answer(ask_id, Decision("allow", by="person", scope="session"))
        decision, reply = await asyncio.gather(*waiting)
    assert not late
    assert (decision, reply) == (Decision("cancel", by="nobody"), QuestionReply("cancel"))
    past = list(session.events())
    assert len([event for event in past if isinstance(event, PermissionDecided)]) == 1
    assert len([event for event in past if isinstance(event, QuestionAnswered)]) == 1
    assert not any(isinstance(event, RuleAdded) for event in past)
    await session.aclose()
