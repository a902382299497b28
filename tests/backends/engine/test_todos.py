"""The plan: complex work gets a list before other tools run, and hidden reminders are only ever appended."""

from itertools import pairwise

import pytest
from engine_play import Model, Said, script

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
    "look at a, b, c",
    "x" * 80,
    "please have a look at this and tell me what you think of it all now",
    "重构解析器",
    "先看一下代码，再修改，最后测试",
    "请逐步完成",
)
SIMPLE = ("hi", "what is this?", "list the files", "show a.py, please", "你好", "这是什么？", "列出文件", "")


@pytest.mark.parametrize("text", COMPLEX)
def test_complex(text):
    assert is_complex(text)


@pytest.mark.parametrize("text", SIMPLE)
def test_simple(text):
    assert not is_complex(text)


def calling(*subjects):
    return [Said("", ("probe", {"subject": subject})) for subject in subjects]


PLAN = Said("", ("todowrite", {"todos": [{"content": "one", "status": "in_progress"}, {"content": "two"}]}))


async def test_a_starter_is_made_before_other_tools_run(harness):
    model = Model(script(*calling("x"), Said("done")))
    await harness.open(model, [FakeTool("probe"), TodoWriteTool()])
    await harness.turn("Refactor the parser")
    kinds = [type(event) for event in harness.past(TodosChanged, ToolFinished)]
    assert kinds == [TodosChanged, ToolFinished]
    (made,) = harness.past(TodosChanged)
    assert [item.status for item in made.items] == ["in_progress", "pending", "pending"]
    last = model.requests[-1].history[-1]
    assert isinstance(last, SystemMessage)
    assert "[~] Look at what is concerned" in last.text


async def test_a_chinese_request_gets_a_chinese_one(harness):
    await harness.open(Model(script(*calling("x"), Said("好"))), [FakeTool("probe"), TodoWriteTool()])
    await harness.turn("重构解析器")
    assert harness.past(TodosChanged)[0].items[0].content == "查看相关内容"


@pytest.mark.parametrize(
    ("request_text", "lines"),
    [
        ("list the files", [*calling("x"), Said("done")]),
        ("Refactor the parser", [PLAN, *calling("x"), Said("done")]),
        ("Refactor the parser", [Said("I would rather not.")]),
    ],
    ids=["simple", "the model plans", "no tool runs"],
)
async def test_no_starter(harness, request_text, lines):
    await harness.open(Model(script(*lines)), [FakeTool("probe"), TodoWriteTool()])
    await harness.turn(request_text)
    assert [made.items[0].content for made in harness.past(TodosChanged)] == (["one"] if PLAN in lines else [])


async def test_a_finished_plan_is_no_plan_for_new_work(harness):
    done = Said("", ("todowrite", {"todos": [{"content": "one", "status": "completed"}]}))
    model = Model(script(PLAN, done, Said("done"), *calling("x"), Said("done")))
    await harness.open(model, [FakeTool("probe"), TodoWriteTool()])
    await harness.turn("Refactor the parser")
    await harness.turn("Implement the writer")
    assert len(harness.past(TodosChanged)) == 3


async def test_without_the_tool_there_is_neither_list_nor_reminder(harness):
    await harness.open(Model(script(*calling("x"), Said("done"))), [FakeTool("probe")])
    await harness.turn("Refactor the parser")
    assert harness.past(TodosChanged, Reminded) == []


async def test_the_guide_comes_with_complex_work_and_again_after_ten_prompts(harness):
    model = Model(script(Said("ok")))
    await harness.open(model, [TodoWriteTool()])
    for text in ("hi", *["Refactor the parser"] * 23):
        await harness.turn(text)
    guided = [r.history[-1] == SystemMessage(GUIDE) for r in model.requests]
    assert [n for n, due in enumerate(guided) if due] == [1, 11, 21]


async def test_an_open_plan_is_shown_again_in_a_long_turn(harness):
    model = Model(script(PLAN, *calling(*map(str, range(25))), Said("done")))
    await harness.open(model, [FakeTool("probe"), TodoWriteTool()])
    await harness.turn("Refactor the parser")
    shown = [event.text for event in harness.past(Reminded) if "The list now" in event.text]
    assert len(shown) == 2
    assert "[~] one\n[ ] two" in shown[0]


@pytest.mark.req("MD-9")
async def test_every_request_begins_with_the_one_before(harness):
    model = Model(script(*calling(*map(str, range(15))), Said("done"), PLAN, Said("done")))
    await harness.open(model, [FakeTool("probe"), TodoWriteTool()])
    await harness.turn("Refactor the parser")
    await harness.turn("Implement the writer")
    for earlier, later in pairwise(model.requests):
        assert later.history[: len(earlier.history)] == earlier.history
        assert (later.system, later.tools) == (earlier.system, earlier.tools)


@pytest.mark.parametrize("name", ["todo_write", "TodoWrite", "update_plan", "SysBuiltIn.write_todos"])
async def test_a_plan_by_another_name_is_one(harness, name):
    plan = Said("", (name, PLAN.calls[0][1]))
    await harness.open(Model(script(plan, Said("done"))), [FakeTool("probe"), TodoWriteTool()])
    await harness.turn("Refactor the parser")
    assert [made.items[0].content for made in harness.past(TodosChanged)] == ["one"]
