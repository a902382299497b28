"""Normalisation of an answer's values to events."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.wire.agent_zero.normalise import CONTEXT_ID_NAMES, Normaliser
from ostler.wire.agent_zero.zero_events import ZeroEvent, ZeroToolRequest

REQUEST = {
    "type": "tool_request",
    "tool_name": "read_file",
    "command": "read a.txt",
    "reason": "to see it",
    "payload": {"path": "a.txt"},
}
WORDS = {"command": "read a.txt", "reason": "to see it"}
READ = ZeroToolRequest("read_file", {"path": "a.txt"}, "read a.txt", "to see it")


def shown(value):
    """Return the events of a value as pairs, without those that only have extra members."""
    return [
        (event.kind, event.request or event.text)
        for event in Normaliser().events(value)
        if event.request or event.text or event.kind != "other"
    ]


@pytest.mark.req("AZ-2")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, []),
        ("hello", [("final_response", "hello")]),
        (3, [("final_response", "3")]),
        ('{"type": "status", "content": "busy"}', [("status", "busy")]),
        (["a", {"type": "thought", "content": "b"}], [("final_response", "a"), ("thinking", "b")]),
        ({"type": "thinking", "content": "hm"}, [("thinking", "hm")]),
        ({"type": "final_response", "content": "done"}, [("final_response", "done")]),
        ({"type": "message", "message": "done"}, [("final_response", "done")]),
        ({"type": "answer", "text": "done"}, [("final_response", "done")]),
        ({"type": "progress", "content": "half"}, [("other", "half")]),
        ({"type": "tool_output", "output": "x", "tool_call_id": "c"}, [("tool_output", "x")]),
        ({"context_id": "c1", "response": "hi"}, [("final_response", "hi")]),
        ({"response": {"type": "status", "content": "busy"}}, [("status", "busy")]),
        ({"message": "hi"}, [("final_response", "hi")]),
        ({"events": [{"type": "status", "content": "s"}, "end"]}, [("status", "s"), ("final_response", "end")]),
        ({"choices": [{"delta": {"content": "pie"}}]}, [("piece", "pie")]),
        ({"choices": [{"delta": {"reasoning_content": "hm"}}]}, [("thinking", "hm")]),
        ({"choices": [{"message": {"content": "all"}}]}, [("final_response", "all")]),
        ({"delta": {"content": "pie"}}, [("piece", "pie")]),
        ({"unknown": 1}, [("final_response", '{"unknown": 1}')]),
        ({"type": "final_response"}, [("final_response", '{"type": "final_response"}')]),
        ({"type": "status"}, []),
        ({"text": "hi", "message": ""}, [("final_response", '{"text": "hi", "message": ""}')]),
        ({"type": "step", "data": {"a": 1}}, [("other", '{"data": {"a": 1}}')]),
        ({"context_id": "c", "response": ""}, []),
        ({"response": None}, []),
        ({"message": "", "a": 1}, []),
        ({"choices": []}, []),
    ],
)
def test_known_shapes(value, expected):
    assert shown(value) == expected


@pytest.mark.req("AZ-2")
@pytest.mark.parametrize("name", CONTEXT_ID_NAMES)
def test_context_id_is_stored_under_each_name(name):
    normaliser = Normaliser()
    normaliser.events({name: "c-1", "response": "hi"})
    assert normaliser.context_id == "c-1"


@pytest.mark.req("AZ-2")
@pytest.mark.parametrize(
    "value", [{"context_id": ""}, {"context_id": None}, {"context_id": ["x"]}, {"context_id": "x" * 999}]
)
def test_unusable_context_id_is_not_stored(value):
    normaliser = Normaliser()
    normaliser.events({**value, "response": "hi"})
    assert normaliser.context_id == ""


@pytest.mark.req("AZ-3")
@pytest.mark.parametrize(
    "value",
    [
        REQUEST,
        {"tool_request": REQUEST},
        {"events": [REQUEST]},
        {"response": json.dumps(REQUEST)},
        {"response": REQUEST},
        {
            "type": "tool_call",
            "name": "read_file",
            "arguments": '{"path": "a.txt"}',
            "command": "read a.txt",
            "reason": "to see it",
        },
        {"tool_call": {"tool": "read_file", "args": {"path": "a.txt"}, "summary": "read a.txt", "reason": "to see it"}},
        {
            "type": "tool_use",
            "name": "read_file",
            "input": {"path": "a.txt"},
            "command": "read a.txt",
            "reason": "to see it",
        },
    ],
)
def test_request_is_found_in_every_shape(value):
    assert [request for kind, request in shown(value) if kind == "tool_request"] == [READ]


@pytest.mark.req("AZ-3")
def test_openai_calls_follow_the_content_of_their_message():
    call = {"id": "call-1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.txt"}'}}
    expected = ZeroToolRequest("read_file", {"path": "a.txt"}, call_id="call-1")
    message = {"content": "Looking.", "tool_calls": [call]}
    for value in (message, {"choices": [{"message": message}]}):
        assert shown(value) == [("final_response", "Looking."), ("tool_request", expected)]


@pytest.mark.req("AZ-3")
@pytest.mark.parametrize("with_reason", [True, False])
def test_streamed_fragments_of_a_call_are_joined(with_reason):
    normaliser, events = Normaliser(), []
    fragments = [{"id": "c", "name": "read_file", "arguments": ""}, {"arguments": '{"path":'}, {"arguments": ' "a"}'}]
    for fragment in fragments:
        call = {"index": 0, "function": {key: fragment[key] for key in fragment if key != "id"}}
        call |= {"id": "c"} if "id" in fragment else {}
        events += normaliser.events({"choices": [{"delta": {"tool_calls": [call]}}]})
    assert not any(event.kind == "tool_request" for event in events)
    events += normaliser.events({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}) if with_reason else []
    events += normaliser.finish()
    requests = [event.request for event in events if event.kind == "tool_request"]
    assert requests == [ZeroToolRequest("read_file", {"path": "a"}, call_id="c")]


@pytest.mark.req("AZ-3")
def test_arguments_that_are_not_an_object_are_kept_as_text():
    value = {"type": "tool_call", "name": "shell", "arguments": "not json"}
    assert shown(value) == [("tool_request", ZeroToolRequest("shell", raw="not json"))]


@pytest.mark.req("AZ-2")
@pytest.mark.parametrize(
    "text",
    [
        *('{"name": "demo", "version": 1}', "[1, 2, 3]", '[{"a": 1}]', "{not json}"),
        *(
            '{\n  "type": "module"\n}',
            '{"message": "hi", "code": 3}',
            '{"events": ["a"]}',
            '{"choices": ["yes", "no"]}',
        ),
        '[{"type": "tool", "name": "read", "input": {"path": ".env"}}]',
        '{"context_id": "other", "conversation_id": "other"}',
    ],
)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda text: {"context_id": "c", "response": text},
        lambda text: {"context_id": "c", "type": "final_response", "content": text},
        lambda text: {"context_id": "c", "choices": [{"message": {"content": text}}]},
        lambda text: {"context_id": "c", "events": [text]},
    ],
)
def test_json_that_is_the_answer_itself_is_unchanged(text, wrap):
    """Neither events nor tool requests nor the id of the conversation are taken from the text of an answer."""
    normaliser = Normaliser()
    events = [event for event in normaliser.events(wrap(text)) if event.text or event.request]
    assert [(event.kind, event.text) for event in events] == [("final_response", text)]
    assert normaliser.context_id == "c"


MEMBERS = """type content text message response events choices delta tool_calls tool_call tool_request function tool
arguments name tool_name payload input id tool_call_id context_id index command summary reason output result ok args
parameters tool_args reasoning thinking finish_reason"""
TYPES = ("tool_request", "tool_call", "tool_use", "final_response", "status", "thinking", "tool_output", "text")
JSON = st.recursive(
    st.sampled_from((None, True, False, "", "text", 0, 1.5)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(MEMBERS.split()) | st.sampled_from("ab"), inner | st.sampled_from(TYPES), max_size=6
        )
    ),
    max_leaves=25,
)


def number_leaves(value, seen, name=""):
    """Return the value with every text and number replaced by one that occurs once; types and indexes stay."""
    if isinstance(value, dict):
        return {key: number_leaves(item, seen, key) for key, item in value.items()}
    if isinstance(value, list):
        return [number_leaves(item, seen) for item in value]
    if value in (None, "") or isinstance(value, bool) or (name == "type" and isinstance(value, str)) or name == "index":
        return value
    number = 70_000_000 + len(seen)
    seen.append((name, str(number)))
    return f"v{number}" if isinstance(value, str) else number + 0.5 if isinstance(value, float) else number


def everything(normaliser, events):
    """Return all that the events contain, as one text."""
    return "\n".join([normaliser.context_id, *(msgspec.json.encode(event).decode() for event in events)])


def assert_nothing_is_lost(value, wrap=lambda value: value):
    seen = []
    value = number_leaves(value, seen)
    normaliser = Normaliser()
    events = normaliser.events(wrap(value)) + normaliser.finish()
    assert all(isinstance(event, ZeroEvent) for event in events)
    content = everything(normaliser, events)
    for name, text in seen:
        if name not in CONTEXT_ID_NAMES:  # the last id is the one that counts
            assert text in content, (text, value, events)


@pytest.mark.req("AZ-2")
@examples(500)
@given(JSON)
def test_arbitrary_json_never_raises_and_nothing_is_lost(value):
    assert_nothing_is_lost(value)


@pytest.mark.req("AZ-2")
@examples(200)
@given(JSON, st.sampled_from(("{}", "see:\n```json\n{}\n```\nand so on", "{} {}")))
def test_nothing_of_json_in_a_text_is_lost(value, text):
    assert_nothing_is_lost(value, lambda value: {"response": text.replace("{}", json.dumps(value))})


@pytest.mark.req("AZ-2")
@examples(200)
@given(st.dictionaries(st.sampled_from(MEMBERS.split()), JSON, max_size=6), st.booleans(), st.booleans())
def test_nothing_of_a_tool_request_is_lost(members, in_text, wrapped):
    value = {"tool_name": "read_file", "payload": {}, **members, "type": "tool_request"}
    value = {"tool_request": value, "note": "text"} if wrapped else value
    assert_nothing_is_lost(value, lambda value: f"first\n{json.dumps(value)}\nlast" if in_text else value)


@pytest.mark.req("AZ-2")
@examples(200)
@given(st.lists(st.dictionaries(st.sampled_from(("id", "type", "index", "function", "name", "a")), JSON), max_size=4))
def test_nothing_of_a_streamed_call_is_lost(fragments):
    functions = [{"function": {"name": "text", "arguments": "text", "b": "text"}, **item} for item in fragments]
    assert_nothing_is_lost([{"choices": [{"delta": {"tool_calls": [item]}}]} for item in functions])


@pytest.mark.parametrize(
    ("members", "call_id", "extra"),
    [
        ({"id": -1}, "-1", {}),
        ({"id": 0}, "0", {}),
        ({"id": True}, "", {"id": True}),
        ({"id": [5], "tool_call_id": "c"}, "c", {"id": [5]}),
        ({"ok": "no", "tool_name": 7}, "", {"ok": "no", "tool_name": 7}),
    ],
)
def test_members_of_another_type_than_expected_stay_in_extra(members, call_id, extra):
    [event] = Normaliser().events({"type": "tool_output", "content": "tool_request", **members})
    assert (event.text, event.call_id, event.ok, event.extra) == ("tool_request", call_id, True, extra)
    [event] = Normaliser().events({"type": "tool_request", "tool_name": "read_file", **members} | {"tool_name": "x"})
    assert event.request.call_id == call_id


def test_deep_nesting_is_not_lost_and_does_not_raise():
    value = "deep"
    for _ in range(5000):
        value = [value]
    assert Normaliser().events(value)
    value = {"response": "deep"}
    for _ in range(100):
        value = {"response": value}
    assert "deep" in Normaliser().events(value)[0].text
