"""The keys of the full-screen client: one table for the bindings, the help and the command palette."""

import unicodedata
from collections.abc import Mapping

import msgspec
from textual.keys import KEY_NAME_REPLACEMENTS, Keys, key_to_character


class KeyAction(msgspec.Struct, frozen=True):
    """An action of the chat screen. `keys` are the default keys, separated by commas; two with a space are a chord."""

    name: str
    keys: str
    description: str
    group: str = "general"

    @property
    def title(self) -> str:
        """The description as a title."""
        return self.description[:1].upper() + self.description[1:]


ACTIONS = (
    KeyAction("newline", "alt+enter,shift+enter,ctrl+j", "new line (or \\ before Enter)", "input"),
    KeyAction("steer", "alt+s", "send the text to the running turn", "input"),
    KeyAction("editor", "ctrl+x ctrl+e", "open the text in your editor", "input"),
    KeyAction("stash", "ctrl+s", "put the text aside, or get it back", "input"),
    KeyAction("withdraw", "alt+q", "withdraw the prompt that was queued last", "input"),
    KeyAction("history", "ctrl+r", "search your earlier prompts", "input"),
    KeyAction("interrupt", "ctrl+c", "clear the text, cancel what runs, or quit (twice)", "input"),
    KeyAction("leave", "ctrl+d", "quit, if there is no text", "input"),
    KeyAction("page_up", "pageup", "scroll up a page", "transcript"),
    KeyAction("page_down", "pagedown", "scroll down a page", "transcript"),
    KeyAction("line_up", "shift+up", "scroll up", "transcript"),
    KeyAction("line_down", "shift+down", "scroll down", "transcript"),
    KeyAction("to_start", "ctrl+home", "go to the start", "transcript"),
    KeyAction("to_end", "ctrl+end", "go to the end", "transcript"),
    KeyAction("select_previous", "ctrl+up,alt+up", "select the previous block", "transcript"),
    KeyAction("select_next", "ctrl+down,alt+down", "select the next block", "transcript"),
    KeyAction("fold", "alt+o", "show the selected block (or the last call) in full, folded, short", "transcript"),
    KeyAction("details", "ctrl+o", "show all calls in full, or shortened", "transcript"),
    KeyAction("search", "ctrl+f", "search the transcript", "transcript"),
    KeyAction("copy_answer", "alt+c", "copy the selected block, or the last answer", "copy"),
    KeyAction("copy_code", "alt+k", "copy the last code block; again: the one before it", "copy"),
    KeyAction("copy_all", "alt+m", "copy the whole conversation", "copy"),
    KeyAction("mouse", "f6", "release the mouse to the terminal, or take it again", "copy"),
    KeyAction("help", "f1", "help"),
    KeyAction("palette", "f2,ctrl+p", "command palette"),
    KeyAction("arcade", "f3", "play a game; it pauses when something needs you"),
    KeyAction("panel", "f4", "show or hide the panel: tasks, subagents, events"),
    KeyAction("sessions", "f5", "all sessions of all projects: search, open, start new work"),
    KeyAction("next_waiting", "alt+n", "show the next session that waits for you"),
    KeyAction("project", "f9", "switch to another project"),
    KeyAction("model", "", "switch the model"),
    KeyAction("agent", "", "switch the agent"),
    KeyAction("profile", "", "switch the security profile"),
    KeyAction("backend", "", "start a session with another backend"),
    KeyAction("log", "f7", "show or hide the log"),
    KeyAction("theme", "f8", "switch the theme"),
    KeyAction("next_mode", "shift+tab", "next mode: ask, accept edits, plan"),
    KeyAction("redraw", "ctrl+l", "draw the screen again"),
    KeyAction("suspend", "ctrl+z", "suspend"),
    KeyAction("quit", "f10,ctrl+q", "quit"),
)
TEXT_ACTIONS = frozenset({"steer", "stash", "editor", "withdraw", "interrupt", "leave"})  # use the text of the input
GROUPS = {"general": "GENERAL", "input": "INPUT", "transcript": "TRANSCRIPT", "copy": "COPY"}
BY_NAME = {action.name: action for action in ACTIONS}
RESERVED = ("enter", "tab", "escape", "up", "down", "left", "right", "backspace")
SIGNS = {"space", *KEY_NAME_REPLACEMENTS.values()}  # Textual's own names
NAMES = {key.value.rpartition("+")[2] for key in Keys}  # without modifiers
EDITING = "editing"  # the setting that is not an action: "vi" or "emacs"


