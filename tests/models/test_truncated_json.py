"""Truncated events: their available part is used, and the reply continues."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_helpers import collect, of_type, text_of
from tests.tiers import examples

from ostler.core.errors import BackendError
from ostler.models.loose_json import LooseJsonError
from ostler.models.model_types import CallChunk
from ostler.models.truncated_json import parse_truncated
from ostler.testing.model_server import ScriptedModelServer, raw, sse_event


@pytest.mark.parametrize(
    ("truncated", "value"),
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
def test_available_part_is_read(truncated, value):
    assert parse_truncated(truncated.encode()) == value


@pytest.mark.parametrize("broken", ["", "x", "{]", '{"a": 1}}', '{"a" 1', "[" * 500, '{"a": "b"} c'])
def test_other_invalid_json_is_rejected(broken):
    with pytest.raises(LooseJsonError):
        parse_truncated(broken.encode())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(("end", "kept"), [("\\\\", "\\"), ("\\\\\\", "\\"), ("\\\\u12", "\\u12"), ("\\u12", "")])
def test_only_an_incomplete_escape_is_removed(end, kept):
    assert parse_truncated(b'{"a": "0' + end.encode()) == {"a": "0" + kept}


@examples(80)
@given(st.dictionaries(st.text(max_size=3), VALUES, min_size=1, max_size=3), st.data())
def test_any_object_can_be_truncated_anywhere(value, data):
    text = json.dumps(value)
    index = data.draw(st.integers(1, len(text) - 1))
    assert isinstance(parse_truncated(text[:index].encode()), dict)


def event(delta, finish=None):
    return sse_event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


@pytest.mark.req("MD-4")
async def test_reply_continues_after_a_truncated_event(client):
    truncated = event({"content": "two, three"})[:-20] + b"\n\n"
    async with ScriptedModelServer(
        raw(event({"content": "one "}), truncated, event({"content": "!"}), event({}, "stop"))
    ) as server:
        assert text_of(await collect(client(server))).startswith("one two")


@pytest.mark.req("MD-4")
async def test_truncated_call_keeps_its_invalid_arguments(client):
    """Its arguments are not valid JSON, so the call does not run and the model gets an error."""
    call = {
        "tool_calls": [{"index": 0, "id": "c", "function": {"name": "bash", "arguments": '{"command": "rm -r build"}'}}]
    }
    complete = event(call)
    truncated = complete[: complete.index(b"build")] + b"\n\n"
    async with ScriptedModelServer(raw(truncated, event({}, "tool_calls"))) as server:
        [truncated_call] = of_type(await collect(client(server)), CallChunk)
    assert truncated_call.arguments == '{"command": "rm -r '


async def test_reply_that_ends_in_an_event_is_incomplete(client):
    async with ScriptedModelServer(
        raw(event({"content": "one "}), b'data: {"choices":[{"delta":{"content":"tw')
    ) as server:
        with pytest.raises(BackendError, match="the reply is incomplete"):
            await collect(client(server))


@pytest.mark.parametrize("framing", ["close", "length"])
async def test_truncated_document_is_not_repaired(client, framing):
    body = json.dumps({"choices": [{"message": {"content": "all of it"}, "finish_reason": "stop"}]}).encode()[:-30]
    async with ScriptedModelServer(raw(body, content_type="application/json").with_framing(framing)) as server:
        with pytest.raises(BackendError):
            await collect(client(server, attempts=1))
