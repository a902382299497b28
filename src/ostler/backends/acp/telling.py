"""Tells a session what an agent tells: updates become events, whoever sent them and in whatever order."""

import asyncio
import os
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from ostler.backends.acp.options import AgentOptions
from ostler.backends.acp.showing import MOST_TEXT, called, display, finished, words
from ostler.backends.acp.speech import Speech
from ostler.backends.acp.watch import Watch
from ostler.vocabulary.events import (
    Event,
    Notice,
    TodosChanged,
    ToolCalled,
    ToolFinished,
    ToolProgress,
    UsageReported,
)
from ostler.vocabulary.sessions import SlashCommand
from ostler.vocabulary.tools import Todo
from ostler.wire.acp import PlanEntry, ToolCallFields
from ostler.wire.acp_calls import PromptAnswer
from ostler.wire.acp_tool_calls import OVER, ToolCalls
from ostler.wire.acp_updates import (
    AgentMessageChunk,
    AgentThoughtChunk,
    Chunk,
    CommandsTold,
    ConfigTold,
    InfoTold,
    ModeChanged,
    PlanTold,
    UnknownUpdate,
    Update,
    UsageTold,
)

MOST_STRANGE = 20  # kinds of updates nobody knows, of which each is told once
Phase = Literal["replay", "idle", "turn"]
_STATUS: dict[str, Literal["pending", "in_progress", "completed"]] = {
    "in_progress": "in_progress",
    "completed": "completed",
}
_PRIORITY: dict[str, Literal["high", "medium", "low"]] = {"high": "high", "low": "low"}
_LEVELS: dict[str, Literal["info", "warning", "error"]] = {"warning": "warning", "error": "error"}


