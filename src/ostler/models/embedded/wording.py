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

from ostler.models.words import ModelSaid, Said, SystemSaid, ToolsSaid, UserSaid
from ostler.text.cut import cut_middle
from ostler.vocabulary.message import Message
from ostler.vocabulary.prompt import Image, Text
from ostler.vocabulary.tools import ToolCall, ToolResult

DONE = "done"
LONGEST_RESULT = 4000
LONGEST_COMPLAINT = 300
PERSISTENCE = 8

_NEXT = {
    ("bash", "ok"): "That succeeded. If nothing else is to be done, use `done`.",
    ("bash", "failed"): "That failed. Next, read the code that is wrong.",
    ("edit", "ok"): "The file is changed. Next, run the test to see whether that was right.",
    (
        "edit",
        "failed",
    ): "Nothing was changed: `old` must be copied exactly from the file, and `new` must differ from it.",
    ("write", "ok"): "The file is written. Next, run it or its test.",
}
_WRONG = "But the test is right and fails:\n{complaint}\nSo a line of this code is wrong. Say which, and edit it."
_TEST = "This is a test: it is right and stays as it is. Next, read the code that it tests"
_TESTS = re.compile(r"(^|/)(tests?[_.][^/]*|[^/]*[_.]tests?\.[^/]*)$")
_IMPORT = re.compile(r"^(?:from|import) ([\w.]+)", re.MULTILINE)
_ERROR = re.compile(r"(Error|Exception)\b|!=|panicked|[Ee]xpected")
_LINE_NUMBER = re.compile(r"^ *\d+\t", re.MULTILINE)


def in_its_words(history: Sequence[Said]) -> tuple[Said, ...]:
    """Every message as the model shall see it."""
    told: list[Said] = []
    calls: dict[str, ToolCall] = {}
    complaint = ""
    for said in history:
        if isinstance(said, ModelSaid):
            calls = {call.id: call for call in said.message.calls}
            told.append(ModelSaid(msgspec.structs.replace(said.message, parts=(Text(as_step(said.message)),))))
        elif isinstance(said, ToolsSaid):
            results = [(one, calls.get(one.call_id)) for one in said.results]
            told.append(UserSaid((Text("\n\n".join(_result(one, call, complaint) for one, call in results)),)))
            for one, call in results:
                complaint = _complaint(one) if call and call.tool == "bash" else complaint
        else:
            told.append(_from_outside(said))
    return tuple(told)


def _complaint(ran: ToolResult) -> str:
    """What a command failed with, in two lines: the error, and what stands before it."""
    lines = [line.strip() for line in ran.for_model.splitlines() if line.strip()] if ran.status == "failed" else []
    wrong = [at for at, line in enumerate(lines) if _ERROR.search(line)]
    return cut_middle("\n".join(lines[max(wrong[0] - 1, 0) : wrong[0] + 1]), LONGEST_COMPLAINT).text if wrong else ""


def _from_outside(said: UserSaid | SystemSaid) -> UserSaid:
    if isinstance(said, SystemSaid):
        return UserSaid((Text(said.text),))
    return UserSaid(tuple(Text("[a picture]") if isinstance(block, Image) else block for block in said.blocks))


def as_step(message: Message) -> str:
    """As it wrote it itself, so that what it computed for those words is still in its cache."""
    steps: list[dict[str, Any]] = [{"say": message.text, "tool": call.tool, **call.arguments} for call in message.calls]
    return "\n".join(map(write, steps or [{"say": message.text, "tool": DONE}]))


def write(step: Mapping[str, Any]) -> str:
    """JSON with blanks, as the model writes it."""
    return json.dumps(step, ensure_ascii=False, default=str)


def _result(result: ToolResult, call: ToolCall | None, complaint: str) -> str:
    told = cut_middle(result.for_model, LONGEST_RESULT).text
    if call is None:
        return told
    hint = _NEXT.get((call.tool, result.status), "")
    if call.tool == "read" and result.status == "ok":
        told = "```\n" + _LINE_NUMBER.sub("", told) + "\n```"
        is_test = _TESTS.search(str(call.arguments.get("path", "")))
        hint = _after_test(told) if is_test else _WRONG.format(complaint=complaint) if complaint else ""
    return f"{told}\n\n{hint}" if hint else told


def _after_test(test: str) -> str:
    """Where the code is that a test of Python's is about, as far as its imports tell."""
    modules = [name for name in _IMPORT.findall(test) if name.split(".")[0] not in (*sys.stdlib_module_names, "pytest")]
    return f"{_TEST}: {', '.join(name.replace('.', '/') + '.py' for name in modules[:3])}." if modules else f"{_TEST}."


def may_end(history: Sequence[Said]) -> bool:
    """Whether a turn may be over: while a command fails there is more to do, for some steps at least."""
    failing = 0
    calls: dict[str, ToolCall] = {}
    for said in history:
        if isinstance(said, UserSaid):
            failing = 0
        elif isinstance(said, ModelSaid):
            calls = {call.id: call for call in said.message.calls}
            failing += failing > 0
        elif isinstance(said, ToolsSaid):
            ran = [one.status for one in said.results if one.call_id in calls and calls[one.call_id].tool == "bash"]
            failing = 0 if "ok" in ran else failing or int("failed" in ran)
    return not 0 < failing <= PERSISTENCE


def is_stuck(history: Sequence[Said]) -> bool:
    """Whether the last step came to nothing: the likeliest next one would be the same again."""
    if not history or not isinstance(history[-1], ToolsSaid):
        return False
    before = history[-2] if len(history) > 1 else None
    commands = (
        [call.id for call in before.message.calls if call.tool == "bash"] if isinstance(before, ModelSaid) else []
    )
    return any(one.status == "failed" and one.call_id not in commands for one in history[-1].results)
