"""What every request begins with: small for small windows, refused where it fills one, and told piece by piece."""

import json

import pytest
from engine_play import Model, Said, script

from ostler.backends.engine.breakdown import breakdown, in_tokens
from ostler.backends.engine.prefix import SMALL_WINDOW, Surroundings
from ostler.knowledge.parts import Part
from ostler.models.openai_request import Habits, chat_body
from ostler.models.words import Request
from ostler.testing.fake_tool import FakeTool
from ostler.vocabulary.events import PrefixBuilt, UsageReported
from ostler.vocabulary.sessions import Compact, SetOption
from ostler.vocabulary.tools import ToolCall


def around(rules):
    parts = [Part("system prompt", "Ostler", "Be good."), Part("project rules", "AGENTS.md", rules)]
    return Surroundings(lambda: parts)


@pytest.mark.req("EN-8")
@pytest.mark.parametrize(("limit", "told"), [(8192, False), (SMALL_WINDOW, False), (SMALL_WINDOW + 1, True)])
async def test_a_small_window_is_told_of_fewer_tools(stage, limit, told):
    model = Model(script(Said("ok")), limit=limit)
    await stage.open(model, [FakeTool("read"), FakeTool("patch"), FakeTool("task")])
    await stage.turn("hi")
    names = [tool.name for tool in model.requests[0].tools]
    assert names == (["read", "patch", "task"] if told else ["read"])


@pytest.mark.req("EN-8")
async def test_a_beginning_that_takes_more_than_half_is_refused_with_sizes(stage):
    model = Model(script(Said("ok")), limit=8192)
    system = "Be good.\n\n" + "x" * 20_000
    await stage.open(model, [FakeTool("read")], around=around("x" * 20_000), system=system)
    ended = await stage.turn("hi")
    assert (ended.reason, ended.fault.code, model.requests) == ("failed", "context_length", [])
    message = str(ended.fault)
    assert "project rules (AGENTS.md) 5556" in message and "of the 8192 tokens of fake's window" in message
    assert message.index("project rules") < message.index("tools ") < message.index("system prompt ")


@pytest.mark.req("EN-8")
async def test_a_smaller_model_is_checked_when_it_is_chosen(stage):
    large, small = Model(script(Said("ok")), limit=64_000), Model(script(Said("ok")), limit=8192)
    await stage.open(large, [], around=around("x" * 20_000), system="x" * 20_000)
    assert (await stage.turn("hi")).reason == "done"
    stage.engine._make_model = lambda name: small
    await stage.session.apply(SetOption("model", "small"))
    assert (await stage.turn("again")).fault.code == "context_length"


@pytest.mark.req("EN-3", "MD-9")
async def test_tools_of_another_agent_are_told_at_the_end_and_stay(stage):
    tools = [FakeTool("read"), FakeTool("write"), FakeTool("bash")]
    model = Model(script(Said("ok")), limit=64_000)
    await stage.open(model, tools)
    for names in (["read"], ["bash", "read"], ["read", "write", "bash"], ["read"]):
        stage.engine._tools = lambda names=names: [tool.spec for tool in tools if tool.spec.name in names]
        await stage.turn("go")
    told = [[tool.name for tool in request.tools] for request in model.requests]
    assert told == [["read"], ["read", "bash"], ["read", "bash", "write"], ["read", "bash", "write"]]
    assert len(stage.past(PrefixBuilt)) == 3


def words_of(value):
    """All texts of a request, keys and all, without JSON's marks."""
    if isinstance(value, dict):
        return sum(len(key) + words_of(inner) for key, inner in value.items())
    if isinstance(value, list):
        return sum(map(words_of, value))
    return len(str(value).encode())


@pytest.mark.req("EN-7", "EN-9")
async def test_the_pieces_follow_a_summary_and_what_a_person_ran(stage):
    """The last count is of a request that was longer, or shorter, than the next one."""
    lines = [Said("I look.", ("read", {"path": "a.py"})).counted(300, 20), Said("So it is. " * 9).counted(7_500, 40)]
    model = Model(script(*lines, Said("Objective: look.")), limit=64_000)

    async def answer(params, context):
        return "a line of code with words in it\n" * 800

    def now():
        records = stage.session.records()
        return sum(part.size for part in in_tokens(breakdown(records), records))

    await stage.open(model, [FakeTool("read", answer)], system="Be good. " * 100)
    await stage.turn("Please look")
    assert now() == pytest.approx(7_540, abs=3)
    assert await stage.session.apply(Compact())
    assert now() < 1_500
    assert stage.past(UsageReported)[-1].context_used == pytest.approx(now(), abs=3)
    assert await stage.session.apply(Compact(undo=True))
    assert now() == pytest.approx(7_540, rel=0.1)
    assert stage.past(UsageReported)[-1].context_used == pytest.approx(now(), abs=3)
    await stage.session.call(ToolCall("by-me", "read", {"path": "b.py"}, origin="person"))
    assert now() > 13_000


@pytest.mark.req("EN-7")
async def test_the_pieces_add_up_to_the_request(stage):
    """In bytes as estimated exactly, and in tokens within two hundredths of what the server counted."""
    text = "a line of code with words in it\n" * 200
    calls = [Said("I look.", ("read", {"path": f"src/file{n}.py"})).counted(2000 * n + 3000, 20) for n in range(5)]
    replies = [*calls, Said("That is all there is. " * 20).counted(13_000, 110)]
    model = Model(script(*replies), limit=64_000)
    parts = [Part("system prompt", "Ostler", "Be good. " * 50), Part("project rules", "AGENTS.md", "Use tabs. " * 200)]
    system = "\n\n".join(part.text for part in parts)

    async def answer(params, context):
        return text

    await stage.open(model, [FakeTool("read", answer)], around=Surroundings(lambda: parts), system=system)
    await stage.turn("Please look at all the files")
    records = stage.session.records()
    found = breakdown(records)
    assert [part.name for part in found] == [
        *("system prompt", "project rules", "tools"),
        *("prompts", "answers and calls", "results of tools"),
    ]
    built = next(event for event in stage.past(PrefixBuilt))
    view = stage.engine._view(built)
    assert sum(part.size for part in found) == view.size
    tokens = in_tokens(found, records)
    assert abs(sum(part.size for part in tokens) - 13_110) <= 13_110 * 0.02
    request = Request(system, view.history.said, view.offered)
    sent = words_of(json.loads(chat_body("m", request, Habits(), {})))
    assert abs(sum(part.size for part in found) - sent) <= sent * 0.02
