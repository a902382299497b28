"""Tool requests in the text of an answer."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.wire.agent_zero.tool_requests import split_requests
from ostler.wire.agent_zero.zero_events import ZeroToolRequest

BODY = {"type": "tool_request", "tool_name": "list_files", "command": "list", "reason": "why", "payload": {"path": "."}}
LIST = ZeroToolRequest("list_files", {"path": "."}, "list", "why")


@pytest.mark.req("AZ-3")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps(BODY), [LIST]),
        (json.dumps(BODY, indent=2), [LIST]),
        (f"```json\n{json.dumps(BODY, indent=2)}\n```", [LIST]),
        (f"~~~\n{json.dumps(BODY)}\n~~~\n", [LIST]),
        (f"~~~~json\n{json.dumps(BODY)}\n~~~~", [LIST]),
        (f"`````\n{json.dumps(BODY)}\n`````\n", [LIST]),
        (f"I look first.\n```\n{json.dumps(BODY)}\n```\nThen I go on.", ["I look first.", LIST, "Then I go on."]),
        (f"Two:\n{json.dumps(BODY)} {json.dumps(BODY)}\nand", ["Two:\n", LIST, LIST, "\nand"]),
        (json.dumps({"tool_request": {k: BODY[k] for k in BODY if k != "type"}}), [LIST]),
        (f'{{"a": 1}} {json.dumps(BODY)}', ['{"a": 1} ', LIST]),
    ],
)
def test_request_in_text_is_found(text, expected):
    assert split_requests(text) == expected


@pytest.mark.req("AZ-3")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "a tool_request is a JSON object",
        '{"type": "tool_request", "tool_name": "read_file"}',
        '{"type": "tool_request", "payload": {}}',
        '{"type": "tool_request", "tool_name": 3, "payload": {}}',
        '{"type": "tool_request", "tool_name": "read_file", "payload": "a.txt"}',
        f"The README has the example {json.dumps(BODY)}.",
        f"{json.dumps(BODY)} is an example.",
        f"An example: {json.dumps(BODY, indent=2)}",
        '{"type": "other", "tool_name": "read_file", "payload": {}} tool_request',
        '{"type": "tool_request", "tool_name": "read_file", "payload": {"path": "\\ud800"}}',
        '{"type": "tool_request", "tool_name": "read_file", "payload": {"path": "a"',
    ],
)
def test_text_that_does_not_match_the_schema_is_unchanged(text):
    assert split_requests(text) == [text]


@given(st.text(), st.text())
def test_text_around_a_request_is_kept(before, after):
    parts = split_requests(before + json.dumps(BODY) + after)
    if LIST in parts:
        rest = "".join(part for part in parts if isinstance(part, str))
        assert [c for c in rest if not c.isspace()] == [c for c in before + after if not c.isspace()]


def test_hostile_text_is_searched_in_bounded_time():
    started = time.perf_counter()
    split_requests('{"tool_request": ' * 50_000)
    split_requests('{"a":[' * 100_000 + "tool_request")
    split_requests(f"{' ' * 300_000}x\n{json.dumps(BODY)}")
    assert time.perf_counter() - started < 5
