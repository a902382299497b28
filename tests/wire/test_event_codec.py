"""Events as JSON: round trips, and unknown types that survive."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stored_examples import STORED
from tests.tiers import examples

from ostler.core import events
from ostler.core.events import EVENT_TYPES, Envelope, UnknownEvent, UsageReported
from ostler.core.message import Message
from ostler.core.prompt import TextContent
from ostler.wire.event_codec import EventDecodeError, decode_envelope, decode_event, encode_envelope, encode_event

EXAMPLES = [decode_event(line) for line in (STORED / "events.jsonl").read_bytes().splitlines()]


@pytest.mark.parametrize("kind", EVENT_TYPES, ids=lambda kind: kind.__name__)
@pytest.mark.invariant("E1")
def test_every_event_has_a_docstring_and_persistence(kind):
    assert kind.__doc__
    assert kind.persisted in (True, False)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@examples(300)
@given(st.sampled_from(EXAMPLES), st.text(), json_values)
def test_round_trip(event, text, value):
    """Any text and JSON in an event survives a round trip."""
    varied = event
    for field in msgspec.structs.fields(event):
        if field.type is str:
            varied = msgspec.structs.replace(varied, **{field.name: text})
    if isinstance(varied, events.ToolFinished):
        varied = events.ToolFinished(msgspec.structs.replace(varied.result, data=value, for_model=text))
    if isinstance(varied, events.ToolCalled):
        varied = events.ToolCalled(msgspec.structs.replace(varied.call, arguments={"a": value, text: text}))
    assert decode_event(encode_event(varied)) == varied
    envelope = Envelope(3, 1.5, varied)
    assert decode_envelope(encode_envelope(envelope)) == envelope


@given(st.dictionaries(st.text().filter(lambda key: key != "type"), json_values))
@pytest.mark.invariant("E2")
def test_unknown_type_survives_a_round_trip(data):
    wire = json.dumps({"type": "from_the_future", **data}).encode()
    event = decode_event(wire)
    assert event == UnknownEvent("from_the_future", data)
    assert event.persisted
    assert json.loads(encode_event(event)) == json.loads(wire)


def test_unknown_fields_are_ignored():
    assert decode_event(b'{"type":"renamed","title":"x","colour":"red"}') == events.Renamed("x")


@pytest.mark.parametrize(
    "wire",
    [
        b"",
        b"{",
        b"[]",
        b"1",
        b'{"type":7}',
        b'{"title":"x"}',
        b'{"type":"renamed"}',
        b'{"type":"renamed","title":1}',
        b"[" * 100_000,
    ],
)
def test_invalid_events_are_rejected(wire):
    with pytest.raises(EventDecodeError):
        decode_event(wire)
    with pytest.raises(EventDecodeError):
        decode_envelope(wire)


@pytest.mark.req("SE-1", "MD-6")
def test_continues_survives_and_defaults_to_false():
    done = events.MessageDone(Message("m1-1", (TextContent("more"),), continues=True))
    assert decode_event(encode_event(done)) == done
    complete = decode_event(b'{"type":"message_done","message":{"id":"m1","parts":[]}}')
    assert isinstance(complete, events.MessageDone) and not complete.message.continues


@pytest.mark.req("SV-6")
@pytest.mark.parametrize("value", [10**30, 2**63, -1])
def test_implausible_count_is_not_stored(value):
    text = f'{{"type": "usage_reported", "model": "m", "tokens_in": {value}, "tokens_out": 5, "cost": {value}}}'
    assert decode_event(text.encode()) == UsageReported("m", 0, 5, cost=0)
    assert UsageReported("m", context_used=value) == UsageReported("m")
