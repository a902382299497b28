"""How an agent's tool calls look in our words: kinds, places, and what a person is shown of them."""

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, get_args

import msgspec

from ostler.core.display import Display, DisplayBlock, DisplayDiff, DisplayText
from ostler.core.events import ToolCalled
from ostler.core.tools import ToolCall, ToolKind, ToolResult
from ostler.wire.acp import ContentBlock, ToolCallContent, ToolCallFields

TOOL_KINDS = get_args(ToolKind)
MAX_TEXT_LENGTH = 50_000
PREVIEW_LINES = 4_000  # whoever is asked sees it whole


def kind_of(call: ToolCallFields) -> ToolKind:
    """Its kind; newer ones are `other`."""
    return call.kind if call.kind in TOOL_KINDS else "other"  # type: ignore[return-value]  # narrowed by the test


def paths_of(call: ToolCallFields) -> tuple[str, ...]:
    """The places it is at work, and the files it would change."""
    told = [place.path for place in call.locations or ()]
    return tuple(dict.fromkeys(path for path in (*told, *edited_paths(call)) if path))


def edited_paths(call: ToolCallFields) -> tuple[str, ...]:
    """The files of which it shows a change."""
    return tuple(item.path for item in call.content or () if item.type == "diff" and item.path)


def command_of(call: ToolCallFields) -> str:
    """The command it would run, where the agent puts it beside."""
    command = call.raw_input.get("command") if isinstance(call.raw_input, dict) else None
    if isinstance(command, list):
        import shlex

        return shlex.join(str(word) for word in command)
    return command if isinstance(command, str) else ""


def to_tool_called(call: ToolCallFields, cwd: str) -> ToolCalled:
    """The call as an event; it comes again when more of it is known."""
    kind = kind_of(call)
    arguments = call.raw_input if isinstance(call.raw_input, dict) else {}
    made = ToolCall(call.tool_call_id, call.name or kind, arguments)
    return ToolCalled(made, call.title or "", kind, tuple(display_path(path, cwd) for path in paths_of(call)))


def to_tool_result(
    call: ToolCallFields, cwd: str, terminal_output: Mapping[str, str] = MappingProxyType({})
) -> ToolResult:
    """What came of it."""
    text = text_of(call) or _as_text(call.raw_output)
    status = "ok" if call.status == "completed" else "failed"
    shown = make_display(call, cwd, terminal_output)
    return ToolResult(call.tool_call_id, status, text[:MAX_TEXT_LENGTH], shown)  # type: ignore[arg-type]


def make_display(call: ToolCallFields, cwd: str, terminal_output: Mapping[str, str] = MappingProxyType({})) -> Display:
    """A line, and what it has to show; `printed` is what terminals of ours printed last."""
    blocks = [block for item in call.content or () if (block := _to_display_block(item, cwd, terminal_output))]
    if not blocks and call.raw_output is not None:
        blocks = [DisplayText(_as_text(call.raw_output)[:MAX_TEXT_LENGTH], "output")]
    return Display(call.title or call.tool_call_id, tuple(blocks))


def text_of(call: ToolCallFields) -> str:
    """The words in what it shows."""
    return "\n".join(content_text(item.content) for item in call.content or () if item.content)


def content_text(content: ContentBlock) -> str:
    """A block of content as words; what is no text is named."""
    if content.type == "text":
        return content.text or ""
    if content.type == "resource_link":
        return f"[{content.name or content.uri}]({content.uri})"
    if content.type == "resource" and content.resource:
        return content.resource.text or f"[{content.resource.uri}]"
    return f"[{content.type}]"


def display_path(path: str, cwd: str) -> str:
    """Relative inside the workspace, absolute outside."""
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
    from ostler.text.diff import unified_diff  # only a change pays for it

    shown = display_path(path, cwd)
    diff = unified_diff(before or "", after, shown, max_lines=PREVIEW_LINES)
    operation = "created" if before is None else "updated"
    return DisplayDiff(shown, diff.text, operation, diff.additions, diff.deletions, diff.truncated)  # type: ignore[arg-type]


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
