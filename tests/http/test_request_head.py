"""Request heads: readable by h11, and without characters that HTTP forbids."""

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.http.client import request_head

HEADERS = [("host", "a.example:8080"), ("authorization", "Bearer sk-1 2"), ("x-empty", ""), ("content-length", "0")]


@pytest.mark.req("MD-3")
def test_server_reads_the_same_values():
    server = h11.Connection(h11.SERVER)
    server.receive_data(request_head("POST", "/v1/chat?x=1", HEADERS))
    event = server.next_event()
    assert (event.method, event.target) == (b"POST", b"/v1/chat?x=1")
    assert [(name.decode(), value.decode()) for name, value in event.headers] == HEADERS


@pytest.mark.req("MD-3")
@pytest.mark.parametrize(
    ("method", "target", "header"),
    [
        ("POST", "/", ("x", "1\r\ny: 2")),
        ("POST", "/", ("x", "1\ny: 2")),
        ("POST", "/", ("x", "1\x00")),
        ("POST", "/", ("x", "1\x7f")),
        ("POST", "/", ("x", " 1")),
        ("POST", "/", ("x", "1 ")),
        ("POST", "/", ("x", "ключ")),
        ("POST", "/", ("x\r\ny", "1")),
        ("POST", "/", ("", "1")),
        ("POST", "/", ("x y", "1")),
        ("POST", "/ HTTP/1.1\r\nx: 1", ("x", "1")),
        ("POST", "/a b", ("x", "1")),
        ("POST", "", ("x", "1")),
        ("PO ST", "/", ("x", "1")),
    ],
)
def test_forbidden_characters_are_rejected_and_not_shown(method, target, header):
    with pytest.raises(ValueError, match=r"^a character that HTTP forbids$"):
        request_head(method, target, [("host", "a"), header])


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_head_has_the_expected_lines_or_is_rejected(target, name, value):
    try:
        head = request_head("GET", target, [(name, value)])
    except ValueError:
        return
    assert len(head.split(b"\r\n")) == 4
    assert head.count(b"\n") == head.count(b"\r") == 3
