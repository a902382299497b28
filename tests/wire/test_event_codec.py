"""Events as JSON: golden files, round trips, and unknown types that survive."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.core import events
from ostler.core.display import Display, DisplayChecklist, DisplayDiff, DisplayFields, DisplayText
from ostler.core.errors import Fault
from ostler.core.events import EVENT_TYPES, Envelope, Notice, TurnEnded, UnknownEvent, UsageReported
from ostler.core.message import CallPart, Message, ThoughtPart
from ostler.core.permission import AnswerOption, Decision, Need, Permission, Question, QuestionReply, Rule
from ostler.core.prompt import EmbeddedResource, ImageContent, Prompt, ResourceLink, TextContent
from ostler.core.sessions import OptionChoice, SessionInfo, SessionOption, SlashCommand
from ostler.core.tools import Todo, ToolCall, ToolResult
from ostler.wire.event_codec import EventDecodeError, decode_envelope, decode_event, encode_envelope, encode_event

GOLDEN = Path(__file__).parents[1] / "data" / "events"

PROMPT = Prompt(
    "p1",
    (
        TextContent("hi"),
        ImageContent("image/png", "AA=="),
        EmbeddedResource("file:///a", "x"),
        ResourceLink("https://x.example"),
    ),
)
CALL = ToolCall("c1", "bash", {"command": "ls"}, rules=(Rule("bash", "*", "deny", "plan"),), raw='{"command":"ls"}')
DISPLAY = Display(
    "1 line",
    (
        DisplayText("x", "output"),
        DisplayDiff("a", "-x"),
        DisplayChecklist((("pending", "a"),)),
        DisplayFields((("k", "v"),)),
    ),
)
PERMISSION = Permission(
    "run ls",
    (Need("bash", "ls", "confirm", "deletes", "ls *"),),
    DISPLAY,
    (AnswerOption("once", "Allow once", "allow_once"),),
    "c1",
    "to look",
)
INFO = SessionInfo(
    "engine", (SessionOption("model", "m", choices=(OptionChoice("m"),)),), (SlashCommand("init"),), True, False, "t"
)
RESULT = ToolResult("c1", "failed", "no", DISPLAY, {"n": 1}, (ImageContent("image/png", "AA=="),), Fault("x", "y", "z"))
RULE = Rule("bash", "git *", "allow", "you")

EXAMPLES = (
    events.SessionOpened("s1", "/w", "engine", "0.1", "s0"),
    events.InfoChanged(INFO),
    events.PrefixBuilt("You are.", ({"name": "read"},)),
    events.TurnStarted("t1", PROMPT),
    events.StateChanged("planning"),
    events.TextDelta("m1", "héllo"),
    events.ThoughtDelta("m1", "hm"),
    events.MessageSnapshot("m1", "héllo", "hm"),
    events.PartialReply("m1", "I look", "hm", True),
    events.MessageDone(Message("m1", (ThoughtPart("hm", "seal"), TextContent("hi"), CallPart(CALL)), "qwen", True)),
    events.ToolCalled(CALL, "List", "execute", ("a.py",)),
    events.ToolStarted("c1", "bash"),
    events.ToolProgress("c1", DISPLAY),
    events.ToolFinished(RESULT),
    events.PermissionAsked("a1", PERMISSION, True),
    events.PermissionDecided("a1", PERMISSION, Decision("deny", "person", "once", "deny", "no", "why")),
    events.QuestionAsked(Question("q1", "Which?", {"type": "object"})),
    events.QuestionAnswered("q1", QuestionReply("accept", {"a": 1})),
    events.RuleAdded(RULE, "project"),
    events.RuleRevoked(RULE),
    events.TodosChanged((Todo("1", "look", "in_progress", "high"),)),
    events.UsageReported("qwen", 10, 2, 5, 0.01, 12, 100),
    events.OptionChanged("model", "other"),
    events.Steered(PROMPT),
    events.Delivered("p1"),
    events.Queued(("then that", "!make")),
    Notice("warning", "careful"),
    events.Waiting(5.0, "no data for 5 s"),
    events.Retrying(1, 0.5, "429"),
    events.Reminded("keep a plan"),
    events.Pruned(12, 400),
    events.Compacted("so far", 12),
    events.Reverted(5),
    events.Renamed("title"),
    events.ChildStarted("s2", "c1", "explore", "look"),
    events.ChildProgress("s2", "tool_running", "grep", 10, 0.1),
    events.ChildEnded("s2", "done"),
    events.ToolsChanged(("read", "late")),
    events.ServerStateChanged("files", "failed", "it exited with 1", 3),
    events.RemoteCursor("e1", 7, "d1", "s1"),
    TurnEnded("t1", "limit", Fault("a", "b"), "steps"),
)


@pytest.mark.invariant("E1")
def test_every_event_has_an_example():
    assert [type(example) for example in EXAMPLES] == list(EVENT_TYPES)


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: type(event).__name__)
@pytest.mark.invariant("E3")
def test_golden(event):
    """Events that older versions wrote must be read and written unchanged."""
    path = GOLDEN / f"{event.__struct_config__.tag}.json"
    golden = path.read_bytes().rstrip(b"\n")
    assert decode_event(golden) == event
    assert json.loads(encode_event(event)) == json.loads(golden)


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
