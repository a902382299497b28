"""Requests: the same bytes for the same history, always valid JSON, and only extended at their end."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_helpers import BASH, READ, make_request
from tests.tiers import examples

from ostler.core.message import CallPart, Message, ThoughtPart
from ostler.core.prompt import EmbeddedResource, ImageContent, ResourceLink, TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.models.model_types import AssistantMessage, ModelRequest, SystemMessage, ToolResultsMessage, UserMessage
from ostler.models.openai_request import ServerQuirks, chat_body, chat_messages

IMAGE = ImageContent("image/png", "aWNl")
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


def messages(*history, quirks=None, system="be brief"):
    return chat_messages(ModelRequest(system, history), quirks or ServerQuirks())


def body(request, quirks=None, **extra):
    return chat_body("m", request, quirks or ServerQuirks(), extra)


def test_complete_conversation():
    result = messages(
        UserMessage((TextContent("hi"),)),
        CALLED,
        RESULTS,
        SystemMessage("note"),
        UserMessage((TextContent("a"), TextContent("b"))),
    )
    assert result == [
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
            (TextContent("see"), IMAGE, TextContent("that")),
            [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aWNl"}},
                {"type": "text", "text": "that"},
            ],
        ),
    ],
)
def test_user_content(blocks, content):
    assert messages(UserMessage(blocks), system="") == [{"role": "user", "content": content}]


def test_tool_images_follow_in_a_user_message():
    result = messages(
        CALLED, ToolResultsMessage((ToolResult("c1", "ok", "seen", images=(IMAGE,)), ToolResult("c2", "ok", "ok")))
    )
    assert [message["role"] for message in result[2:]] == ["tool", "tool", "user"]
    assert result[-1]["content"][1]["type"] == "image_url"


def test_call_without_text_and_text_without_call():
    calls_only = messages(AssistantMessage(Message("m", (CallPart(ToolCall("c", "", {})),))), system="")[0]
    assert calls_only["content"] is None
    assert calls_only["tool_calls"][0]["function"]["name"] == "unknown"
    assert messages(AssistantMessage(Message("m", ())), system="") == [{"role": "assistant", "content": ""}]


def test_parameters_are_sent_only_if_set():
    plain = json.loads(body(make_request()))
    assert plain.keys() == {"model", "stream", "stream_options", "tools", "messages"}
    full = json.loads(
        body(make_request(max_tokens=9, temperature=0.0, top_p=0.5), chat_template_kwargs={"enable_thinking": False})
    )
    assert (full["max_tokens"], full["temperature"], full["top_p"]) == (9, 0.0, 0.5)
    assert full["chat_template_kwargs"] == {"enable_thinking": False}
    assert "tools" not in json.loads(body(ModelRequest("", ())))


@pytest.mark.req("MD-9")
def test_request_is_a_prefix_of_the_next():
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
@examples(150)
def test_any_arguments_are_sent_as_valid_json(arguments):
    def reject(constant):
        raise AssertionError(f"{constant} is not JSON")

    request = ModelRequest("", (AssistantMessage(Message("m", (CallPart(ToolCall("c", "read", arguments)),))),))
    written = json.loads(body(request).decode(), parse_constant=reject)
    sent = written["messages"][0]["tool_calls"][0]["function"]["arguments"]
    assert isinstance(json.loads(sent, parse_constant=reject), dict)


def test_lone_surrogates_in_tool_output_are_replaced():
    request = ModelRequest(
        "", (CALLED, ToolResultsMessage((ToolResult("c1", "ok", "a\udcffb"), ToolResult("c2", "ok", "ü"))))
    )
    result = json.loads(body(request))["messages"]
    assert [message["content"] for message in result[1:]] == ["a?b", "ü"]


@pytest.mark.parametrize(
    "error_message",
    [
        "System message must be at the beginning.",
        "Conversation roles must alternate user/assistant/user",
        "Only user and assistant roles are supported!",
        "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
        "Unexpected role 'system' after role 'user'",
    ],
)
def test_system_notes_become_user_text_after_role_error(error_message):
    quirks = ServerQuirks().adapt(error_message, make_request())
    result = messages(
        UserMessage((TextContent("hi"),)),
        CALLED,
        RESULTS,
        SystemMessage("note"),
        UserMessage((IMAGE,)),
        UserMessage((TextContent("x"),)),
        quirks=quirks,
    )
    assert [message["role"] for message in result] == ["system", "user", "assistant", "tool", "tool", "user"]
    texts = [part.get("text") for part in result[-1]["content"]]
    assert texts == ["<system>\nnote\n</system>", None, "x"]
    never = quirks.adapt(error_message, make_request())
    assert never.system_role == "never"
    assert never.adapt(error_message, make_request()) is None


def test_quirks_change_only_for_parameters_that_were_sent():
    assert ServerQuirks().adapt("temperature is not supported", make_request()) is None
    assert ServerQuirks().adapt("something else", make_request(temperature=1.0)) is None


@pytest.mark.req("CL-3")
@pytest.mark.parametrize(
    ("anywhere", "messages"),
    [
        (True, [{"role": "system", "content": "@file:notes.md\nfirst\n"}, {"role": "user", "content": "see"}]),
        (False, [{"role": "user", "content": "@file:notes.md\nfirst\n\n\nsee"}]),
    ],
)
def test_attached_file_precedes_the_text(anywhere, messages):
    message = UserMessage((TextContent("see"), EmbeddedResource("notes.md", "first\n")))
    assert (
        chat_messages(ModelRequest("", (message,)), ServerQuirks(system_role="anywhere" if anywhere else "first"))
        == messages
    )