class Teller:
    """The one way from updates to events. In a replay only what is still so is told, and no words."""

    def __init__(self, name: str, cwd: str, emit: Callable[[Event], None], watch: Watch) -> None:
        self.phase: Phase = "idle"
        self.options: AgentOptions | None = None
        self.commands: tuple[SlashCommand, ...] = ()
        self.commands_told = asyncio.Event()
        self.title = ""
        self.info_changed: Callable[[], None] = lambda: None
        self.calls = ToolCalls()
        self.printed: dict[str, str] = {}
        self.name = name
        self._cwd = cwd
        self._emit = emit
        self._watch = watch
        self._speech = Speech(emit)
        self._mark = ""
        self._known: dict[str, ToolCalled] = {}
        self._over: set[str] = set()
        self._usage: UsageTold | None = None
        self._paid = 0.0
        self._strange: set[str] = set()

    def update(self, update: Update) -> None:
        """Take one update in."""
        if self.phase == "replay" and isinstance(update, (Chunk, ToolCallFields, PlanTold)):
            return
        if isinstance(update, ToolCallFields):
            self.tool_call(update)
            self._watch.updated(update, self.calls.get(update.tool_call_id))
            return
        self._tell(update)
        self._watch.updated(update, None)

    def _tell(self, update: Update) -> None:
        match update:
            case AgentMessageChunk(content, message_id) if self.phase == "turn":
                self._speech.text(content, message_id)
            case AgentThoughtChunk(content, message_id) if self.phase == "turn":
                self._speech.thought(content, message_id)
            case AgentMessageChunk(content):
                self._emit(Notice("info", words(content)))
            case PlanTold(entries):
                self._emit(TodosChanged(tuple(_todo(number, entry) for number, entry in enumerate(entries, 1))))
            case UsageTold():
                self._usage = update
            case UnknownUpdate():
                self._unknown(update)
            case _:
                self._state(update)

    def _state(self, update: Update) -> None:
        """What is so in the session from now on."""
        match update:
            case CommandsTold(commands):
                self.commands = tuple(
                    SlashCommand(command.name, command.description, command.input.hint if command.input else "")
                    for command in commands
                )
                self.commands_told.set()
            case ModeChanged(mode_id) if self.options:
                self.options.mode_changed(mode_id)
            case ConfigTold(options) if self.options:
                self.options.told(options)
            case InfoTold(title) if title:
                self.title = title
            case _:
                return
        self.info_changed()

    def begin_turn(self) -> None:
        """A turn begins; an id that an agent used in an earlier one means another call now."""
        self.phase = "turn"
        self.calls = ToolCalls()
        self._mark = os.urandom(4).hex()
        self._known, self._over = {}, set()

    def our_id(self, call_id: str) -> str:
        """What a call of this turn is called in our journal, where no id may come twice."""
        return f"{call_id}-{self._mark}" if call_id else ""

    def tool_call(self, told: ToolCallFields) -> ToolCallFields:
        """A tool call or a change of it, from an update or a permission request; the call as it stands."""
        call = self.calls.upsert(told)
        self._note_output(told.meta or {})
        if self.phase == "turn" and call.tool_call_id and call.tool_call_id not in self._over:
            self._tell_call(msgspec.structs.replace(call, tool_call_id=self.our_id(call.tool_call_id)), told)
        return call

    def _tell_call(self, call: ToolCallFields, told: ToolCallFields) -> None:
        event = called(call, self._cwd)
        if self._known.get(told.tool_call_id) != event:
            self._speech.finish()
            self._known[told.tool_call_id] = event
            self._emit(event)
        if call.status in OVER:
            self._over.add(told.tool_call_id)
            self._emit(ToolFinished(finished(call, self._cwd, self.printed)))
        elif told.content:
            self._emit(ToolProgress(call.tool_call_id, display(call, self._cwd, self.printed)))

    def _note_output(self, meta: dict[str, Any]) -> None:
        """What terminals of the agent's own print, which some agents put beside their calls, whole or bit by bit."""
        for key, whole in (("terminal_output", True), ("terminal_output_delta", False)):
            told = meta.get(key)
            name, data = (told.get("terminal_id"), told.get("data")) if isinstance(told, dict) else (None, None)
            if isinstance(name, str) and isinstance(data, str):
                before = "" if whole else self.printed.get(name, "")
                self.printed[name] = (before + data)[-MOST_TEXT:]

    def finish_turn(self, *, cut: bool = False) -> None:
        """The turn is over: the last message is whole, and nothing more is told of its calls."""
        self._speech.finish(cut=cut)
        self.phase = "idle"

    def usage(self, answer: PromptAnswer, model: str) -> None:
        """What the turn used, as far as the agent tells."""
        told, spent = self._usage, answer.usage
        if told is None and spent is None:
            return
        total = told.cost.amount if told and told.cost else None
        cost = None if total is None else max(total - self._paid, 0.0)
        self._paid = self._paid if total is None else total
        self._emit(
            UsageReported(
                model or self.name,
                spent.input_tokens if spent else 0,
                spent.output_tokens if spent else 0,
                (spent.cached_read_tokens or 0) if spent else 0,
                cost,
                told.used if told else 0,
                told.size if told else 0,
            )
        )

    def _unknown(self, update: UnknownUpdate) -> None:
        raw = update.raw
        if update.kind == "notice" and isinstance(raw.get("title"), str):
            more = raw.get("description")
            text = f"{raw['title']}: {more}" if isinstance(more, str) and more else raw["title"]
            self._emit(Notice(_LEVELS.get(str(raw.get("severity")), "info"), text))
        elif update.kind not in self._strange and len(self._strange) < MOST_STRANGE:
            self._strange.add(update.kind)
            self._emit(Notice("info", f"{self.name} tells of {update.kind!r:.60}, which this version does not know"))


def _todo(number: int, entry: PlanEntry) -> Todo:
    status, priority = _STATUS.get(entry.status, "pending"), _PRIORITY.get(entry.priority, "medium")
    return Todo(str(number), entry.content, status, priority)
