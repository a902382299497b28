"""Events that were torn off: what is there of them counts, and the reply goes on."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_talk import collect, only, words

from ostler.core.errors import BackendError
from ostler.models.loose_json import LooseJsonError
from ostler.models.model_types import CallChunk
from ostler.models.truncated_json import parse_truncated
from ostler.testing.model_server import ScriptedModelServer, raw, sse_event


@pytest.mark.parametrize(
    ("torn", "value"),
    [
        ('{"a": "he', {"a": "he"}),
        ('{"a": "he\\', {"a": "he"}),
        ('{"a": "he\\u00', {"a": "he"}),
        ('{"a": 1, "b', {"a": 1, "b": None}),
        ('{"a": 1, "b"', {"a": 1, "b": None}),
        ('{"a": 1, "b":', {"a": 1, "b": None}),
        ('{"a": 1,', {"a": 1}),
        ('{"a": tru', {"a": None}),
        ('{"a": [1, 2', {"a": [1, None]}),
        ('{"a": [{"b": "c', {"a": [{"b": "c"}]}),
        ('[{"a": "]}', [{"a": "]}"}]),
    ],
)
def test_what_is_there_is_read(torn, value):
    assert parse_truncated(torn.encode()) == value


@pytest.mark.parametrize("broken", ["", "x", "{]", '{"a": 1}}', '{"a" 1', "[" * 500, '{"a": "b"} c'])
def test_what_is_broken_otherwise_is_not_guessed_at(broken):
    with pytest.raises(LooseJsonError):
        parse_truncated(broken.encode())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(st.text(max_size=3), VALUES, min_size=1, max_size=3), st.data())
def test_any_object_can_be_torn_anywhere(value, data):
    text = json.dumps(value)
    at = data.draw(st.integers(1, len(text) - 1))
    assert isinstance(parse_truncated(text[:at].encode()), dict)


def ev(delta, finish=None):
    return sse_event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


@pytest.mark.req("MD-4")
async def test_a_reply_goes_on_after_a_torn_event(client):
    torn = ev({"content": "two, three"})[:-20] + b"\n\n"
    async with ScriptedModelServer(raw(ev({"content": "one "}), torn, ev({"content": "!"}), ev({}, "stop"))) as server:
        assert words(await collect(client(server))).startswith("one two")


@pytest.mark.req("MD-4")
async def test_no_call_is_made_of_a_torn_one(client):
    """Its arguments are no JSON: whoever runs calls sees that, and the model is told."""
    call = {
        "tool_calls": [{"index": 0, "id": "c", "function": {"name": "bash", "arguments": '{"command": "rm -r build"}'}}]
    }
    whole = ev(call)
    torn = whole[: whole.index(b"build")] + b"\n\n"
    async with ScriptedModelServer(raw(torn, ev({}, "tool_calls"))) as server:
        [made] = only(await collect(client(server)), CallChunk)
    assert made.arguments == '{"command": "rm -r '


async def test_a_reply_that_ends_with_half_an_event_was_cut(client):
    async with ScriptedModelServer(
        raw(ev({"content": "one "}), b'data: {"choices":[{"delta":{"content":"tw')
    ) as server:
        with pytest.raises(BackendError, match="cut"):
            await collect(client(server))


@pytest.mark.parametrize("framing", ["close", "length"])
async def test_a_reply_that_is_one_document_is_not_mended(client, framing):
    body = json.dumps({"choices": [{"message": {"content": "all of it"}, "finish_reason": "stop"}]}).encode()[:-30]
    async with ScriptedModelServer(raw(body, content_type="application/json").with_framing(framing)) as server:
        with pytest.raises(BackendError):
            await collect(client(server, attempts=1))
