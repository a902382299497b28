"""Requests are the same bytes for the same history, always valid JSON, and only grow at their end."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_talk import BASH, READ, ask

from ostler.core.message import CallPart, Message, ThoughtPart
from ostler.core.prompt import EmbeddedResource, ImageContent, ResourceLink, TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.models.model_types import AssistantMessage, ModelRequest, SystemMessage, ToolResultsMessage, UserMessage
from ostler.models.openai_request import ServerQuirks, chat_body, chat_messages

PICTURE = ImageContent("image/png", "aWNl")
CALLED = AssistantMessage(
    Message(
        "m1",
        (
            ThoughtPart("hm"),
            TextContent("I look."),
            CallPart(ToolCall("c1", "read", {"path": "ä"})),
            CallPart(ToolCall("c2", "bash", {})),
        ),
    )
)
RESULTS = ToolResultsMessage((ToolResult("c1", "ok", "content"), ToolResult("c2", "failed", "no such file")))


def messages(*history, habits=None, system="be brief"):
    return chat_messages(ModelRequest(system, history), habits or ServerQuirks())


def body(request, habits=None, **extra):
    return chat_body("m", request, habits or ServerQuirks(), extra)


def test_a_whole_conversation():
    said = messages(
        UserMessage((TextContent("hi"),)),
        CALLED,
        RESULTS,
        SystemMessage("note"),
        UserMessage((TextContent("a"), TextContent("b"))),
    )
    assert said == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path":"ä"}'}},
                {"id": "c2", "type": "function", "function": {"name": "bash", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "content"},
        {"role": "tool", "tool_call_id": "c2", "content": "no such file"},
        {"role": "system", "content": "note"},
        {"role": "user", "content": "a\n\nb"},
    ]


@pytest.mark.parametrize(
    ("blocks", "content"),
    [
        ((), ""),
        ((TextContent("a"), ResourceLink("file:///x", "x")), "a\n\nx: file:///x"),
        ((ResourceLink("file:///x"),), "file:///x"),
        ((EmbeddedResource("notes.md", "text"),), "@file:notes.md\ntext"),
        (
            (TextContent("see"), PICTURE, TextContent("that")),
            [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aWNl"}},
                {"type": "text", "text": "that"},
            ],
        ),
    ],
)
def test_what_the_user_says(blocks, content):
    assert messages(UserMessage(blocks), system="") == [{"role": "user", "content": content}]


def test_pictures_of_tools_follow_in_the_users_name():
    said = messages(
        CALLED, ToolResultsMessage((ToolResult("c1", "ok", "seen", images=(PICTURE,)), ToolResult("c2", "ok", "ok")))
    )
    assert [message["role"] for message in said[2:]] == ["tool", "tool", "user"]
    assert said[-1]["content"][1]["type"] == "image_url"


def test_a_call_without_words_and_words_without_a_call():
    calls_only = messages(AssistantMessage(Message("m", (CallPart(ToolCall("c", "", {})),))), system="")[0]
    assert calls_only["content"] is None
    assert calls_only["tool_calls"][0]["function"]["name"] == "unknown"
    assert messages(AssistantMessage(Message("m", ())), system="") == [{"role": "assistant", "content": ""}]


def test_options_are_sent_only_when_set():
    plain = json.loads(body(ask()))
    assert plain.keys() == {"model", "stream", "stream_options", "tools", "messages"}
    full = json.loads(
        body(ask(max_tokens=9, temperature=0.0, top_p=0.5), chat_template_kwargs={"enable_thinking": False})
    )
    assert (full["max_tokens"], full["temperature"], full["top_p"]) == (9, 0.0, 0.5)
    assert full["chat_template_kwargs"] == {"enable_thinking": False}
    assert "tools" not in json.loads(body(ModelRequest("", ())))


@pytest.mark.req("MD-9")
def test_each_request_begins_with_all_of_the_one_before():
    history = [
        UserMessage((TextContent("hi"),)),
        CALLED,
        RESULTS,
        SystemMessage("n"),
        UserMessage((TextContent("go on"),)),
        CALLED,
        RESULTS,
    ]
    bodies = [body(ModelRequest("be brief", tuple(history[:size]), (READ, BASH))) for size in range(len(history) + 1)]
    for shorter, longer in pairwise(bodies):
        assert longer.startswith(shorter.removesuffix(b"]}"))
    assert body(ModelRequest("be brief", tuple(history), (READ, BASH))) == bodies[-1]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.req("MD-4")
@given(st.dictionaries(st.text(st.characters(codec=None), max_size=4), values, max_size=3))
@settings(max_examples=150, deadline=None)
def test_whatever_a_model_put_into_its_arguments_goes_back_as_json(arguments):
    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    request = ModelRequest("", (AssistantMessage(Message("m", (CallPart(ToolCall("c", "read", arguments)),))),))
    written = json.loads(body(request).decode(), parse_constant=refuse)
    sent = written["messages"][0]["tool_calls"][0]["function"]["arguments"]
    assert isinstance(json.loads(sent, parse_constant=refuse), dict)


def test_half_characters_in_a_tools_output_do_not_break_the_request():
    request = ModelRequest(
        "", (CALLED, ToolResultsMessage((ToolResult("c1", "ok", "a\udcffb"), ToolResult("c2", "ok", "ü"))))
    )
    said = json.loads(body(request))["messages"]
    assert [message["content"] for message in said[1:]] == ["a?b", "ü"]


@pytest.mark.parametrize(
    "refusal",
    [
        "System message must be at the beginning.",
        "Conversation roles must alternate user/assistant/user",
        "Only user and assistant roles are supported!",
        "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
        "Unexpected role 'system' after role 'user'",
    ],
)
def test_a_server_that_wants_its_system_message_first_gets_notes_in_the_users_name(refusal):
    habits = ServerQuirks().adapt(refusal, ask())
    said = messages(
        UserMessage((TextContent("hi"),)),
        CALLED,
        RESULTS,
        SystemMessage("note"),
        UserMessage((PICTURE,)),
        UserMessage((TextContent("x"),)),
        habits=habits,
    )
    assert [message["role"] for message in said] == ["system", "user", "assistant", "tool", "tool", "user"]
    texts = [part.get("text") for part in said[-1]["content"]]
    assert texts == ["<system>\nnote\n</system>", None, "x"]
    never = habits.adapt(refusal, ask())
    assert never.system_role == "never"
    assert never.adapt(refusal, ask()) is None


def test_habits_change_only_by_what_was_sent():
    assert ServerQuirks().adapt("temperature is not supported", ask()) is None
    assert ServerQuirks().adapt("something else", ask(temperature=1.0)) is None


@pytest.mark.req("CL-3")
@pytest.mark.parametrize(
    ("anywhere", "messages"),
    [
        (True, [{"role": "system", "content": "@file:notes.md\nfirst\n"}, {"role": "user", "content": "see"}]),
        (False, [{"role": "user", "content": "@file:notes.md\nfirst\n\n\nsee"}]),
    ],
)
def test_a_file_goes_ahead_of_the_words_that_mention_it(anywhere, messages):
    said = UserMessage((TextContent("see"), EmbeddedResource("notes.md", "first\n")))
    assert (
        chat_messages(ModelRequest("", (said,)), ServerQuirks(system_role="anywhere" if anywhere else "first"))
        == messages
    )
