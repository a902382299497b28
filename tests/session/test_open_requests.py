"""Requests that are open when their turn ends are cancelled once; late answers are ignored."""

import asyncio

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import PermissionDecided, QuestionAnswered, RuleAdded
from ostler.core.permission import Decision, Need, Permission, Question, QuestionReply
from ostler.testing.session_fixture import ASK_ALL, make_prompt, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("PM-6")

TIMEOUT = 60


@pytest.mark.invariant("P8", "P11")
async def test_open_request_is_cancelled_once_and_late_answer_creates_no_rule(tmp_path):
    tasks = []

    async def leave_open(context, prompt):
        permission = Permission("push", (Need("bash", "git push"),))
        tasks.append(asyncio.ensure_future(context.decide(permission)))
        tasks.append(asyncio.ensure_future(context.ask(Question("q", "Which?"))))
        while not (session.state.asks and session.state.questions):
            await asyncio.sleep(0)

    session = await open_test_session(ScriptedBackend([leave_open]), [], LocalWorkspace(str(tmp_path)), policy=ASK_ALL)
    async with asyncio.timeout(TIMEOUT):
        turn = session.start(make_prompt("go"))
        while not session.state.asks:
            await asyncio.sleep(0)
        (ask_id,) = session.state.asks
        await turn.wait()
        accepted = session.answer(ask_id, Decision("allow", by="person", scope="session"))
        decision, reply = await asyncio.gather(*tasks)
    assert not accepted
    assert (decision, reply) == (Decision("cancel", by="nobody"), QuestionReply("cancel"))
    events = list(session.events())
    assert len([event for event in events if isinstance(event, PermissionDecided)]) == 1
    assert len([event for event in events if isinstance(event, QuestionAnswered)]) == 1
    assert not any(isinstance(event, RuleAdded) for event in events)
    await session.aclose()
