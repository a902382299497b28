"""A child session: what it asks the person is asked where one looks."""

import asyncio

import pytest

from ostler.app.child import ChildSession
from ostler.backends.scripted import ScriptedBackend
from ostler.journal.memory import MemoryJournal
from ostler.policy.verdict import Policy
from ostler.testing.stagehand import open_session, play
from ostler.tools.host import LocalToolHost
from ostler.vocabulary.permission import Question, Reply
from ostler.vocabulary.tools import ChildTask
from ostler.workspace.ground import Workspace

PATIENCE = 60


@pytest.mark.req("EN-4")
async def test_a_childs_question_is_put_in_its_parent(tmp_path):
    ground = Workspace(str(tmp_path))
    replies = []

    async def act(stage, said):
        replies.append(await stage.ask(Question("", "Which?", by="files")))

    parent = await open_session(ScriptedBackend([]), [], ground)
    child = ChildSession(
        parent,
        ChildTask("c", "explore", "look", "look"),
        Policy,
        unasked=False,
        backend=ScriptedBackend([act]),
        tools=LocalToolHost([], ground),
        cwd=ground.root,
        journal=MemoryJournal("child"),
    )
    await child.open(version="test", backend="test", options={})
    async with asyncio.timeout(PATIENCE):
        playing = asyncio.create_task(play(child, "go"))
        while not parent.state.questions:
            await asyncio.sleep(0)
        ((question_id, asked),) = parent.state.questions.items()
        assert asked.question.by == "explore: files"
        parent.settle(question_id, Reply("accept", {"text": "this"}))
        await playing
    assert replies == [Reply("accept", {"text": "this"})]
    await child.aclose()
    await parent.aclose()