class KeyTable:
    """The keys of every action, with those of `ui.keys` that are possible."""

    def __init__(self, custom: Mapping[str, str] | None = None) -> None:
        custom = custom or {}
        self.vi = custom.get(EDITING) == "vi"
        self._problems = [f"there is no action {name!r}" for name in sorted(set(custom) - set(BY_NAME) - {EDITING})]
        self._keys = {action.name: self._keys_of(action, custom.get(action.name)) for action in ACTIONS}
        self.chords = {key: name for name, keys in self._keys.items() for key in keys if " " in key}
        self.first_keys = {key.split()[0] for key in self.chords}

    def _keys_of(self, action: KeyAction, custom: str | None) -> tuple[str, ...]:
        """Return the keys of an action: the default ones if one of its own is not possible."""
        problem = next(filter(None, map(_problem, _normalise(custom or ""))), "")
        if problem:
            self._problems.append(f"{problem}, so {action.name} has its default")
        return _normalise(action.keys if custom is None or problem else custom)

    @property
    def problem(self) -> str:
        """What is wrong with `ui.keys`; empty if nothing is."""
        users: dict[str, list[str]] = {}
        for name, keys in self._keys.items():
            for key in keys:
                users.setdefault(key, []).append(name)
        double = (f"{readable_key(key)} is used for {' and '.join(n)}" for key, n in users.items() if len(n) > 1)
        return "; ".join((*self._problems, *double))

    def keys(self, name: str) -> tuple[str, ...]:
        return self._keys[name]

    def single_keys(self, name: str) -> tuple[str, ...]:
        return tuple(key for key in self._keys[name] if " " not in key)

    def label(self, name: str) -> str:
        """Return the first key of an action in readable form, such as `Ctrl-O`; empty if it has none."""
        keys = self._keys[name]
        return readable_key(keys[0]) if keys else ""


def readable_key(key: str) -> str:
    """Return a key in readable form."""
    if " " in key:
        return " ".join(map(readable_key, key.split()))
    names = {"pageup": "PgUp", "pagedown": "PgDn", "escape": "Esc", "backspace": "Backspace"}
    parts = [names.get(part, part.capitalize() if len(part) > 1 else part.upper()) for part in key.split("+")]
    return "-".join(parts)


def _normalise(keys: str) -> tuple[str, ...]:
    """Return keys as Textual names them; `Ctrl-O` and `ctrl+o` are the same."""
    found = (key.strip().lower().replace("control", "ctrl") for key in keys.split(","))
    return tuple(" ".join(map(_with_plus, key.split())) for key in found if key)


def _with_plus(key: str) -> str:
    modifiers = ("ctrl-", "alt-", "shift-", "super-")
    out = ""
    while key.startswith(modifiers):
        modifier, _, key = key.partition("-")
        out += f"{modifier}+"
    head, plus, last = (out + key).rpartition("+")
    if len(last) == 1 and not last.isalnum():
        name = unicodedata.name(last, last).lower().replace("-", "_").replace(" ", "_")
        last = KEY_NAME_REPLACEMENTS.get(name, name)
    return f"{head}{plus}{last}"


def _problem(key: str) -> str:
    """Return why a key cannot have an action; empty if it can."""
    first = key.split()[0]
    if any(not _is_known(part.rpartition("+")[2]) for part in key.split()):
        return f"there is no key {key!r}"
    return f"{readable_key(first)} is a key of the input" if _is_sign(first) or first in RESERVED else ""


def _is_known(name: str) -> bool:
    return name in NAMES or _is_sign(name)


def _is_sign(name: str) -> bool:
    """Return whether a key without modifiers is text."""
    return name in SIGNS or (key_to_character(name) or "\n").isprintable()
