"""Hooks as data: which program is meant for which moment and tool. Whoever runs them, it is not here."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec

from ostler.knowledge.folder import Folder
from ostler.settings.effective import Settings
from ostler.settings.problems import Problem

Moment = Literal["before_tool", "after_tool", "prompt_submitted", "turn_end"]
MOMENTS: tuple[Moment, ...] = ("before_tool", "after_tool", "prompt_submitted", "turn_end")
MOST_HOOKS = 200
_CLAUDES: Mapping[str, Moment] = {
    "PreToolUse": "before_tool",
    "PostToolUse": "after_tool",
    "UserPromptSubmit": "prompt_submitted",
    "Stop": "turn_end",
}
_CLAUDES_FILES = (".claude/settings.json", ".claude/settings.local.json")
_CLAUDES_SECONDS = 60.0
# What our tools are called where a hook of Claude Code names them.
_CLAUDES_NAMES: Mapping[str, tuple[str, ...]] = {
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


_CLAUDES_ARGUMENTS = {"path": "file_path", "old": "old_string", "new": "new_string"}


class Hook(msgspec.Struct, frozen=True):
    """A program for a moment. `style` says in whose words it is told what happens, and answers.

    `match` has wildcards in our style; in Claude Code's it is a regular expression, and nothing fits every tool.
    """

    moment: Moment
    command: tuple[str, ...]
    match: str = "*"
    seconds: float = 30.0
    style: Literal["ostler", "claude"] = "ostler"
    origin: str = ""

    @property
    def name(self) -> str:
        """How a person recognises it."""
        return " ".join(self.command).removeprefix("sh -c ")[:80]

    def fits(self, tool: str) -> bool:
        """Whether it is for a tool; around a turn there is none, and every hook fits."""
        if self.moment in ("prompt_submitted", "turn_end") or self.match in ("", "*"):
            return True
        if self.style == "ostler":
            return fnmatchcase(tool, self.match)
        return _expression_fits(self.match, (*_CLAUDES_NAMES.get(tool, ()), tool))


def configured_hooks(settings: Settings) -> list[Hook]:
    """The hooks of the config; those of a project are among them once it is trusted."""
    hooks = settings.config.hooks
    return [
        Hook(moment, hook.command, hook.match, hook.timeout_ms / 1000, origin=str(settings.origin(("hooks", moment))))
        for moment in MOMENTS
        for hook in getattr(hooks, moment)
    ]


def claude_project_hooks(work: Folder) -> list[Hook]:
    """The hooks in a project's files of Claude Code; whoever runs them asks first whether the project is trusted."""
    import json

    hooks: list[Hook] = []
    for name in _CLAUDES_FILES:
        found = work.read(name)
        if found is None:
            continue
        try:
            more, notes = claude_hooks(json.loads(found.text), found.shown)
        except (ValueError, RecursionError):
            work.note(name, "this is no JSON; its hooks are left out")
            continue
        hooks += more
        work.notes.extend(notes)
    return hooks


def claude_hooks(document: Any, origin: str) -> tuple[list[Hook], list[Problem]]:
    """The hooks in a settings file of Claude Code, and what in it has no place here."""
    hooks: list[Hook] = []
    notes: list[Problem] = []

    def note(message: str) -> None:
        notes.append(Problem(origin, 0, 0, "hooks", message, "warning"))

    for event, groups in _items(_member(document, "hooks")):
        moment = _CLAUDES.get(event)
        if moment is None:
            note(f"{event[:40]!r} is no moment at which hooks are run here")
            continue
        for match, entry in _entries(groups):
            if len(hooks) == MOST_HOOKS:
                note(f"there are more than {MOST_HOOKS}; the rest is left out")
                return hooks, notes
            command = _member(entry, "command")
            if not isinstance(command, str) or not command.strip():
                note(f"one for {event} names no command")
                continue
            if match and not _readable(match):
                note(f"the matcher {match[:40]!r} is no regular expression; every tool is meant by it now")
                match = ""
            seconds = _member(entry, "timeout")
            limit = float(seconds) if isinstance(seconds, int | float) and 0 < seconds <= 86_400 else _CLAUDES_SECONDS
            hooks.append(Hook(moment, ("sh", "-c", command), match, limit, "claude", origin))
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


def _readable(expression: str) -> bool:
    return _compiled(expression) is not None


def _expression_fits(expression: str, names: tuple[str, ...]) -> bool:
    pattern = _compiled(expression)
    return any(pattern is None or pattern.fullmatch(name) is not None for name in names)


def _compiled(expression: str) -> Any:
    """An expression whose time is linear whatever it says; nothing when it is none."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options)
    except re2.error:
        return None


def told_to(hook: Hook, told: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    """What a hook hears on its standard input, in the words of its style; `told` is in ours."""
    if hook.style == "ostler":
        return {"moment": hook.moment, "cwd": cwd, **told}
    event = next(name for name, moment in _CLAUDES.items() if moment == hook.moment)
    heard: dict[str, Any] = {"hook_event_name": event, "cwd": cwd}
    if "tool" in told:
        names = _CLAUDES_NAMES.get(told["tool"], (told["tool"],))
        heard |= {"tool_name": names[0], "tool_input": _claudes_arguments(told["arguments"])}
    if "result" in told:
        heard["tool_response"] = told["result"]
    if "prompt" in told:
        heard["prompt"] = told["prompt"]
    if "again" in told:
        heard["stop_hook_active"] = told["again"]
    return heard


def _claudes_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A call's arguments by the names that scripts for Claude Code look for, beside our own."""
    also = {theirs: arguments[ours] for ours, theirs in _CLAUDES_ARGUMENTS.items() if ours in arguments}
    return {**arguments, **also}
