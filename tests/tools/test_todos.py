"""The todo tools: the list is replaced, read, shown as a checklist and stored as an event."""

import pytest

from ostler.core.display import DisplayChecklist
from ostler.core.events import TodosChanged
from ostler.core.tools import Todo

TODOS = [
    {"content": "read the code", "status": "completed", "priority": "high"},
    {"content": "fix the bug", "status": "in_progress"},
    {"content": "run the tests"},
]


@pytest.mark.req("TL-1", "EN-8")
async def test_todo_list_is_stored_and_read(harness):
    result = await harness.ok("todowrite", todos=TODOS)
    assert result.for_model == "[x] 1. read the code\n[~] 2. fix the bug\n[ ] 3. run the tests"
    assert result.for_human.summary == "1 of 3 done"
    assert result.for_human.blocks == (
        DisplayChecklist(
            (("completed", "read the code"), ("in_progress", "fix the bug"), ("pending", "run the tests"))
        ),
    )
    (event,) = harness.events(TodosChanged)
    assert event.items[0] == Todo("1", "read the code", "completed", "high")
    assert harness.session.state.todos == event.items
    read = await harness.ok("todoread")
    assert read.for_model == result.for_model
    assert (read.data["count"], read.data["in_progress"]) == (3, "fix the bug")
    assert read.data["stats"] == {"total": 3, "completed": 1, "inProgress": 1}


async def test_last_todo_list_applies(harness):
    await harness.ok("todowrite", todos=TODOS)
    await harness.ok("todowrite", todos=[])
    assert (await harness.ok("todoread")).for_model == "The todo list is empty."


async def test_todo_list_is_empty_at_first(harness):
    assert (await harness.ok("todoread")).data["items"] == []


async def test_ids_are_kept_and_default_to_the_position(harness):
    result = await harness.ok("todowrite", todos=[{"id": "b", "content": "x"}, {"content": "y"}])
    assert [item["id"] for item in result.data["items"]] == ["b", "2"]


BAD = {
    "same id": ([{"id": "a", "content": "x"}, {"id": "a", "content": "y"}], "two items have the id 'a'"),
    "an id that is another item's position": (
        [{"id": "2", "content": "x"}, {"content": "y"}],
        "two items have the id '2'",
    ),
    "two at once": (
        [{"content": "x", "status": "in_progress"}, {"content": "y", "status": "in_progress"}],
        "work on one at a time",
    ),
    "no content": ([{"content": "  "}], "item 1 has no content"),
    "content missing": ([{"status": "pending"}], "todos[1] of todowrite needs content"),
    "unknown status": ([{"content": "x", "status": "cancelled"}], "it can be completed, in_progress, pending"),
    "not a list": (7, "todos must be a list"),
    "not objects": ([7], "todos[1] of todowrite must be an object"),
    "too many": ([{"content": f"{n}"} for n in range(101)], "too many"),
}


@pytest.mark.parametrize("case", BAD, ids=str)
async def test_invalid_todo_list_is_rejected_and_the_old_one_kept(harness, case):
    todos, message = BAD[case]
    await harness.ok("todowrite", todos=TODOS)
    assert message in await harness.fails("todowrite", todos=todos)
    assert (await harness.ok("todoread")).data["count"] == 3


async def test_call_without_todos_is_rejected_with_advice(harness):
    assert 'todowrite needs todos: send {"todos":[{"content":' in await harness.fails("todowrite")


@pytest.mark.req("EN-5")
async def test_item_is_one_line_and_cannot_forge_another(harness):
    result = await harness.ok("todowrite", todos=[{"content": "look\n[x] 2. all done"}, {"content": "x" * 10_000}])
    assert result.for_model.split("\n")[0] == "[ ] 1. look [x] 2. all done"
    assert len(result.for_model) < 600


@pytest.mark.req("TL-4")
@pytest.mark.parametrize(
    ("item", "line"),
    [
        ({"task": "x", "state": "completed"}, "[x] 1. x"),
        ({"item": "x", "State": "doing"}, "[~] 1. x"),
        ({"name": "x", "progress": "todo"}, "[ ] 1. x"),
    ],
)
async def test_status_aliases(harness, item, line):
    assert (await harness.ok("todowrite", items=[item])).for_model == line
