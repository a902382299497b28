"""The history in the embedded model's words: its own steps as it wrote them, and after each result what it means.

A model this small forgets what it was told at the beginning, so each result ends with a word on what to do next. The
word depends on the call and its result alone: the same history is always the same text.
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
    """Every message as the model shall see it."""
    told: list[RequestMessage] = []
    calls: dict[str, ToolCall] = {}
    complaint = ""
    for said in history:
        if isinstance(said, AssistantMessage):
            calls = {call.id: call for call in said.message.calls}
            told.append(
                AssistantMessage(msgspec.structs.replace(said.message, parts=(TextContent(to_step(said.message)),)))
            )
        elif isinstance(said, ToolResultsMessage):
            results = [(one, calls.get(one.call_id)) for one in said.results]
            told.append(
                UserMessage((TextContent("\n\n".join(_render_result(one, call, complaint) for one, call in results)),))
            )
            for one, call in results:
                complaint = _error_excerpt(one) if call and call.tool == "bash" else complaint
        else:
            told.append(_to_user_message(said))
    return tuple(told)


def _error_excerpt(result: ToolResult) -> str:
    """What a command failed with, in two lines: the error, and what stands before it."""
    lines = (
        [line.strip() for line in result.for_model.splitlines() if line.strip()] if result.status == "failed" else []
    )
    wrong = [at for at, line in enumerate(lines) if _ERROR.search(line)]
    return (
        truncate_middle("\n".join(lines[max(wrong[0] - 1, 0) : wrong[0] + 1]), MAX_ERROR_LENGTH).text if wrong else ""
    )


def _to_user_message(message: UserMessage | SystemMessage) -> UserMessage:
    if isinstance(message, SystemMessage):
        return UserMessage((TextContent(message.text),))
    return UserMessage(
        tuple(TextContent("[a picture]") if isinstance(block, ImageContent) else block for block in message.blocks)
    )


def to_step(message: Message) -> str:
    """As it wrote it itself, so that what it computed for those words is still in its cache."""
    steps: list[dict[str, Any]] = [{"say": message.text, "tool": call.tool, **call.arguments} for call in message.calls]
    return "\n".join(map(encode_step, steps or [{"say": message.text, "tool": DONE}]))


def encode_step(step: Mapping[str, Any]) -> str:
    """JSON with blanks, as the model writes it."""
    return json.dumps(step, ensure_ascii=False, default=str)


def _render_result(result: ToolResult, call: ToolCall | None, error_excerpt: str) -> str:
    told = truncate_middle(result.for_model, MAX_RESULT_LENGTH).text
    if call is None:
        return told
    hint = _NEXT_HINTS.get((call.tool, result.status), "")
    if call.tool == "read" and result.status == "ok":
        told = "```\n" + _LINE_NUMBER.sub("", told) + "\n```"
        is_test = _TEST_PATH.search(str(call.arguments.get("path", "")))
        hint = (
            _test_file_hint(told)
            if is_test
            else _FAILING_TEST_HINT.format(complaint=error_excerpt)
            if error_excerpt
            else ""
        )
    return f"{told}\n\n{hint}" if hint else told


def _test_file_hint(test: str) -> str:
    """Where the code is that a test of Python's is about, as far as its imports tell."""
    modules = [name for name in _IMPORT.findall(test) if name.split(".")[0] not in (*sys.stdlib_module_names, "pytest")]
    return (
        f"{_TEST_HINT}: {', '.join(name.replace('.', '/') + '.py' for name in modules[:3])}."
        if modules
        else f"{_TEST_HINT}."
    )


def may_end(history: Sequence[RequestMessage]) -> bool:
    """Whether a turn may be over: while a command fails there is more to do, for some steps at least."""
    failing = 0
    calls: dict[str, ToolCall] = {}
    for said in history:
        if isinstance(said, UserMessage):
            failing = 0
        elif isinstance(said, AssistantMessage):
            calls = {call.id: call for call in said.message.calls}
            failing += failing > 0
        elif isinstance(said, ToolResultsMessage):
            ran = [one.status for one in said.results if one.call_id in calls and calls[one.call_id].tool == "bash"]
            failing = 0 if "ok" in ran else failing or int("failed" in ran)
    return not 0 < failing <= MAX_FAILING_STEPS


def is_stuck(history: Sequence[RequestMessage]) -> bool:
    """Whether the last step came to nothing: the likeliest next one would be the same again."""
    if not history or not isinstance(history[-1], ToolResultsMessage):
        return False
    before = history[-2] if len(history) > 1 else None
    commands = (
        [call.id for call in before.message.calls if call.tool == "bash"]
        if isinstance(before, AssistantMessage)
        else []
    )
    return any(one.status == "failed" and one.call_id not in commands for one in history[-1].results)
