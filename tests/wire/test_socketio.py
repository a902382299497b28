"""Packets of Socket.IO: what is read, and that no text of a server makes the reader fail."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.wire.socketio import SocketIoPacket, event_packet, read_packet

pytestmark = pytest.mark.req("AZ-7")


@pytest.mark.parametrize(
    ("text", "packet"),
    [
        ('0{"pingInterval":25000}', SocketIoPacket("open", {"pingInterval": 25000})),
        ("2", SocketIoPacket("ping")),
        ('40/ws,{"sid":"x"}', SocketIoPacket("connected", {"sid": "x"})),
        ('44/ws,{"message":"no"}', SocketIoPacket("refused", {"message": "no"})),
        ("41/ws", SocketIoPacket("disconnected")),
        ('42/ws,["e",{"a":1}]', SocketIoPacket("event", {"a": 1}, "e")),
        ('42/ws,12["e"]', SocketIoPacket("event", None, "e", 12)),
        ('43/ws,7[{"ok":true}]', SocketIoPacket("ack", {"ok": True}, "", 7)),
        ('42/other,["e",1]', SocketIoPacket("other")),
        ('42["e",1]', SocketIoPacket("other")),
        ("42/ws,[]", SocketIoPacket("other")),
        ("43/ws,[1]", SocketIoPacket("other")),
        ("42/ws,99999999999999999999[1]", SocketIoPacket("other")),
        ("42/ws," + "[" * 100_000, SocketIoPacket("other")),
        ("", SocketIoPacket("other")),
    ],
)
def test_packet_is_read(text, packet):
    assert read_packet(text, "/ws") == packet


@given(st.text(), st.sampled_from(("", "0", "40/ws,", "42/ws,", "43/ws,1", "44/ws,")))
def test_any_text_is_read_without_an_error(text, prefix):
    assert read_packet(prefix + text, "/ws").kind


def test_event_with_a_lone_surrogate_can_be_sent():
    assert event_packet("/ws", "e", {"a": "\ud800"}, 3).encode() == b'42/ws,3["e", {"a": "\\ud800"}]'
