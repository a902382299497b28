"""Rendered tool calls."""

import pytest

from ostler.core.display import Display, DisplayText
from ostler.core.events import ToolCalled, ToolFinished, ToolStarted
from ostler.core.tools import ToolCall, ToolResult
from ostler.rendering.blocks import render_call, render_result
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
        ("SysBuiltIn.read_file", "SysBuiltIn.read_file", '⏺ SysBuiltIn.read_file {"path": "a"}'),
        ("cat", "cat\n\x1b[31m" + "x" * 200, f'⏺ read (cat {"x" * 76}) {{"path": "a"}}'),
        ("read", "read", '⏺ read {"path": "a"}'),
    ],
    ids=str,
)
def test_call_by_an_alias_shows_both_names_or_the_qualified_one(called, title, line):
    resolved = ToolCall("c1", "read", {"path": "a"})
    lines = rendered(
        ToolCalled(ToolCall("c1", called, {"path": "a"})),
        ToolCalled(resolved, title, "read"),
        ToolStarted("c1", "read", False),
        ToolFinished(ToolResult("c1", "ok", "x", Display("1 of 1 lines"))),
    )
    assert lines == [line, "  ⎿ 1 of 1 lines"]


@pytest.mark.req("CL-5", "PM-5")
@pytest.mark.parametrize(
    ("tool", "arguments", "line"),
    [
        ("edit", {"path": "a.py", "old": "x", "new": "y"}, "⏺ edit a.py"),
        ("write", {"path": "a.py", "content": "x\n" * 300}, "⏺ write a.py"),
        ("patch", {"patch": "*** Begin Patch"}, "⏺ patch"),
        ("bash", {"command": "make\n  test", "reason": "why"}, "⏺ bash make ⏎ test"),
        ("bash", {"command": "touch x\u202ecod.exe\u200b"}, "⏺ bash touch x<U+202E>cod.exe<U+200B>"),
        ("bash", {"command": "rm 'a  b'\r\n\n\tls\ta\x1b[2K\n"}, r"⏺ bash rm 'a  b' ⏎ ls\ta\x1b[2K"),
        ("task", {"prompt": "x\u202ey"}, '⏺ task {"prompt": "x<U+202E>y"}'),
        ("bash", {"action": "list"}, '⏺ bash {"action": "list"}'),
        ("write", {"path": 5}, '⏺ write {"path": 5}'),
        ("glob", {"": "*.py"}, '⏺ glob {"": "*.py"}'),
    ],
    ids=str,
)
def test_edits_and_commands_are_shown_without_raw_json(tool, arguments, line):
    call = ToolCall("c1", tool, arguments)
    assert render_call(call, Styler(enabled=False)) == line
    assert "{" in render_call(call, Styler(enabled=False), full=True)


@pytest.mark.req("CL-5")
def test_long_lines_of_a_result_are_wrapped_between_words_with_their_indent():
    shown = Display("unknown tool; available: bash, git_diff, skill", (DisplayText("error: could not open the file"),))
    block = CallBlock("c", True, ToolCall("c", "x", {}), "failed", display=shown)
    rows = list(render_result(block, Styler(False, columns=lambda: 24)))
    assert rows == [
        *("  ⎿ unknown tool;", "    available: bash,", "    git_diff, skill"),
        *("    error: could not", "    open the file"),
    ]
    assert len(list(render_result(block, Styler(False)))) == 2
