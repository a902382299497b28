"""Translates an agent's session updates into events."""

import asyncio
import os
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from ostler.backends.acp.options import AgentOptions
from ostler.backends.acp.replay_end import is_conversation
from ostler.backends.acp.tool_call_display import (
    MAX_TEXT_LENGTH,
    make_display,
    to_tool_called,
    to_tool_result,
)
from ostler.core.events import (
    Event,
    MessageDone,
    Notice,
    TextDelta,
    ThoughtDelta,
    TodosChanged,
    ToolCalled,
    ToolFinished,
    ToolProgress,
    UsageReported,
)
from ostler.core.message import CallPart, Message, MessagePart, ThoughtPart
from ostler.core.prompt import ImageContent, TextContent
from ostler.core.sessions import SlashCommand
from ostler.core.tools import Todo, ToolCall
from ostler.wire.acp import ContentBlock, PlanEntry, ToolCallFields, content_text
from ostler.wire.acp_observer import AcpObserver
from ostler.wire.acp_requests import PromptResponse
from ostler.wire.acp_tool_calls import FINAL_STATUSES, ToolCallTracker
from ostler.wire.acp_updates import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    PlanUpdate,
    SessionInfoUpdate,
    SessionUpdate,
    UnknownUpdate,
    UsageUpdate,
)

MAX_UNKNOWN_KINDS = 20  # unknown kinds of updates; each is reported once
Phase = Literal["replay", "idle", "turn"]
_STATUS: dict[str, Literal["pending", "in_progress", "completed"]] = {
    "in_progress": "in_progress",
    "completed": "completed",
}
_PRIORITY: dict[str, Literal["high", "medium", "low"]] = {"high": "high", "low": "low"}
_LEVELS: dict[str, Literal["info", "warning", "error"]] = {"warning": "warning", "error": "error"}


