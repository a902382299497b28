"""The todo plugin: a starter list before other tools run, and reminders that are only appended."""

from itertools import pairwise

import pytest
from engine_harness import Model, Reply, script

from ostler.backends.engine.plugins.complex_request import is_complex
from ostler.backends.engine.plugins.todos import GUIDE
from ostler.core.events import Reminded, TodosChanged, ToolFinished
from ostler.models.model_types import SystemMessage
from ostler.testing.fake_tool import FakeTool
from ostler.tools.todowrite import TodoWriteTool

pytestmark = pytest.mark.req("EN-5")

COMPLEX = (
    "Refactor the parser",
    "read a.py and then change it",
    "Add a function parse() to a.py and write tests for it",
    "1. do a\n2. do b\n3. do c",
    "Please:\n- rename x\n- delete y",
    "Can you fix the bug and update the changelog?",
    "Explain the failure, then fix it",
    "Review a.py and fix the bugs",
    "implement the export of sessions",
    "重构解析器",
    "先看一下代码，再修改，最后测试",
    "请逐步完成",
)
SIMPLE = (
    "hi",
    "what is this?",
    "list the files",
    "show a.py, please",
    "look at a, b, c",
    "fix the typo in README",
    "fix the failing test",
    "please have a look at this and tell me what you think of it all now",
    "Could you please explain what the function parse in reader.py does and why it may be slow?",
    "Explain how calc.py works and which functions are tested, then list the three biggest risks.",
    "How would I add a test and update the docs?",
    "x" * 200,
    "你好",
    "这是什么？",
    "列出文件",
    "",
)


@pytest.mark.parametrize("text", COMPLEX)
def test_complex(text):
    assert is_complex(text)


@pytest.mark.parametrize("text", SIMPLE)
def test_simple(text):
    assert not is_complex(text)


def probe_replies(*subjects):
    return [Reply("", ("probe", {"subject": subject})) for subject in subjects]


PLAN = Reply("", ("todowrite", {"todos": [{"content": "one", "status": "in_progress"}, {"content": "two"}]}))


async def test_starter_list_is_made_before_other_tools_run(harness):
    model = Model(script(*probe_replies("x"), Reply("done")))
    await harness.open(model, [FakeTool("probe"), TodoWriteTool()])
    await harness.turn("Refactor the parser")
    kinds = [type(event) for event in harness.events_of(TodosChanged, ToolFinished)]
    assert kinds == [TodosChanged, ToolFinished]
    (change,) = harness.events_of(TodosChanged)
    assert [item.status for item in change.items] == ["in_progress", "pending", "pending"]
    last = model.requests[-1].history[-1]
    assert isinstance(last, SystemMessage)
    assert "[~] Inspect the relevant code" in last.text


async def test_chinese_request_gets_a_chinese_list(harness):
    await harness.open(Model(script(*probe_replies("x"), Reply("好"))), [FakeTool("probe"), TodoWriteTool()])
    await harness.turn("重构解析器")
    assert harness.events_of(TodosChanged)[0].items[0].content == "查看相关内容"


@pytest.mark.parametrize(
    ("request_text", "lines"),
    [
        ("list the files", [*probe_replies("x"), Reply("done")]),
        ("Refactor the parser", [PLAN, *probe_replies("x"), Reply("done")]),
        ("Refactor the parser", [Reply("I would rather not.")]),
    ],
    ids=["simple", "the model plans", "no tool runs"],
)
async def test_no_starter_list(harness, request_text, lines):
    await harness.open(Model(script(*lines)), [FakeTool("probe"), TodoWriteTool()])
    await harness.turn(request_text)
    assert [change.items[0].content for change in harness.events_of(TodosChanged)] == (["one"] if PLAN in lines else [])


async def test_finished_plan_is_replaced_for_new_work(harness):
    done = Reply("", ("todowrite", {"todos": [{"content": "one", "status": "completed"}]}))
    model = Model(script(PLAN, done, Reply("done"), *probe_replies("x"), Reply("done")))
    await harness.open(model, [FakeTool("probe"), TodoWriteTool()])
    await harness.turn("Refactor the parser")
    await harness.turn("Implement the writer")
    assert len(harness.events_of(TodosChanged)) == 3


async def test_without_the_tool_nothing_is_added(harness):
    await harness.open(Model(script(*probe_replies("x"), Reply("done"))), [FakeTool("probe")])
    await harness.turn("Refactor the parser")
    assert harness.events_of(TodosChanged, Reminded) == []


async def test_guide_is_repeated_after_ten_prompts(harness):
    model = Model(script(Reply("ok")))
    await harness.open(model, [TodoWriteTool()])
    for text in ("hi", *["Refactor the parser"] * 23):
        await harness.turn(text)
    guided = [r.history[-1] == SystemMessage(GUIDE) for r in model.requests]
    assert [n for n, due in enumerate(guided) if due] == [1, 11, 21]


async def test_open_plan_is_repeated_in_a_long_turn(harness):
    model = Model(script(PLAN, *probe_replies(*map(str, range(25))), Reply("done")))
    await harness.open(model, [FakeTool("probe"), TodoWriteTool()])
    await harness.turn("Refactor the parser")
    reminders = [event.text for event in harness.events_of(Reminded) if "The list now" in event.text]
    assert len(reminders) == 2
    assert "[~] one\n[ ] two" in reminders[0]


@pytest.mark.req("MD-9")
async def test_requests_extend_the_previous_one(harness):
    model = Model(script(*probe_replies(*map(str, range(15))), Reply("done"), PLAN, Reply("done")))
    await harness.open(model, [FakeTool("probe"), TodoWriteTool()])
    await harness.turn("Refactor the parser")
    await harness.turn("Implement the writer")
    for earlier, later in pairwise(model.requests):
        assert later.history[: len(earlier.history)] == earlier.history
        assert (later.system, later.tools) == (earlier.system, earlier.tools)


@pytest.mark.parametrize("name", ["todo_write", "TodoWrite", "update_plan", "SysBuiltIn.write_todos"])
async def test_aliases_of_the_todo_tool_are_recognized(harness, name):
    plan = Reply("", (name, PLAN.calls[0][1]))
    await harness.open(Model(script(plan, Reply("done"))), [FakeTool("probe"), TodoWriteTool()])
    await harness.turn("Refactor the parser")
    assert [change.items[0].content for change in harness.events_of(TodosChanged)] == ["one"]
