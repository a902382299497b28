"""Converts an agent's tool calls into our events and display blocks."""

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, get_args

import msgspec

from ostler.core.display import Display, DisplayBlock, DisplayDiff, DisplayText
from ostler.core.events import ToolCalled
from ostler.core.tools import ToolCall, ToolKind, ToolResult
from ostler.wire.acp import ToolCallContent, ToolCallFields, content_text, text_of

TOOL_KINDS = get_args(ToolKind)
MAX_TEXT_LENGTH = 50_000
PREVIEW_LINES = 4_000  # high, because approval requests show the complete change


def kind_of(call: ToolCallFields) -> ToolKind:
    """Return the call's kind, or `other` if it is unknown."""
    return call.kind if call.kind in TOOL_KINDS else "other"  # type: ignore[return-value]  # narrowed by the test


def paths_of(call: ToolCallFields) -> tuple[str, ...]:
    """Return the call's locations and the files it would change."""
    locations = [location.path for location in call.locations or ()]
    return tuple(dict.fromkeys(path for path in (*locations, *edited_paths(call)) if path))


def edited_paths(call: ToolCallFields) -> tuple[str, ...]:
    """Return the files for which the call contains a diff."""
    return tuple(item.path for item in call.content or () if item.type == "diff" and item.path)


def to_tool_called(call: ToolCallFields, cwd: str) -> ToolCalled:
    """Convert the call into an event, which is emitted again when more is known."""
    kind = kind_of(call)
    arguments = call.raw_input if isinstance(call.raw_input, dict) else {}
    tool_call = ToolCall(call.tool_call_id, call.name or kind, arguments)
    return ToolCalled(tool_call, call.title or "", kind, tuple(display_path(path, cwd) for path in paths_of(call)))


def to_tool_result(
    call: ToolCallFields, cwd: str, terminal_output: Mapping[str, str] = MappingProxyType({})
) -> ToolResult:
    """Convert a finished call into a result."""
    text = text_of(call) or _as_text(call.raw_output)
    status = "ok" if call.status == "completed" else "failed"
    display = make_display(call, cwd, terminal_output)
    return ToolResult(call.tool_call_id, status, text[:MAX_TEXT_LENGTH], display)  # type: ignore[arg-type]


def make_display(call: ToolCallFields, cwd: str, terminal_output: Mapping[str, str] = MappingProxyType({})) -> Display:
    """Return the title and content of a call; `terminal_output` has the output of its terminals by id."""
    blocks = [block for item in call.content or () if (block := _to_display_block(item, cwd, terminal_output))]
    if not blocks and call.raw_output is not None:
        blocks = [DisplayText(_as_text(call.raw_output)[:MAX_TEXT_LENGTH], "output")]
    return Display(call.title or call.tool_call_id, tuple(blocks))


def display_path(path: str, cwd: str) -> str:
    """Return the path relative to the workspace if it is inside, else unchanged."""
    return os.path.relpath(path, cwd) if path.startswith(cwd.rstrip("/") + "/") else path


def _to_display_block(item: ToolCallContent, cwd: str, terminal_output: Mapping[str, str]) -> DisplayBlock | None:
    if item.type == "diff" and item.path:
        return _to_display_diff(item.path, item.old_text, item.new_text or "", cwd)
    if item.type == "terminal":
        output = terminal_output.get(item.terminal_id or "")
        return DisplayText(output[-MAX_TEXT_LENGTH:], "output") if output else None
    if item.content:
        text = content_text(item.content)
        return DisplayText(text[:MAX_TEXT_LENGTH], "markdown") if text else None
    return DisplayText(f"[{item.type}]") if item.type else None


def _to_display_diff(path: str, before: str | None, after: str, cwd: str) -> DisplayDiff:
    from ostler.text.diff import unified_diff  # imported only when there is a diff

    name = display_path(path, cwd)
    diff = unified_diff(before or "", after, name, max_lines=PREVIEW_LINES)
    operation = "created" if before is None else "updated"
    return DisplayDiff(name, diff.text, operation, diff.additions, diff.deletions, diff.truncated)  # type: ignore[arg-type]


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
