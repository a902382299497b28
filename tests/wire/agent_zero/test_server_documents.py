"""The log and the error bodies of a server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.wire.agent_zero.server_documents import error_text, read_log


@pytest.mark.req("AZ-1")
def test_log_items_are_read_in_the_order_of_their_numbers():
    items = [
        {"no": 2, "type": "response", "content": "hi", "kvps": None},
        {"no": 0, "type": "agent", "heading": "h", "kvps": {"reasoning": "first", "thoughts": ["a", 1, "b"]}},
        {"type": "no number"},
        {"no": True, "type": "info", "content": "not a number"},
        "not an item",
    ]
    log = read_log({"log": {"guid": "g", "progress": "busy", "items": items}})
    assert log.guid == "g"
    assert [(item.no, item.type, item.content, item.thoughts) for item in log.items] == [
        (0, "agent", "", "first\na\nb"),
        (2, "response", "hi", ""),
    ]


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.sampled_from(("log", "items", "no", "type", "kvps", "guid")), x),
    )
)
def test_arbitrary_log_never_raises(value):
    read_log(value)


@pytest.mark.req("AZ-6")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"error": "Context not found"}', "Context not found"),
        ('{"error": "he said "no" to\nme"}', 'he said "no" to me'),
        ('{"error": {"message": "deep"}}', "deep"),
        ("API key required", "API key required"),
        ("<!doctype html><title>405 Method Not Allowed</title><p>x", "405 Method Not Allowed"),
        ("<html><script>evil()</script><body>Oops <b>now</b></body></html>", "Oops now"),
        ("<title>404 Not Found</title><h1>Not Found</h1>", "404 Not Found"),
        ("  <p>Bad <b>gateway</b></p>", "Bad gateway"),
        ('"text"', "text"),
        ('Error: boom\n\nTraceback (most recent call last):\n  File "/a0/x.py", line 5', "Error: boom"),
        ('Traceback (most recent call last):\n  File "/a0/x.py", line 5\n    f()\nKeyError: 7\n', "KeyError: 7"),
        ("", ""),
        ("x" * 1000, "x" * 400),
    ],
)
def test_error_bodies_are_read_leniently(body, expected):
    assert error_text(body) == expected


@pytest.mark.req("AZ-6", "AZ-9")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("part", ["<title>", "<title ", "<script ", "<style>", "<"])
def test_page_of_repeated_beginnings_is_read_in_linear_time(part):
    assert len(error_text(part * 300_000, "text/html")) <= 400


@pytest.mark.req("AZ-6")
def test_content_type_tells_that_an_error_body_is_html():
    assert error_text("Bad <b>gateway</b>", "text/html; charset=utf-8") == "Bad gateway"
    assert error_text("Bad <b>gateway</b>", "text/plain") == "Bad <b>gateway</b>"
    assert error_text('{"error": "x"}', "text/html") == "x"
