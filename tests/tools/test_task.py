"""The task tool: it spawns a child session, and fails if that is not possible."""

import pytest

from ostler.core.events import PermissionDecided
from ostler.core.permission import Rule
from ostler.core.tools import ToolResult
from ostler.policy.verdict import Policy


@pytest.mark.req("TL-1")
async def test_task_is_passed_to_the_spawner(harness):
    tasks = []

    async def spawner(session, task):
        tasks.append(task)
        return ToolResult(task.id, "ok", "the answer")

    harness.session._spawner = spawner
    result = await harness.ok("task", prompt="Find the bug\nin a.py", agent="explore")
    (task,) = tasks
    assert (task.id, task.agent, task.title, task.prompt) == (
        result.call_id,
        "explore",
        "Find the bug",
        "Find the bug\nin a.py",
    )
    assert result.for_model == "the answer"


async def test_task_without_a_spawner_fails(harness):
    result = await harness.call("task", {"prompt": "look", "title": "Look around"})
    assert (result.status, result.for_model) == ("failed", "Subagents are not available in this session.")


async def test_rules_match_the_agent(make_harness):
    harness = make_harness(policy=Policy((Rule("task", "build", "deny"),)))
    result = await harness.call("task", {"prompt": "look", "agent": "build"})
    assert result.status == "denied"
    (decided,) = harness.events(PermissionDecided)
    assert [(need.key, need.subject) for need in decided.permission.needs] == [("task", "build")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "task needs prompt"),
        ({"prompt": ""}, "length >= 1"),
        ({"prompt": {"do": "it"}}, "prompt must be a string"),
        ({"prompt": "x", "modle": "y"}, "task takes no 'modle'"),
    ],
    ids=str,
)
async def test_invalid_tasks(harness, arguments, message):
    assert message in await harness.fails("task", **arguments)
