"""What other vocabularies expect to be told: results in their words, for those who called by their names."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ostler.vocabulary.tool_names import fold
from ostler.vocabulary.tools import ToolCall, ToolResult

_NAMESPACE = "SysBuiltIn."


def answered(result: ToolResult, called: ToolCall) -> ToolResult:
    """The result with `for_model` as the called vocabulary has it."""
    if result.status != "ok" or not called.tool.startswith(_NAMESPACE) or not isinstance(result.data, dict):
        return result
    answer = _ANSWERS.get(fold(called.tool.removeprefix(_NAMESPACE)))
    return msgspec.structs.replace(result, for_model=answer(result, called.arguments)) if answer else result


def _content(result: ToolResult, arguments: Mapping[str, Any]) -> str:
    return str(result.data.get("content", result.for_model))


def _wrote(result: ToolResult, arguments: Mapping[str, Any]) -> str:
    mode = arguments.get("mode", "overwrite")
    return f"wrote {len(str(arguments.get('content', '')).encode('utf-8', 'replace'))} bytes ({mode})"


def _action(result: ToolResult, arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("action", "replace"))


def _counts(result: ToolResult, arguments: Mapping[str, Any]) -> str:
    return json.dumps(result.data["stats"])


_ANSWERS: Mapping[str, Callable[[ToolResult, Mapping[str, Any]], str]] = {
    "readfile": _content,
    "writefile": _wrote,
    "edittext": _action,
    "todowrite": _counts,
}
