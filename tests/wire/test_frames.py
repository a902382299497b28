"""The messages of the server protocol."""

import json

import jsonschema
import msgspec
import pytest

from ostler.wire import client_frames as c
from ostler.wire import frames_shared as shared
from ostler.wire import server_frames as s
from ostler.wire.frames import FrameError, decode_client_frame, decode_server_frame, encode_frame
from ostler.wire.frames_schema import frames_schema

BASE_FIELDS = {
    "hello": {"clientVersion", "toolManifest", "workspaceRoot"},
    "user.message": {"sessionId", "content"},
    "tool.result": {"sessionId", "toolCallId", "output"},
    "cancel": {"sessionId"},
    "session.created": {"sessionId"},
    "assistant.delta": {"sessionId", "content"},
    "assistant.done": {"sessionId", "metadata"},
    "tool.call": {"sessionId", "toolCallId", "name", "arguments"},
    "error": {"sessionId", "message"},
    "heartbeat": set(),
}


def _by_type():
    frames = {*c.ClientFrame.__args__, *s.ServerFrame.__args__}
    return {frame.__struct_config__.tag: frame for frame in frames}


@pytest.mark.req("SV-2")
@pytest.mark.parametrize("kind", BASE_FIELDS)
def test_base_messages_have_their_names_and_fields(kind):
    """A client that knows only the base protocol finds every message and field under its name."""
    assert set(_by_type()[kind].__struct_encode_fields__) >= BASE_FIELDS[kind]


@pytest.mark.req("SV-2")
def test_types_outside_the_base_protocol_need_a_feature():
    """Every server message is of the base protocol, belongs to a feature, or answers `resume`."""
    additional = {frame for frame in s.ServerFrame.__args__ if frame.__struct_config__.tag not in BASE_FIELDS}
    assert additional == {*s.NEEDED_FEATURE, s.Resync}
    assert set(s.NEEDED_FEATURE.values()) <= set(shared.FEATURES)


@pytest.mark.req("SV-2")
def test_bare_messages_decode():
    """Messages with the base fields alone are complete."""
    tool = {"name": "ls", "description": "List.", "inputSchema": {"type": "object"}}
    data = json.dumps(
        {"type": "hello", "clientVersion": "1", "toolManifest": {"tools": [tool]}, "workspaceRoot": "/w"}
    ).encode()
    hello = decode_client_frame(data)
    assert isinstance(hello, c.Hello)
    assert hello.tool_manifest.tools[0].input_schema == {"type": "object"}
    assert decode_client_frame(b'{"type":"tool.result","sessionId":"s","toolCallId":"c","output":{"a":1}}') == (
        c.ToolResultMessage("c", {"a": 1}, "s")
    )


@pytest.mark.req("SV-2")
def test_an_empty_output_is_written():
    """A base field is on the wire even if its text is empty."""
    assert json.loads(encode_frame(c.ToolResultMessage("c", "", "s")))["output"] == ""


@pytest.mark.req("SV-2")
def test_unknown_types_and_fields_are_ignored():
    assert decode_client_frame(b'{"type":"future","x":1}') is None
    assert decode_server_frame(b'{"type":"future"}') is None
    assert decode_client_frame(b'{"type":"cancel","sessionId":"s","future":[1]}') == c.CancelMessage("s")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'"hello"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"type":1}',
        b'{"type":"tool.result"}',
        b'{"type":"user.message","content":5}',
        b'{"type":"hello","toolManifest":[]}',
        b'{"type":"cancel","turnId":' + b"[" * 100_000,
        b'{"type":"cancel","turnId":"\\ud800","n":1e999}',
        b'{"type":"cancel","turnId":"\\ud800","n":NaN}',
        b'{"type":"cancel","turnId":"\\\\ud800","n":1e999',
        b'{"type":"tool.result","toolCallId":5,"output":"\\udc80"}',
        b'"\\ud800"',
    ],
)
def test_invalid_messages_raise_one_kind_of_error(data):
    with pytest.raises(FrameError):
        decode_client_frame(data)


def test_an_error_with_a_code_of_a_newer_server_is_an_internal_error():
    error = {"type": "error", "sessionId": "s", "message": "no budget", "clientMessageId": "m"}
    expected = s.ErrorMessage("s", "no budget", "internal", client_message_id="m")
    for code in ("budget", 5, None, ["x"]):
        assert decode_server_frame(json.dumps({**error, "code": code})) == expected
    with pytest.raises(FrameError):
        decode_server_frame(json.dumps({**error, "code": "budget", "message": 5}))


def test_a_message_over_the_limit_is_refused_before_it_is_parsed():
    with pytest.raises(FrameError) as caught:
        decode_client_frame(b"x" * 101, limit=100)
    assert caught.value.code == "too_large"


def test_unpaired_surrogates_are_replaced():
    assert json.loads(encode_frame(c.UserMessageFrame("a\ud800b")))["content"] == "a?b"


@pytest.mark.parametrize("escape", [r"\ud800", r"\uDC80", r"\udc80\ud800"])
def test_unpaired_surrogates_of_others_are_replaced_too(escape):
    number = 10**30
    output = f'{{"{escape}":["\\\\ud800 \\ud83d\\ude00",{number}]}}'
    data = f'{{"type":"tool.result","toolCallId":"c","output":{output}}}'
    for text in (data, data.encode()):
        decoded = decode_client_frame(text)
        assert decoded.output == {"?" * escape.count("u"): [r"\ud800 😀", number]}


def test_an_event_is_carried_unchanged():
    raw = b'{"type":"future_event","x":1}'
    frame = s.EventMessage("s", 3, "e", 1.0, msgspec.Raw(raw))
    decoded = decode_server_frame(encode_frame(frame))
    assert isinstance(decoded, s.EventMessage)
    assert bytes(decoded.event) == raw


@pytest.mark.req("SV-2")
def test_schema_accepts_what_is_sent_and_refuses_what_is_not():
    """The published schema is valid and describes the messages."""
    schema = frames_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    call = s.ToolCallMessage("s", "c", "ls", {"path": "."})
    for frame in (c.Hello("1", shared.ToolManifest(()), "/w"), call, s.Heartbeat("s")):
        validator.validate(json.loads(encode_frame(frame)))
    assert not validator.is_valid({"type": "tool.call", "sessionId": "s"})


def test_what_is_left_out_of_a_message_of_the_server_is_empty():
    for kind in s.ServerFrame.__args__:
        for field in msgspec.structs.fields(kind):
            default = field.default
            assert default is msgspec.NODEFAULT or not default or isinstance(default, msgspec.Struct), (kind, field)
