"""Calls as lines."""

import pytest

from ostler.drawing.calls import CallLines
from ostler.drawing.paint import Paint
from ostler.session.transcript import CallBlock, Transcript
from ostler.vocabulary.display import Display
from ostler.vocabulary.events import ToolCalled, ToolFinished, ToolStarted
from ostler.vocabulary.tools import ToolCall, ToolResult


def drawn(*events):
    transcript, lines = Transcript(), CallLines(Paint(False))
    return [
        line for event in events if isinstance(block := transcript.take(event), CallBlock) for line in lines.take(block)
    ]


@pytest.mark.req("CL-5")
@pytest.mark.parametrize(
    ("called", "title", "line"),
    [
        ("read", "", '⏺ read {"path": "a"}'),
        ("SysBuiltIn.read_file", "SysBuiltIn.read_file", '⏺ read (SysBuiltIn.read_file) {"path": "a"}'),
        ("cat", "cat\n\x1b[31m" + "x" * 200, f'⏺ read (cat {"x" * 76}) {{"path": "a"}}'),
        ("read", "read", '⏺ read {"path": "a"}'),
    ],
    ids=str,
)
def test_a_call_by_another_name_shows_both(called, title, line):
    meant = ToolCall("c1", "read", {"path": "a"})
    lines = drawn(
        ToolCalled(ToolCall("c1", called, {"path": "a"})),
        ToolCalled(meant, title, "read"),
        ToolStarted("c1", "read", False),
        ToolFinished(ToolResult("c1", "ok", "x", Display("1 of 1 lines"))),
    )
    assert lines == [line, "  ⎿ 1 of 1 lines"]
