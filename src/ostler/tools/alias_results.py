"""Formats results as the tool names of other agents expect them."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ostler.core.tool_aliases import normalize_name
from ostler.core.tools import ToolCall, ToolResult

_NAMESPACE = "SysBuiltIn."


def format_result(result: ToolResult, call: ToolCall) -> ToolResult:
    """Return the result with `for_model` in the format of the tool that was called."""
    if result.status != "ok" or not call.tool.startswith(_NAMESPACE) or not isinstance(result.data, dict):
        return result
    formatter = _FORMATTERS.get(normalize_name(call.tool.removeprefix(_NAMESPACE)))
    return msgspec.structs.replace(result, for_model=formatter(result, call.arguments)) if formatter else result


def _content(result: ToolResult, arguments: Mapping[str, Any]) -> str:
    return str(result.data.get("content", result.for_model))


def _write_summary(result: ToolResult, arguments: Mapping[str, Any]) -> str:
    mode = arguments.get("mode", "overwrite")
    return f"wrote {len(str(arguments.get('content', '')).encode('utf-8', 'replace'))} bytes ({mode})"


def _action(result: ToolResult, arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("action", "replace"))


def _counts(result: ToolResult, arguments: Mapping[str, Any]) -> str:
    return json.dumps(result.data["stats"])


_FORMATTERS: Mapping[str, Callable[[ToolResult, Mapping[str, Any]], str]] = {
    "readfile": _content,
    "writefile": _write_summary,
    "edittext": _action,
    "todowrite": _counts,
}
