"""The task tool: it asks the stage for a child session, and says so when nobody can start one."""

import pytest

from ostler.core.events import PermissionDecided
from ostler.core.tools import ToolResult
from ostler.policy.verdict import Policy


@pytest.mark.req("TL-1")
async def test_a_task_goes_to_whoever_starts_children(room):
    seen = []

    async def spawner(session, task):
        seen.append(task)
        return ToolResult(task.id, "ok", "the answer")

    room.session._spawner = spawner
    result = await room.ok("task", prompt="Find the bug\nin a.py", agent="explore")
    (task,) = seen
    assert (task.id, task.agent, task.title, task.prompt) == (
        result.call_id,
        "explore",
        "Find the bug",
        "Find the bug\nin a.py",
    )
    assert result.for_model == "the answer"


async def test_where_nobody_can_start_one_it_says_so(room):
    result = await room.call("task", {"prompt": "look", "title": "Look around"})
    assert (result.status, result.for_model) == ("failed", "Subagents cannot be started from here.")


async def test_the_agent_is_what_the_rules_see(rooms):
    room = rooms(policy=Policy(interactive=False))
    result = await room.call("task", {"prompt": "look", "agent": "build"})
    assert result.status == "denied"
    (decided,) = room.events(PermissionDecided)
    assert [(need.key, need.subject) for need in decided.permission.needs] == [("task", "build")]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "task needs prompt"),
        ({"prompt": ""}, "length >= 1"),
        ({"prompt": {"do": "it"}}, "prompt must be a string"),
        ({"prompt": "x", "modle": "y"}, "task takes no 'modle'"),
    ],
    ids=str,
)
async def test_bad_tasks(room, given, sentence):
    assert sentence in await room.fails("task", **given)
