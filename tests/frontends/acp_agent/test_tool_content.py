"""Titles and locations of tool calls, also with invalid arguments."""

import pytest

from ostler.core.display import Display, DisplayDiff
from ostler.core.tools import ToolCall
from ostler.frontends.acp_agent.tool_content import locations_of, title_of
from ostler.text.diff import unified_diff


@pytest.mark.req("AC-6")
@pytest.mark.parametrize(
    ("line", "expected"), [(7, 7), (0, None), (-5, None), (2**32, None), (True, None), ("7", None)]
)
def test_invalid_line_number_is_omitted(line, expected):
    (location,) = locations_of({"path": "a.txt", "line": line}, Display(), "/w")
    assert (location.path, location.line) == ("/w/a.txt", expected)


@pytest.mark.req("AC-6")
@pytest.mark.parametrize("at", [0, 1, 30, 49])
def test_location_of_a_change_is_its_first_changed_line(at):
    before = [f"line {number}\n" for number in range(50)]
    after = [*before[:at], "another\n", *before[at + 1 :]]
    diff = unified_diff("".join(before), "".join(after), "a.txt").text
    (location,) = locations_of({"path": "a.txt"}, Display("", (DisplayDiff("a.txt", diff, "updated", 1, 1),)), "/w")
    assert location.line == at + 1


@pytest.mark.req("AC-6")
def test_title_escapes_invisible_characters():
    assert (
        title_of(ToolCall("c", "bash", {"command": "ls #\x1b]0;evil\x07\n\u202ex"}))
        == "ls #\\x1b]0;evil\\x07 ⏎ <U+202E>x"
    )