class MessageAssembler:
    """The message that is being received, if any."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._id_token = os.urandom(4).hex()  # ids must be unique in a journal that earlier processes wrote
        self._count = 0
        self._agent_message_id: str | None = None
        self._parts: list[tuple[type[TextContent] | type[ThoughtPart], list[str]]] = []
        self._images: list[ImageContent] = []

    def add_text(self, content: ContentBlock, message_id: str | None) -> None:
        """Add a part of the answer."""
        self._start_message(message_id)
        if content.type == "image" and content.data:
            self._images.append(ImageContent(content.mime_type or "image/png", content.data))
            return
        text = content_text(content)
        self._add(TextContent, text)
        self._emit(TextDelta(self._id, text))

    def add_thought(self, content: ContentBlock, message_id: str | None) -> None:
        """Add a part of the reasoning. A different message id starts a new message."""
        self._start_message(message_id)
        text = content_text(content)
        self._add(ThoughtPart, text)
        self._emit(ThoughtDelta(self._id, text))

    def finish(self, call: ToolCall | None = None, *, truncated: bool = False) -> None:
        """Emit the complete message, with the call that follows it, or marked as truncated if it was interrupted."""
        if not self._parts and not self._images:
            return
        parts: list[MessagePart] = [kind("".join(texts)) for kind, texts in self._parts]
        parts += [CallPart(call)] if call else []
        self._emit(MessageDone(Message(self._id, (*parts, *self._images), truncated=truncated)))
        self._parts, self._images, self._agent_message_id = [], [], None

    @property
    def _id(self) -> str:
        return f"said-{self._id_token}-{self._count}"

    def _start_message(self, message_id: str | None) -> None:
        if self._agent_message_id is not None and message_id is not None and message_id != self._agent_message_id:
            self.finish()
        if not self._parts and not self._images:
            self._count += 1
        self._agent_message_id = message_id or self._agent_message_id

    def _add(self, kind: type[TextContent] | type[ThoughtPart], text: str) -> None:
        if not self._parts or self._parts[-1][0] is not kind:
            self._parts.append((kind, []))
        self._parts[-1][1].append(text)


class UpdateTranslator:
    """Translates updates into events. During a replay, messages, tool calls and plans are ignored."""

    def __init__(self, name: str, cwd: str, emit: Callable[[Event], None], observer: AcpObserver) -> None:
        self.phase: Phase = "idle"
        self.options: AgentOptions | None = None
        self.commands: tuple[SlashCommand, ...] = ()
        self.commands_received = asyncio.Event()
        self.title = ""
        self.count = 0  # of updates received
        self.on_info_changed: Callable[[], None] = lambda: None
        self.calls = ToolCallTracker()
        self.terminal_output: dict[str, str] = {}
        self.name = name
        self._cwd = cwd
        self._emit = emit
        self._observer = observer
        self._assembler = MessageAssembler(emit)
        self._turn_token = ""
        self._reported_calls: dict[str, ToolCalled] = {}
        self._finished_calls: set[str] = set()
        self._usage: UsageUpdate | None = None
        self._reported_cost = 0.0
        self._unknown_kinds: set[str] = set()

    def translate(self, update: SessionUpdate) -> None:
        """Translate one update and pass it to the observer."""
        self.count += 1
        if self.phase == "replay" and is_conversation(update):
            return
        if isinstance(update, ToolCallFields):
            self.apply_tool_call(update)
            self._observer.on_update(update, self.calls.get(update.tool_call_id))
            return
        self._translate(update)
        self._observer.on_update(update, None)

    def _translate(self, update: SessionUpdate) -> None:
        match update:
            case AgentMessageChunk(content, message_id) if self.phase == "turn":
                self._assembler.add_text(content, message_id)
            case AgentThoughtChunk(content, message_id) if self.phase == "turn":
                self._assembler.add_thought(content, message_id)
            case AgentMessageChunk(content):
                self._emit(Notice("info", content_text(content)))
            case PlanUpdate(entries):
                self._emit(TodosChanged(tuple(_todo(number, entry) for number, entry in enumerate(entries, 1))))
            case UsageUpdate():
                self._usage = update
            case UnknownUpdate():
                self._handle_unknown(update)
            case _:
                self._apply_state(update)

    def _apply_state(self, update: SessionUpdate) -> None:
        """Apply an update of the session's commands, options or title."""
        match update:
            case AvailableCommandsUpdate(commands):
                self.commands = tuple(
                    SlashCommand(command.name, command.description, command.input.hint if command.input else "")
                    for command in commands
                )
                self.commands_received.set()
            case CurrentModeUpdate(mode_id) if self.options:
                self.options.mode_changed(mode_id)
            case ConfigOptionUpdate(options) if self.options:
                self.options.config_changed(options)
            case SessionInfoUpdate(title) if title:
                self.title = title
            case _:
                return
        self.on_info_changed()

    def begin_turn(self) -> None:
        """Start a turn; call ids of earlier turns may be reused for other calls."""
        self.phase = "turn"
        self.calls = ToolCallTracker()
        self._turn_token = os.urandom(4).hex()
        self._reported_calls, self._finished_calls = {}, set()

    def local_call_id(self, call_id: str) -> str:
        """Return the id of a call of this turn that is unique in the journal."""
        return f"{call_id}-{self._turn_token}" if call_id else ""

    def apply_tool_call(self, update: ToolCallFields) -> ToolCallFields:
        """Apply a call or an update of one, from an update or a permission request. Return the merged call."""
        call = self.calls.upsert(update)
        self._store_output(update.meta or {})
        if self.phase == "turn" and call.tool_call_id and call.tool_call_id not in self._finished_calls:
            self._emit_call(msgspec.structs.replace(call, tool_call_id=self.local_call_id(call.tool_call_id)), update)
        return call

    def _emit_call(self, call: ToolCallFields, update: ToolCallFields) -> None:
        event = to_tool_called(call, self._cwd)
        if self._reported_calls.get(update.tool_call_id) != event:
            self._assembler.finish(event.call)
            self._reported_calls[update.tool_call_id] = event
            self._emit(event)
        if call.status in FINAL_STATUSES:
            self._finished_calls.add(update.tool_call_id)
            self._emit(ToolFinished(to_tool_result(call, self._cwd, self.terminal_output)))
        elif update.content:
            self._emit(ToolProgress(call.tool_call_id, make_display(call, self._cwd, self.terminal_output)))

    def _store_output(self, meta: dict[str, Any]) -> None:
        """Store the output of the agent's own terminals, which some agents send along with calls."""
        for key, complete in (("terminal_output", True), ("terminal_output_delta", False)):
            output = meta.get(key)
            name, data = (output.get("terminal_id"), output.get("data")) if isinstance(output, dict) else (None, None)
            if isinstance(name, str) and isinstance(data, str):
                before = "" if complete else self.terminal_output.get(name, "")
                self.terminal_output[name] = (before + data)[-MAX_TEXT_LENGTH:]

    def finish_turn(self, *, truncated: bool = False) -> None:
        """End the turn: complete the last message and ignore further updates of its calls."""
        self._assembler.finish(truncated=truncated)
        self.phase = "idle"

    def report_usage(self, response: PromptResponse, model: str) -> None:
        """Emit the turn's usage, as far as the agent reported it."""
        context_usage, turn_usage = self._usage, response.usage
        if context_usage is None and turn_usage is None:
            return
        total = context_usage.cost.amount if context_usage and context_usage.cost else None
        cost = None if total is None else max(total - self._reported_cost, 0.0)
        self._reported_cost = self._reported_cost if total is None else total
        self._emit(
            UsageReported(
                model or self.name,
                turn_usage.input_tokens if turn_usage else 0,
                turn_usage.output_tokens if turn_usage else 0,
                (turn_usage.cached_read_tokens or 0) if turn_usage else 0,
                cost,
                context_usage.used if context_usage else 0,
                context_usage.size if context_usage else 0,
            )
        )

    def _handle_unknown(self, update: UnknownUpdate) -> None:
        raw = update.raw
        if update.kind == "notice" and isinstance(raw.get("title"), str):
            description = raw.get("description")
            text = f"{raw['title']}: {description}" if isinstance(description, str) and description else raw["title"]
            self._emit(Notice(_LEVELS.get(str(raw.get("severity")), "info"), text))
        elif update.kind not in self._unknown_kinds and len(self._unknown_kinds) < MAX_UNKNOWN_KINDS:
            self._unknown_kinds.add(update.kind)
            self._emit(Notice("info", f"ignored an unknown update type {update.kind!r:.60} from {self.name}"))


def _todo(number: int, entry: PlanEntry) -> Todo:
    status, priority = _STATUS.get(entry.status, "pending"), _PRIORITY.get(entry.priority, "medium")
    return Todo(str(number), entry.content, status, priority)
