"""Rendered tool calls."""

import pytest

from ostler.core.display import Display
from ostler.core.events import ToolCalled, ToolFinished, ToolStarted
from ostler.core.tools import ToolCall, ToolResult
from ostler.rendering.style import Styler
from ostler.rendering.tool_calls import ToolCallRenderer
from ostler.session.transcript import CallBlock, Transcript


def rendered(*events):
    transcript, renderer = Transcript(), ToolCallRenderer(Styler(False))
    return [
        line
        for event in events
        if isinstance(block := transcript.apply(event), CallBlock)
        for line in renderer.render(block)
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
def test_call_by_an_alias_shows_both_names(called, title, line):
    resolved = ToolCall("c1", "read", {"path": "a"})
    lines = rendered(
        ToolCalled(ToolCall("c1", called, {"path": "a"})),
        ToolCalled(resolved, title, "read"),
        ToolStarted("c1", "read", False),
        ToolFinished(ToolResult("c1", "ok", "x", Display("1 of 1 lines"))),
    )
    assert lines == [line, "  ⎿ 1 of 1 lines"]
