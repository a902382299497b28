"""Hooks as data: which program is meant for which moment and tool. Whoever runs them, it is not here."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec

from ostler.knowledge.source_folder import SourceFolder
from ostler.settings.effective import Settings
from ostler.settings.problems import Problem

HookEvent = Literal["before_tool", "after_tool", "prompt_submitted", "turn_end"]
HOOK_EVENTS: tuple[HookEvent, ...] = ("before_tool", "after_tool", "prompt_submitted", "turn_end")
MAX_HOOKS = 200
_CLAUDE_EVENTS: Mapping[str, HookEvent] = {
    "PreToolUse": "before_tool",
    "PostToolUse": "after_tool",
    "UserPromptSubmit": "prompt_submitted",
    "Stop": "turn_end",
}
_CLAUDE_FILES = (".claude/settings.json", ".claude/settings.local.json")
_CLAUDE_TIMEOUT_SECONDS = 60.0
# What our tools are called where a hook of Claude Code names them.
_CLAUDE_TOOL_NAMES: Mapping[str, tuple[str, ...]] = {
    "read": ("Read",),
    "write": ("Write",),
    "edit": ("Edit", "MultiEdit"),
    "patch": ("Edit", "MultiEdit", "Write"),
    "bash": ("Bash",),
    "grep": ("Grep",),
    "glob": ("Glob",),
    "list": ("LS",),
    "task": ("Task",),
    "skill": ("Skill",),
    "todowrite": ("TodoWrite",),
}


_CLAUDE_ARGUMENTS = {"path": "file_path", "old": "old_string", "new": "new_string"}


class HookSpec(msgspec.Struct, frozen=True):
    """A program for a moment. `style` says in whose words it is told what happens, and answers.

    `match` has wildcards in our style; in Claude Code's it is a regular expression, and nothing fits every tool.
    """

    event: HookEvent
    command: tuple[str, ...]
    match: str = "*"
    seconds: float = 30.0
    style: Literal["ostler", "claude"] = "ostler"
    origin: str = ""

    @property
    def name(self) -> str:
        """How a person recognises it."""
        return " ".join(self.command).removeprefix("sh -c ")[:80]

    def matches(self, tool: str) -> bool:
        """Whether it is for a tool; around a turn there is none, and every hook fits."""
        if self.event in ("prompt_submitted", "turn_end") or self.match in ("", "*"):
            return True
        if self.style == "ostler":
            return fnmatchcase(tool, self.match)
        return _expression_matches(self.match, (*_CLAUDE_TOOL_NAMES.get(tool, ()), tool))


def configured_hooks(settings: Settings) -> list[HookSpec]:
    """The hooks of the config; those of a project are among them once it is trusted."""
    hooks = settings.config.hooks
    return [
        HookSpec(
            moment, hook.command, hook.match, hook.timeout_ms / 1000, origin=str(settings.origin(("hooks", moment)))
        )
        for moment in HOOK_EVENTS
        for hook in getattr(hooks, moment)
    ]


def claude_project_hooks(folder: SourceFolder) -> list[HookSpec]:
    """The hooks in a project's files of Claude Code; whoever runs them asks first whether the project is trusted."""
    import json

    hooks: list[HookSpec] = []
    for name in _CLAUDE_FILES:
        found = folder.read(name)
        if found is None:
            continue
        try:
            more, notes = parse_claude_hooks(json.loads(found.text), found.display_path)
        except (ValueError, RecursionError):
            folder.note(name, "this is no JSON; its hooks are left out")
            continue
        hooks += more
        folder.notes.extend(notes)
    return hooks


def parse_claude_hooks(document: Any, origin: str) -> tuple[list[HookSpec], list[Problem]]:
    """The hooks in a settings file of Claude Code, and what in it has no place here."""
    hooks: list[HookSpec] = []
    notes: list[Problem] = []

    def note(message: str) -> None:
        notes.append(Problem(origin, 0, 0, "hooks", message, "warning"))

    for event, groups in _items(_member(document, "hooks")):
        moment = _CLAUDE_EVENTS.get(event)
        if moment is None:
            note(f"{event[:40]!r} is no moment at which hooks are run here")
            continue
        for match, entry in _entries(groups):
            if len(hooks) == MAX_HOOKS:
                note(f"there are more than {MAX_HOOKS}; the rest is left out")
                return hooks, notes
            command = _member(entry, "command")
            if not isinstance(command, str) or not command.strip():
                note(f"one for {event} names no command")
                continue
            if match and not _is_valid_expression(match):
                note(f"the matcher {match[:40]!r} is no regular expression; every tool is meant by it now")
                match = ""
            seconds = _member(entry, "timeout")
            limit = (
                float(seconds)
                if isinstance(seconds, int | float) and 0 < seconds <= 86_400
                else _CLAUDE_TIMEOUT_SECONDS
            )
            hooks.append(HookSpec(moment, ("sh", "-c", command), match, limit, "claude", origin))
    return hooks, notes


def _entries(groups: Any) -> Iterator[tuple[str, Any]]:
    for group in groups if isinstance(groups, list) else ():
        match = _member(group, "matcher")
        entries = _member(group, "hooks")
        for entry in entries if isinstance(entries, list) else ():
            yield match if isinstance(match, str) and match != "*" else "", entry


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _items(value: Any) -> list[tuple[str, Any]]:
    return [(str(name), inner) for name, inner in value.items()] if isinstance(value, dict) else []


def _is_valid_expression(expression: str) -> bool:
    return _compile(expression) is not None


def _expression_matches(expression: str, names: tuple[str, ...]) -> bool:
    pattern = _compile(expression)
    return any(pattern is None or pattern.fullmatch(name) is not None for name in names)


def _compile(expression: str) -> Any:
    """An expression whose time is linear whatever it says; nothing when it is none."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options)
    except re2.error:
        return None


def hook_input(hook: HookSpec, payload: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    """What a hook hears on its standard input, in the words of its style; `told` is in ours."""
    if hook.style == "ostler":
        return {"moment": hook.event, "cwd": cwd, **payload}
    event = next(name for name, moment in _CLAUDE_EVENTS.items() if moment == hook.event)
    heard: dict[str, Any] = {"hook_event_name": event, "cwd": cwd}
    if "tool" in payload:
        names = _CLAUDE_TOOL_NAMES.get(payload["tool"], (payload["tool"],))
        heard |= {"tool_name": names[0], "tool_input": _claude_arguments(payload["arguments"])}
    if "result" in payload:
        heard["tool_response"] = payload["result"]
    if "prompt" in payload:
        heard["prompt"] = payload["prompt"]
    if "again" in payload:
        heard["stop_hook_active"] = payload["again"]
    return heard


def _claude_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A call's arguments by the names that scripts for Claude Code look for, beside our own."""
    also = {theirs: arguments[ours] for ours, theirs in _CLAUDE_ARGUMENTS.items() if ours in arguments}
    return {**arguments, **also}
