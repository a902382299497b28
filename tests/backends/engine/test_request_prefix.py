"""The request prefix: fewer tools for small windows, refused if it is too large, and its breakdown."""

import json

import pytest
from engine_harness import Model, Reply, script

from ostler.backends.engine.context_usage import breakdown, to_tokens
from ostler.backends.engine.request_prefix import SMALL_WINDOW, ProjectPrompt
from ostler.core.events import PrefixBuilt, UsageReported
from ostler.core.sessions import Compact, SetOption
from ostler.core.tools import ToolCall
from ostler.knowledge.prompt_sections import PromptSection
from ostler.models.model_types import ModelRequest
from ostler.models.openai_request import ServerQuirks, chat_body
from ostler.testing.fake_tool import FakeTool


def project_with_rules(rules):
    parts = [PromptSection("system prompt", "Ostler", "Be good."), PromptSection("project rules", "AGENTS.md", rules)]
    return ProjectPrompt(lambda: parts)


@pytest.mark.req("EN-8")
@pytest.mark.parametrize(("limit", "complete"), [(8192, False), (SMALL_WINDOW, False), (SMALL_WINDOW + 1, True)])
async def test_small_window_gets_fewer_tools(harness, limit, complete):
    model = Model(script(Reply("ok")), limit=limit)
    await harness.open(model, [FakeTool("read"), FakeTool("patch"), FakeTool("task")])
    await harness.turn("hi")
    names = [tool.name for tool in model.requests[0].tools]
    assert names == (["read", "patch", "task"] if complete else ["read"])


@pytest.mark.req("EN-8")
async def test_prefix_over_half_the_window_is_refused_with_sizes(harness):
    model = Model(script(Reply("ok")), limit=8192)
    system = "Be good.\n\n" + "x" * 20_000
    await harness.open(model, [FakeTool("read")], project=project_with_rules("x" * 20_000), system=system)
    ended = await harness.turn("hi")
    assert (ended.reason, ended.fault.code, model.requests) == ("failed", "context_length", [])
    message, _, sizes = str(ended.fault).partition(": ")
    assert "project rules (AGENTS.md) 5556" in sizes and "half of the 8192-token context window of fake" in message
    assert sizes.index("project rules") < sizes.index("tools ") < sizes.index("system prompt ")


@pytest.mark.req("EN-8")
async def test_prefix_is_checked_for_a_smaller_model(harness):
    large, small = Model(script(Reply("ok")), limit=64_000), Model(script(Reply("ok")), limit=8192)
    await harness.open(large, [], project=project_with_rules("x" * 20_000), system="x" * 20_000)
    assert (await harness.turn("hi")).reason == "done"
    harness.engine._make_model = lambda name: small
    await harness.session.apply(SetOption("model", "small"))
    assert (await harness.turn("again")).fault.code == "context_length"


@pytest.mark.req("EN-3", "MD-9")
async def test_tools_of_another_agent_are_appended_and_stay(harness):
    tools = [FakeTool("read"), FakeTool("write"), FakeTool("bash")]
    model = Model(script(Reply("ok")), limit=64_000)
    await harness.open(model, tools)
    for names in (["read"], ["bash", "read"], ["read", "write", "bash"], ["read"]):
        harness.engine._tools = lambda names=names: [tool.spec for tool in tools if tool.spec.name in names]
        await harness.turn("go")
    sent_names = [[tool.name for tool in request.tools] for request in model.requests]
    assert sent_names == [["read"], ["read", "bash"], ["read", "bash", "write"], ["read", "bash", "write"]]
    assert len(harness.events_of(PrefixBuilt)) == 3


def text_size(value):
    """Return the size of all texts and keys of a request, without JSON punctuation."""
    if isinstance(value, dict):
        return sum(len(key) + text_size(inner) for key, inner in value.items())
    if isinstance(value, list):
        return sum(map(text_size, value))
    return len(str(value).encode())


@pytest.mark.req("EN-7", "EN-9")
async def test_breakdown_follows_compaction_and_manual_calls(harness):
    """The last report is of a longer or shorter request than the next one."""
    replies = [
        Reply("I look.", ("read", {"path": "a.py"})).counted(300, 20),
        Reply("So it is. " * 9).counted(7_500, 40),
    ]
    model = Model(script(*replies, Reply("Objective: look.")), limit=64_000)

    async def answer(params, context):
        return "a line of code with words in it\n" * 800

    def current_tokens():
        records = harness.session.records()
        return sum(part.size for part in to_tokens(breakdown(records), records))

    await harness.open(model, [FakeTool("read", answer)], system="Be good. " * 100)
    await harness.turn("Please look")
    assert current_tokens() == pytest.approx(7_540, abs=3)
    assert await harness.session.apply(Compact())
    assert current_tokens() < 1_500
    assert harness.events_of(UsageReported)[-1].context_used == pytest.approx(current_tokens(), abs=3)
    assert await harness.session.apply(Compact(undo=True))
    assert current_tokens() == pytest.approx(7_540, rel=0.1)
    assert harness.events_of(UsageReported)[-1].context_used == pytest.approx(current_tokens(), abs=3)
    await harness.session.call(ToolCall("manual", "read", {"path": "b.py"}, origin="person"))
    assert current_tokens() > 13_000


@pytest.mark.req("EN-7")
async def test_breakdown_adds_up_to_the_request(harness):
    """Exact in estimated bytes, and within two percent of the tokens that the server counted."""
    text = "a line of code with words in it\n" * 200
    calls = [Reply("I look.", ("read", {"path": f"src/file{n}.py"})).counted(2000 * n + 3000, 20) for n in range(5)]
    replies = [*calls, Reply("That is all there is. " * 20).counted(13_000, 110)]
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
    parts_found = breakdown(records)
    assert [part.name for part in parts_found] == [
        *("system prompt", "project rules", "tools"),
        *("prompts", "answers and calls", "tool results"),
    ]
    prefix = next(event for event in harness.events_of(PrefixBuilt))
    view = harness.engine._make_view(prefix)
    assert sum(part.size for part in parts_found) == view.size
    tokens = to_tokens(parts_found, records)
    assert abs(sum(part.size for part in tokens) - 13_110) <= 13_110 * 0.02
    request = ModelRequest(system, view.history.messages, view.tools)
    sent = text_size(json.loads(chat_body("m", request, ServerQuirks(), {})))
    assert abs(sum(part.size for part in parts_found) - sent) <= sent * 0.02
