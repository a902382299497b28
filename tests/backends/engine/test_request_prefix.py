"""What every request begins with: small for small windows, refused where it fills one, and told piece by piece."""

import json

import pytest
from engine_play import Model, Said, script

from ostler.backends.engine.request_breakdown import breakdown, to_tokens
from ostler.backends.engine.request_prefix import SMALL_WINDOW, ProjectPrompt
from ostler.core.events import PrefixBuilt, UsageReported
from ostler.core.sessions import Compact, SetOption
from ostler.core.tools import ToolCall
from ostler.knowledge.prompt_sections import PromptSection
from ostler.models.model_types import ModelRequest
from ostler.models.openai_request import ServerQuirks, chat_body
from ostler.testing.fake_tool import FakeTool


def around(rules):
    parts = [PromptSection("system prompt", "Ostler", "Be good."), PromptSection("project rules", "AGENTS.md", rules)]
    return ProjectPrompt(lambda: parts)


@pytest.mark.req("EN-8")
@pytest.mark.parametrize(("limit", "told"), [(8192, False), (SMALL_WINDOW, False), (SMALL_WINDOW + 1, True)])
async def test_a_small_window_is_told_of_fewer_tools(harness, limit, told):
    model = Model(script(Said("ok")), limit=limit)
    await harness.open(model, [FakeTool("read"), FakeTool("patch"), FakeTool("task")])
    await harness.turn("hi")
    names = [tool.name for tool in model.requests[0].tools]
    assert names == (["read", "patch", "task"] if told else ["read"])


@pytest.mark.req("EN-8")
async def test_a_beginning_that_takes_more_than_half_is_refused_with_sizes(harness):
    model = Model(script(Said("ok")), limit=8192)
    system = "Be good.\n\n" + "x" * 20_000
    await harness.open(model, [FakeTool("read")], project=around("x" * 20_000), system=system)
    ended = await harness.turn("hi")
    assert (ended.reason, ended.fault.code, model.requests) == ("failed", "context_length", [])
    message = str(ended.fault)
    assert "project rules (AGENTS.md) 5556" in message and "of the 8192 tokens of fake's window" in message
    assert message.index("project rules") < message.index("tools ") < message.index("system prompt ")


@pytest.mark.req("EN-8")
async def test_a_smaller_model_is_checked_when_it_is_chosen(harness):
    large, small = Model(script(Said("ok")), limit=64_000), Model(script(Said("ok")), limit=8192)
    await harness.open(large, [], project=around("x" * 20_000), system="x" * 20_000)
    assert (await harness.turn("hi")).reason == "done"
    harness.engine._make_model = lambda name: small
    await harness.session.apply(SetOption("model", "small"))
    assert (await harness.turn("again")).fault.code == "context_length"


@pytest.mark.req("EN-3", "MD-9")
async def test_tools_of_another_agent_are_told_at_the_end_and_stay(harness):
    tools = [FakeTool("read"), FakeTool("write"), FakeTool("bash")]
    model = Model(script(Said("ok")), limit=64_000)
    await harness.open(model, tools)
    for names in (["read"], ["bash", "read"], ["read", "write", "bash"], ["read"]):
        harness.engine._tools = lambda names=names: [tool.spec for tool in tools if tool.spec.name in names]
        await harness.turn("go")
    told = [[tool.name for tool in request.tools] for request in model.requests]
    assert told == [["read"], ["read", "bash"], ["read", "bash", "write"], ["read", "bash", "write"]]
    assert len(harness.past(PrefixBuilt)) == 3


def words_of(value):
    """All texts of a request, keys and all, without JSON's marks."""
    if isinstance(value, dict):
        return sum(len(key) + words_of(inner) for key, inner in value.items())
    if isinstance(value, list):
        return sum(map(words_of, value))
    return len(str(value).encode())


@pytest.mark.req("EN-7", "EN-9")
async def test_the_pieces_follow_a_summary_and_what_a_person_ran(harness):
    """The last count is of a request that was longer, or shorter, than the next one."""
    lines = [Said("I look.", ("read", {"path": "a.py"})).counted(300, 20), Said("So it is. " * 9).counted(7_500, 40)]
    model = Model(script(*lines, Said("Objective: look.")), limit=64_000)

    async def answer(params, context):
        return "a line of code with words in it\n" * 800

    def now():
        records = harness.session.records()
        return sum(part.size for part in to_tokens(breakdown(records), records))

    await harness.open(model, [FakeTool("read", answer)], system="Be good. " * 100)
    await harness.turn("Please look")
    assert now() == pytest.approx(7_540, abs=3)
    assert await harness.session.apply(Compact())
    assert now() < 1_500
    assert harness.past(UsageReported)[-1].context_used == pytest.approx(now(), abs=3)
    assert await harness.session.apply(Compact(undo=True))
    assert now() == pytest.approx(7_540, rel=0.1)
    assert harness.past(UsageReported)[-1].context_used == pytest.approx(now(), abs=3)
    await harness.session.call(ToolCall("by-me", "read", {"path": "b.py"}, origin="person"))
    assert now() > 13_000


@pytest.mark.req("EN-7")
async def test_the_pieces_add_up_to_the_request(harness):
    """In bytes as estimated exactly, and in tokens within two hundredths of what the server counted."""
    text = "a line of code with words in it\n" * 200
    calls = [Said("I look.", ("read", {"path": f"src/file{n}.py"})).counted(2000 * n + 3000, 20) for n in range(5)]
    replies = [*calls, Said("That is all there is. " * 20).counted(13_000, 110)]
    model = Model(script(*replies), limit=64_000)
    parts = [
        PromptSection("system prompt", "Ostler", "Be good. " * 50),
        PromptSection("project rules", "AGENTS.md", "Use tabs. " * 200),
    ]
    system = "\n\n".join(part.text for part in parts)

    async def answer(params, context):
        return text

    await harness.open(model, [FakeTool("read", answer)], project=ProjectPrompt(lambda: parts), system=system)
    await harness.turn("Please look at all the files")
    records = harness.session.records()
    found = breakdown(records)
    assert [part.name for part in found] == [
        *("system prompt", "project rules", "tools"),
        *("prompts", "answers and calls", "results of tools"),
    ]
    built = next(event for event in harness.past(PrefixBuilt))
    view = harness.engine._make_view(built)
    assert sum(part.size for part in found) == view.size
    tokens = to_tokens(found, records)
    assert abs(sum(part.size for part in tokens) - 13_110) <= 13_110 * 0.02
    request = ModelRequest(system, view.history.messages, view.tools)
    sent = words_of(json.loads(chat_body("m", request, ServerQuirks(), {})))
    assert abs(sum(part.size for part in found) - sent) <= sent * 0.02
