"""Shows the items of the server's log: thoughts, the server's own tool calls, and status lines."""

from collections.abc import Callable
from typing import Any

from ostler.backends.agent_zero.answer_writer import AnswerWriter
from ostler.core.display import Display, DisplayText
from ostler.core.events import Event, Notice, ToolCalled, ToolFinished, ToolProgress
from ostler.core.tools import ToolCall, ToolKind, ToolResult
from ostler.wire.agent_zero.server_documents import THOUGHT_NAMES, ZeroLogItem, without_traceback

_CALLS: dict[str, ToolKind] = {
    "tool": "other",
    "mcp": "other",
    "code_exe": "execute",
    "browser": "fetch",
    "subagent": "other",
}
_HIDDEN = ("response", "user", "input", "progress")  # the answer and the prompt are shown already


class LogView:
    """The log items of one turn, by number. An item that is reported again replaces its earlier version."""

    def __init__(self, emit: Callable[[Event], None], writer: AnswerWriter, turn_token: str) -> None:
        self._emit = emit
        self._writer = writer
        self._token = turn_token
        self._thoughts: dict[int, str] = {}
        self._calls: dict[int, ZeroLogItem] = {}
        self._texts: dict[int, str] = {}

    def show(self, item: ZeroLogItem) -> None:
        if item.type == "agent":
            self._show_thoughts(item)
        elif item.type in _CALLS:
            self._show_call(item)
        elif item.type not in _HIDDEN:
            self._show_line(item)

    def finish(self) -> None:
        """Report the server's calls as finished, because an answer has followed or the turn has ended."""
        self._finish_calls(before=None)

    def _show_thoughts(self, item: ZeroLogItem) -> None:
        self._finish_calls(before=item.no)
        shown, thoughts = self._thoughts.get(item.no, ""), item.thoughts
        if thoughts and thoughts != shown:
            text = thoughts[len(shown) :] if thoughts.startswith(shown) else f"\n{thoughts}"
            self._thoughts[item.no] = thoughts
            self._writer.add_thought(text)

    def _show_call(self, item: ZeroLogItem) -> None:
        self._finish_calls(before=item.no)
        call_id = self._call_id(item.no)
        known = self._calls.get(item.no)
        self._calls[item.no] = item
        event = ToolCalled(
            ToolCall(call_id, _tool_name(item), _arguments(item), "protocol"), item.heading, _CALLS[item.type]
        )
        if known is None:
            self._writer.finish()  # the text before the call
        if known is None or (known.heading, known.kvps) != (item.heading, item.kvps):
            self._emit(event)
        if item.content:
            self._emit(ToolProgress(call_id, _display(item)))

    def _show_line(self, item: ZeroLogItem) -> None:
        text = item.heading or item.content
        if item.type == "error":
            text = ": ".join(part for part in (item.heading, without_traceback(item.content)) if part)
        if text and self._texts.get(item.no) != text and not (item.type == "status" and item.no in self._texts):
            self._texts[item.no] = text
            level = item.type if item.type in ("warning", "error") else "info"
            self._emit(Notice(level, server_notice(text)))  # type: ignore[arg-type]  # one of the levels

    def _finish_calls(self, before: int | None) -> None:
        """Report calls as finished, because the agent has gone on to a later item."""
        for number in [number for number in self._calls if before is None or number < before]:
            item = self._calls.pop(number)
            self._emit(ToolFinished(ToolResult(self._call_id(number), "ok", item.content, _display(item))))

    def _call_id(self, number: int) -> str:
        return f"zero-log-{self._token}-{number}"


def server_notice(text: str) -> str:
    """Return words of the server as a notice; its further lines are indented, so that they look like no other line."""
    return "Agent Zero: " + "\n  ".join(text.strip().splitlines())


def tool_label(name: str) -> str:
    """Return the name of a tool that the server gave, as one line."""
    return " ".join(name.split())[:100]


def _tool_name(item: ZeroLogItem) -> str:
    name = item.kvps.get("tool_name") or item.kvps.get("_tool_name")
    return tool_label(name) if isinstance(name, str) and name.strip() else item.type


def _arguments(item: ZeroLogItem) -> dict[str, Any]:
    arguments = item.kvps.get("tool_args")
    if isinstance(arguments, dict):
        return arguments
    return {name: value for name, value in item.kvps.items() if name not in (*THOUGHT_NAMES, "tool_name")}


def _display(item: ZeroLogItem) -> Display:
    blocks = (DisplayText(item.content, "output"),) if item.content else ()
    return Display(f"on the server: {item.heading or item.type}", blocks)
