"""What requests have in common: all of the one before, or the first byte that is not."""

import pytest
from model_talk import READ, ask, collect, only

from ostler.core.message import CallPart, Message
from ostler.core.prompt import TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.models.anthropic_request import messages_body
from ostler.models.model_types import (
    AssistantMessage,
    ModelRequest,
    RequestNote,
    SystemMessage,
    ToolResultsMessage,
    UserMessage,
)
from ostler.models.openai_request import ServerQuirks, chat_body
from ostler.models.prefix_comparer import PrefixComparer
from ostler.testing.model_server import ScriptedModelServer, status, text

WRITERS = {
    "openai": lambda request: chat_body("m", request, ServerQuirks(), {}),
    "anthropic": lambda request: messages_body("m", request, 100, {}),
}
CALL = ToolCall("c1", "read", {"path": "a"})
HISTORY = (
    UserMessage((TextContent("look"),)),
    AssistantMessage(Message("m1", (TextContent("so"), CallPart(CALL)), "m")),
    ToolResultsMessage((ToolResult("c1", "ok", "found"),)),
    SystemMessage("keep a list"),
    AssistantMessage(Message("m2", (TextContent("done"),), "m")),
    UserMessage((TextContent("thanks"),)),
)
STEPS = (1, 3, 4, 6)


def lines(api, *requests):
    watch = PrefixComparer()
    return [watch.compare(WRITERS[api](request)) for request in requests]


@pytest.mark.req("MD-9")
@pytest.mark.parametrize("api", WRITERS)
def test_a_conversation_that_grows_keeps_its_beginning(api):
    first, *later = lines(api, *(ask(history=HISTORY[:end]) for end in STEPS))
    assert "the first of its kind" in first
    assert [line.partition(": ")[2].partition(" bytes of ")[2] for line in later] == [f"request {n}" for n in (1, 2, 3)]
    assert all(": all " in line for line in later)


@pytest.mark.req("MD-9")
@pytest.mark.parametrize("api", WRITERS)
@pytest.mark.parametrize(
    ("changed", "place", "was", "became"),
    [
        ({"system": "be brief at 09:41"},
         {"openai": "messages[0].content", "anthropic": "system[0].text"}, "", " at 0"),
        ({"history": (UserMessage((TextContent("lock"),)), *HISTORY[1:])},
         {"openai": "messages[1].content", "anthropic": "messages[0].content[0].text"}, "ok", "ck"),
        ({"tools": (READ,)}, {"openai": "tools", "anthropic": "tools"}, "", ""),
        ({"temperature": 0.5}, {"openai": "temperature", "anthropic": "temperature"}, "ools", "emperature"),
    ],
    ids=["a clock", "an old message", "a tool", "a setting"],
)  # fmt: skip
def test_the_first_byte_that_broke_it_is_named(api, changed, place, was, became):
    before = ask(history=HISTORY)
    values = {"system": before.system, "history": before.history, "tools": before.tools} | changed
    _, line = lines(api, before, ModelRequest(**values))
    assert "broken after" in line
    assert f"in {place[api]}" in line
    old, _, new = line.rpartition(": ")[2].partition(" became ")
    assert was in old and became in new


def test_a_request_beside_the_conversation_does_not_hide_it():
    asked = [ask(history=HISTORY[:end]) for end in STEPS[:2]]
    told = lines("openai", asked[0], ModelRequest("Write a summary.", HISTORY[:1]), asked[1])
    assert "broken after" in told[1]
    assert told[2].endswith("bytes of request 1")


@pytest.mark.req("MD-9")
async def test_each_reply_begins_with_it_where_that_was_asked_for(client):
    async with ScriptedModelServer(status(503), text("a"), text("b")) as server:
        model = client(server, explain_cache=True)
        first = [chunk async for chunk in model.stream(ask())]
        second = await collect(model)
    told = [chunk.text.partition(" (")[0] for chunk in only([*first, *second], RequestNote)]
    assert told == ["prefix of request 1", "prefix of request 2", "prefix of request 3"]
    async with ScriptedModelServer(text("a")) as server:
        assert not only(await collect(client(server)), RequestNote)


@pytest.mark.req("MD-9")
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_how_long_a_reply_may_get_is_no_part_of_it(name):
    watch, habits = PrefixComparer(), ServerQuirks(limit_name=name)
    asked = [ask(history=HISTORY[:end], max_tokens=900 - 100 * end) for end in STEPS]
    told = [watch.compare(chat_body("m", request, habits, {})) for request in asked]
    assert [": all " in line for line in told] == [False, True, True, True]
