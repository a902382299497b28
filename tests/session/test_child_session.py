"""A child session asks the user through its parent."""

import asyncio

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.permission import Question, QuestionReply
from ostler.core.tools import ChildTask
from ostler.journal.memory_journal import MemoryJournal
from ostler.policy.verdict import Policy
from ostler.session.access import FixedAccess
from ostler.session.child_session import ChildSession
from ostler.testing.session_fixture import open_test_session, run_turn
from ostler.tools.host import LocalToolHost
from ostler.workspace.local_workspace import LocalWorkspace

TIMEOUT = 60


@pytest.mark.req("EN-4")
async def test_question_of_a_child_is_asked_in_the_parent(tmp_path):
    workspace = LocalWorkspace(str(tmp_path))
    replies = []

    async def act(context, prompt):
        replies.append(await context.ask(Question("", "Which?", asked_by="files")))

    parent = await open_test_session(ScriptedBackend([]), [], workspace)
    child = ChildSession(
        parent,
        ChildTask("c", "explore", "look", "look"),
        policy=FixedAccess(Policy()),
        deny_asks=False,
        backend=ScriptedBackend([act]),
        tools=LocalToolHost([], workspace),
        cwd=workspace.root,
        journal=MemoryJournal("child"),
    )
    await child.open(version="test", backend="test", options={})
    async with asyncio.timeout(TIMEOUT):
        turn = asyncio.create_task(run_turn(child, "go"))
        while not parent.state.questions:
            await asyncio.sleep(0)
        ((question_id, asked),) = parent.state.questions.items()
        assert asked.question.asked_by == "explore: files"
        parent.answer(question_id, QuestionReply("accept", {"text": "this"}))
        await turn
    assert replies == [QuestionReply("accept", {"text": "this"})]
    await child.aclose()
    await parent.aclose()
