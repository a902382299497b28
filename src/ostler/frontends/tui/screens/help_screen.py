"""The help: all keys and slash commands."""

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical

from ostler.frontends.tui.keys import ACTIONS, GROUPS, KeyTable, readable_key
from ostler.frontends.tui.screens.dialog import Dialog
from ostler.frontends.tui.strips import PAINT
from ostler.frontends.tui.widgets.key_hints import KeyHints
from ostler.frontends.tui.widgets.scroll_rows import ScrollRows
from ostler.interaction.builtin_commands import COMMANDS
from ostler.interaction.dispatcher import INPUT_HELP
from ostler.rendering.wrapping import wrap, wrap_notice

MAX_COLUMNS = 96
WIDE_COLUMNS = 70
NAME_COLUMNS, NARROW_NAME_COLUMNS = 28, 10
HINTS = (("↑↓ PgUp PgDn", "scroll"), ("any other key", "closes"))


class HelpScreen(Dialog[None]):
    """Lists the keys and commands; any key that does not scroll closes it."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: $background 60%; }
    HelpScreen > Vertical { width: 96; max-width: 96%; height: 90%; background: $surface; padding: 1 2; }
    HelpScreen ScrollRows { height: 1fr; background: $surface; }
    HelpScreen KeyHints { height: 1; margin-top: 1; background: $surface; }
    """
    AUTO_FOCUS: ClassVar[str | None] = ""

    def __init__(self, keys: KeyTable) -> None:
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        with Vertical():
            yield ScrollRows(id="help")
            yield KeyHints(id="help-hints")

    def on_resize(self) -> None:
        columns = min(self.size.width * 96 // 100, MAX_COLUMNS) - 5
        self.query_one(ScrollRows).show(help_lines(self._keys, columns))
        self.query_one(KeyHints).show_hints(HINTS)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        body = self.query_one(ScrollRows)
        if event.key in ("up", "down"):
            body.scroll_rows(1 if event.key == "down" else -1)
        elif event.key in ("pageup", "pagedown"):
            body.page(1 if event.key == "pagedown" else -1)
        else:
            self.dismiss(None)


def help_lines(keys: KeyTable, columns: int) -> list[str]:
    """Return the keys by group, then the slash commands, each with its description beside or below it."""
    rows = [(PAINT(title, "bold"), _key_rows(keys, group)) for group, title in GROUPS.items()]
    commands = [(command.usage, command.description) for command in COMMANDS.values()]
    lines: list[str] = []
    for title, entries in (*rows, (PAINT("COMMANDS", "bold"), commands)):
        lines += ["", title] if lines else [title]
        lines += [line for entry in entries for line in _entry_lines(*entry, columns)]
    return [*lines, "", *wrap_notice(INPUT_HELP, columns)]


def _key_rows(keys: KeyTable, group: str) -> list[tuple[str, str]]:
    found = [action for action in ACTIONS if action.group == group]
    palette = f"{keys.label('palette')}, then choose it"
    return [(", ".join(map(readable_key, keys.keys(a.name))) or palette, a.description) for a in found]


def _entry_lines(name: str, description: str, columns: int) -> list[str]:
    """Return the name and the description in two columns; the description of a long name is below it."""
    name_columns = NAME_COLUMNS if columns >= WIDE_COLUMNS else NARROW_NAME_COLUMNS
    indent = " " * (name_columns + 4)
    rows = wrap(f"{indent}{description}", columns, indent)
    if len(name) > name_columns:
        return [f"  {PAINT(name, 'cyan')}", *rows]
    rows[0] = f"  {PAINT(f'{name:<{name_columns}}', 'cyan')}  {rows[0].removeprefix(indent)}"
    return rows
