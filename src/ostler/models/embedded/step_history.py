"""Renders the history as JSON steps with a hint after each result.

A model this small forgets its instructions, so each result ends with a hint on what to do next. The hint depends
only on earlier results, so that the same history always gives the same text.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ostler.core.message import Message
from ostler.core.prompt import ImageContent, TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.models.model_types import AssistantMessage, RequestMessage, SystemMessage, ToolResultsMessage, UserMessage
from ostler.text.truncate import truncate_middle

DONE = "done"
MAX_RESULT_LENGTH = 4000
MAX_ERROR_LENGTH = 300
MAX_FAILING_STEPS = 8

_NEXT_HINTS = {
    ("bash", "ok"): "That succeeded. If nothing else is to be done, use `done`.",
    ("bash", "failed"): "That failed. Next, read the code that is wrong.",
    ("edit", "ok"): "The file is changed. Next, run the test to see whether that was right.",
    (
        "edit",
        "failed",
    ): "Nothing was changed: `old` must be copied exactly from the file, and `new` must differ from it.",
    ("write", "ok"): "The file is written. Next, run it or its test.",
}
_FAILING_TEST_HINT = (
    "But the test is right and fails:\n{complaint}\nSo a line of this code is wrong. Say which, and edit it."
)
_TEST_HINT = "This is a test: it is right and stays as it is. Next, read the code that it tests"
_TEST_PATH = re.compile(r"(^|/)(tests?[_.][^/]*|[^/]*[_.]tests?\.[^/]*)$")
_IMPORT = re.compile(r"^(?:from|import) ([\w.]+)", re.MULTILINE)
_ERROR = re.compile(r"(Error|Exception)\b|!=|panicked|[Ee]xpected")
_LINE_NUMBER = re.compile(r"^ *\d+\t", re.MULTILINE)


def render_history(history: Sequence[RequestMessage]) -> tuple[RequestMessage, ...]:
    """Return the messages as sent to the model."""
    messages: list[RequestMessage] = []
    calls: dict[str, ToolCall] = {}
    error_excerpt = ""
    for entry in history:
        if isinstance(entry, AssistantMessage):
            calls = {call.id: call for call in entry.message.calls}
            messages.append(
                AssistantMessage(msgspec.structs.replace(entry.message, parts=(TextContent(to_step(entry.message)),)))
            )
        elif isinstance(entry, ToolResultsMessage):
            results = [(result, calls.get(result.call_id)) for result in entry.results]
            messages.append(
                UserMessage(
                    (TextContent("\n\n".join(_render_result(result, call, error_excerpt) for result, call in results)),)
                )
            )
            for result, call in results:
                error_excerpt = _error_excerpt(result) if call and call.tool == "bash" else error_excerpt
        else:
            messages.append(_to_user_message(entry))
    return tuple(messages)


def _error_excerpt(result: ToolResult) -> str:
    """Return the first error line of a failed command and the line before it."""
    lines = (
        [line.strip() for line in result.for_model.splitlines() if line.strip()] if result.status == "failed" else []
    )
    error_lines = [index for index, line in enumerate(lines) if _ERROR.search(line)]
    return (
        truncate_middle("\n".join(lines[max(error_lines[0] - 1, 0) : error_lines[0] + 1]), MAX_ERROR_LENGTH).text
        if error_lines
        else ""
    )


def _to_user_message(message: UserMessage | SystemMessage) -> UserMessage:
    if isinstance(message, SystemMessage):
        return UserMessage((TextContent(message.text),))
    return UserMessage(
        tuple(TextContent("[a picture]") if isinstance(block, ImageContent) else block for block in message.blocks)
    )


def to_step(message: Message) -> str:
    """Return the message exactly as the model wrote it, so that the prompt cache stays valid."""
    steps: list[dict[str, Any]] = [{"say": message.text, "tool": call.tool, **call.arguments} for call in message.calls]
    return "\n".join(map(encode_step, steps or [{"say": message.text, "tool": DONE}]))


def encode_step(step: Mapping[str, Any]) -> str:
    """Encode a step as JSON with spaces, as the model writes it."""
    return json.dumps(step, ensure_ascii=False, default=str)


def _render_result(result: ToolResult, call: ToolCall | None, error_excerpt: str) -> str:
    text = truncate_middle(result.for_model, MAX_RESULT_LENGTH).text
    if call is None:
        return text
    hint = _NEXT_HINTS.get((call.tool, result.status), "")
    if call.tool == "read" and result.status == "ok":
        text = "```\n" + _LINE_NUMBER.sub("", text) + "\n```"
        is_test = _TEST_PATH.search(str(call.arguments.get("path", "")))
        hint = (
            _test_file_hint(text)
            if is_test
            else _FAILING_TEST_HINT.format(complaint=error_excerpt)
            if error_excerpt
            else ""
        )
    return f"{text}\n\n{hint}" if hint else text


def _test_file_hint(test: str) -> str:
    """Return the hint for a test file, with the modules that a Python test imports."""
    modules = [name for name in _IMPORT.findall(test) if name.split(".")[0] not in (*sys.stdlib_module_names, "pytest")]
    return (
        f"{_TEST_HINT}: {', '.join(name.replace('.', '/') + '.py' for name in modules[:3])}."
        if modules
        else f"{_TEST_HINT}."
    )


def may_end(history: Sequence[RequestMessage]) -> bool:
    """Whether the turn may end: not while a command fails, for at most `MAX_FAILING_STEPS` steps."""
    failing_steps = 0
    calls: dict[str, ToolCall] = {}
    for entry in history:
        if isinstance(entry, UserMessage):
            failing_steps = 0
        elif isinstance(entry, AssistantMessage):
            calls = {call.id: call for call in entry.message.calls}
            failing_steps += failing_steps > 0
        elif isinstance(entry, ToolResultsMessage):
            statuses = [
                result.status
                for result in entry.results
                if result.call_id in calls and calls[result.call_id].tool == "bash"
            ]
            failing_steps = 0 if "ok" in statuses else failing_steps or int("failed" in statuses)
    return not 0 < failing_steps <= MAX_FAILING_STEPS


def is_stuck(history: Sequence[RequestMessage]) -> bool:
    """Whether the last step failed, except a command: the model would probably repeat it."""
    if not history or not isinstance(history[-1], ToolResultsMessage):
        return False
    previous = history[-2] if len(history) > 1 else None
    commands = (
        [call.id for call in previous.message.calls if call.tool == "bash"]
        if isinstance(previous, AssistantMessage)
        else []
    )
    return any(result.status == "failed" and result.call_id not in commands for result in history[-1].results)
