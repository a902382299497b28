"""Reads hook definitions from the settings and from Claude Code's files; does not run them."""

import os
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec

from ostler.knowledge.source_folder import SourceFolder
from ostler.settings.effective import Settings
from ostler.settings.problems import Problem, SettingOrigin
from ostler.text.lazy_regex import LinearPattern, linear_regex

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
# Names that Claude Code's hooks use for Ostler's tools.
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
    """A program to run on an event. `style` selects the format of its input and output.

    `match` is a wildcard pattern in Ostler's style and a regular expression in Claude Code's; empty matches every tool.
    It runs in `folder`, that of the user's settings file; a hook of a project has none and runs in the workspace.
    """

    event: HookEvent
    command: tuple[str, ...]
    match: str = "*"
    seconds: float = 30.0
    style: Literal["ostler", "claude"] = "ostler"
    origin: str = ""
    folder: str = ""

    @property
    def name(self) -> str:
        """Short form of the command, for messages."""
        return " ".join(self.command).removeprefix("sh -c ")[:80]

    def matches(self, tool: str) -> bool:
        """Return whether the hook applies to a tool. Hooks of prompts and turns always apply."""
        if self.event in ("prompt_submitted", "turn_end") or self.match in ("", "*"):
            return True
        if self.style == "ostler":
            return fnmatchcase(tool, self.match)
        return _expression_matches(self.match, (*_CLAUDE_TOOL_NAMES.get(tool, ()), tool))


def configured_hooks(settings: Settings) -> list[HookSpec]:
    """Return the hooks of the config, including the project's if it is trusted."""
    return [
        HookSpec(event, hook.command, hook.match, hook.timeout_ms / 1000, origin=str(origin), folder=_folder(origin))
        for event in HOOK_EVENTS
        for origin in [settings.origin(("hooks", event))]
        for hook in getattr(settings.config.hooks, event)
    ]


def _folder(origin: SettingOrigin) -> str:
    """Return the folder where a hook runs: never the workspace for the user's own, so that no file of it is loaded."""
    return "" if origin.layer == "project" else os.path.dirname(os.path.abspath(origin.file))


def claude_project_hooks(folder: SourceFolder) -> list[HookSpec]:
    """Return the hooks in a project's Claude Code files; run them only if the project is trusted."""
    import json

    hooks: list[HookSpec] = []
    for name in _CLAUDE_FILES:
        source = folder.read(name)
        if source is None:
            continue
        try:
            file_hooks, notes = parse_claude_hooks(json.loads(source.text), source.display_path)
        except (ValueError, RecursionError):
            folder.note(name, "this is not valid JSON; its hooks are ignored")
            continue
        hooks += file_hooks
        folder.notes.extend(notes)
    return hooks


def parse_claude_hooks(document: Any, origin: str) -> tuple[list[HookSpec], list[Problem]]:
    """Return the hooks of a Claude Code settings file, and warnings about unsupported ones."""
    hooks: list[HookSpec] = []
    notes: list[Problem] = []

    def note(message: str) -> None:
        notes.append(Problem(origin, 0, 0, "hooks", message, "warning"))

    for claude_event, groups in _items(_member(document, "hooks")):
        event = _CLAUDE_EVENTS.get(claude_event)
        if event is None:
            note(f"{claude_event[:40]!r} is not a supported event")
            continue
        for match, entry in _entries(groups):
            if len(hooks) == MAX_HOOKS:
                note(f"there are more than {MAX_HOOKS} hooks; the others are ignored")
                return hooks, notes
            command = _member(entry, "command")
            if not isinstance(command, str) or not command.strip():
                note(f"a hook for {claude_event} has no command")
                continue
            if match and _compile(match) is None:
                note(f"the matcher {match[:40]!r} is not a regular expression; the hook now applies to every tool")
                match = ""
            seconds = _member(entry, "timeout")
            limit = (
                float(seconds)
                if isinstance(seconds, int | float) and 0 < seconds <= 86_400
                else _CLAUDE_TIMEOUT_SECONDS
            )
            hooks.append(HookSpec(event, ("sh", "-c", command), match, limit, "claude", origin))
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


def _expression_matches(expression: str, names: tuple[str, ...]) -> bool:
    pattern = _compile(expression)
    return any(pattern is None or pattern.fullmatch(name) is not None for name in names)


def _compile(expression: str) -> LinearPattern | None:
    """Compile a regular expression that matches in linear time. Return None if it is invalid."""
    try:
        return linear_regex(expression, ignore_case=False)
    except ValueError:
        return None


def hook_input(hook: HookSpec, payload: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    """Return what a hook receives on standard input, in the format of its style. `payload` is in Ostler's format."""
    if hook.style == "ostler":
        return {"moment": hook.event, "cwd": cwd, **payload}
    claude_event = next(name for name, event in _CLAUDE_EVENTS.items() if event == hook.event)
    data: dict[str, Any] = {"hook_event_name": claude_event, "cwd": cwd}
    if "tool" in payload:
        names = _CLAUDE_TOOL_NAMES.get(payload["tool"], (payload["tool"],))
        data |= {"tool_name": names[0], "tool_input": _claude_arguments(payload["arguments"])}
    if "result" in payload:
        data["tool_response"] = payload["result"]
    if "prompt" in payload:
        data["prompt"] = payload["prompt"]
    if "again" in payload:
        data["stop_hook_active"] = payload["again"]
    return data


def _claude_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's arguments under Ostler's and under Claude Code's names."""
    renamed = {claude: arguments[name] for name, claude in _CLAUDE_ARGUMENTS.items() if name in arguments}
    return {**arguments, **renamed}
