"""Comparing requests: the shared prefix, or the first byte that differs."""

import pytest
from model_helpers import READ, collect, make_request, of_type

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
    comparer = PrefixComparer()
    return [comparer.compare(WRITERS[api](request)) for request in requests]


@pytest.mark.req("MD-9")
@pytest.mark.parametrize("api", WRITERS)
def test_growing_conversation_keeps_its_prefix(api):
    first, *later = lines(api, *(make_request(history=HISTORY[:end]) for end in STEPS))
    assert "the first request" in first
    assert [line.partition(": ")[2].partition(" bytes of ")[2] for line in later] == [f"request {n}" for n in (1, 2, 3)]
    assert all(": all " in line for line in later)


@pytest.mark.req("MD-9")
@pytest.mark.parametrize("api", WRITERS)
@pytest.mark.parametrize(
    ("changed", "path", "old_text", "new_text"),
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
def test_first_differing_byte_is_named(api, changed, path, old_text, new_text):
    before = make_request(history=HISTORY)
    values = {"system": before.system, "history": before.history, "tools": before.tools} | changed
    _, line = lines(api, before, ModelRequest(**values))
    assert "broken after" in line
    assert f"in {path[api]}" in line
    old, _, new = line.rpartition(": ")[2].partition(" became ")
    assert old_text in old and new_text in new


def test_unrelated_request_does_not_hide_the_conversation():
    requests = [make_request(history=HISTORY[:end]) for end in STEPS[:2]]
    notes = lines("openai", requests[0], ModelRequest("Write a summary.", HISTORY[:1]), requests[1])
    assert "broken after" in notes[1]
    assert notes[2].endswith("bytes of request 1")


@pytest.mark.req("MD-9")
async def test_each_reply_starts_with_a_note_if_enabled(client):
    async with ScriptedModelServer(status(503), text("a"), text("b")) as server:
        model = client(server, explain_cache=True)
        first = [chunk async for chunk in model.stream(make_request())]
        second = await collect(model)
    notes = [chunk.text.partition(" (")[0] for chunk in of_type([*first, *second], RequestNote)]
    assert notes == ["prefix of request 1", "prefix of request 2", "prefix of request 3"]
    async with ScriptedModelServer(text("a")) as server:
        assert not of_type(await collect(client(server)), RequestNote)


@pytest.mark.req("MD-9")
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_reply_limit_is_ignored(name):
    comparer, quirks = PrefixComparer(), ServerQuirks(limit_name=name)
    requests = [make_request(history=HISTORY[:end], max_tokens=900 - 100 * end) for end in STEPS]
    notes = [comparer.compare(chat_body("m", request, quirks, {})) for request in requests]
    assert [": all " in line for line in notes] == [False, True, True, True]
