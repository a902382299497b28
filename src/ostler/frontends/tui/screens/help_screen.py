"""The help: all keys and slash commands."""

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen

from ostler.frontends.tui.keys import ACTIONS, KeyTable, readable_key
from ostler.frontends.tui.widgets.scroll_rows import ScrollRows
from ostler.frontends.tui.widgets.text_rows import PAINT
from ostler.interaction.builtin_commands import COMMANDS
from ostler.interaction.dispatcher import INPUT_HELP

GROUPS = {"general": "GENERAL", "input": "INPUT", "transcript": "TRANSCRIPT", "copy": "COPY"}


class HelpScreen(ModalScreen[None]):
    """Lists the keys and commands; any key that does not scroll closes it."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: $background 50%; }
    HelpScreen ScrollRows { width: 84; max-width: 96%; height: 90%; background: $surface; padding: 1 2; }
    """
    AUTO_FOCUS: ClassVar[str | None] = ""

    def __init__(self, keys: KeyTable) -> None:
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        yield ScrollRows(id="help")

    def on_mount(self) -> None:
        self.query_one(ScrollRows).show(help_lines(self._keys))

    def on_key(self, event: events.Key) -> None:
        event.stop()
        body = self.query_one(ScrollRows)
        if event.key in ("up", "down"):
            body.scroll_rows(1 if event.key == "down" else -1)
        elif event.key in ("pageup", "pagedown"):
            body.page(1 if event.key == "pagedown" else -1)
        else:
            self.dismiss(None)


def help_lines(keys: KeyTable) -> list[str]:
    """Return the keys by group, then the slash commands."""
    lines: list[str] = []
    for group, title in GROUPS.items():
        lines += ["", PAINT(title, "bold")] if lines else [PAINT(title, "bold")]
        for action in ACTIONS:
            if action.group == group:
                names = ", ".join(map(readable_key, keys.keys(action.name))) or "–"
                lines.append(f"  {PAINT(f'{names:<26}', 'cyan')} {action.description}")
    columns = max(len(command.usage) for command in COMMANDS.values())
    commands = [f"  {PAINT(f'{c.usage:<{columns}}', 'cyan')} {c.description}" for c in COMMANDS.values()]
    return [*lines, "", PAINT("COMMANDS", "bold"), *commands, "", INPUT_HELP]
