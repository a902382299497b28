"""The keys of the full-screen client: one table for the bindings, the help and the command palette."""

from collections.abc import Mapping

import msgspec


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
    KeyAction("withdraw", "alt+q", "take back the prompt that was queued last", "input"),
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
GROUPS = {"general": "GENERAL", "input": "INPUT", "transcript": "TRANSCRIPT", "copy": "COPY"}
BY_NAME = {action.name: action for action in ACTIONS}
RESERVED = ("enter", "tab", "escape", "up", "down", "left", "right", "backspace")
EDITING = "editing"  # the setting that is not an action: "vi" or "emacs"


class KeyTable:
    """The keys of every action, with those of `ui.keys`."""

    def __init__(self, custom: Mapping[str, str] | None = None) -> None:
        custom = custom or {}
        self.vi = custom.get(EDITING) == "vi"
        self._unknown = sorted(set(custom) - set(BY_NAME) - {EDITING})
        self._keys = {action.name: _normalise(custom.get(action.name, action.keys)) for action in ACTIONS}
        self.chords = {key: name for name, keys in self._keys.items() for key in keys if " " in key}
        self.first_keys = {key.split()[0] for key in self.chords}

    @property
    def problem(self) -> str:
        """What is wrong with `ui.keys`; empty if nothing is."""
        if self._unknown:
            return f"there is no action {self._unknown[0]!r}"
        users: dict[str, list[str]] = {key: ["the input"] for key in RESERVED}
        for name, keys in self._keys.items():
            for key in keys:
                users.setdefault(key, []).append(name)
        return next(
            (f"{readable_key(key)} is used for {' and '.join(n)}" for key, n in users.items() if len(n) > 1), ""
        )

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
    return out + key
