"""The session overview: all sessions of all projects by state, and the start of new work."""

import os
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import ClassVar

import msgspec
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from ostler.frontends.tui.live_sessions import LiveSession
from ostler.frontends.tui.projects import Activity, StoredState
from ostler.frontends.tui.screens.choice_screen import Choice, ChoiceRows, matching
from ostler.frontends.tui.widgets.text_rows import PAINT, TextRows
from ostler.text.sanitise import sanitise

REFRESH_SECONDS = 1.0
MARKS: dict[Activity, tuple[str, str]] = {"waiting": ("?", "yellow"), "working": ("▶", "green"), "done": ("·", "dim")}
HINTS = (
    ("Enter", "open"),
    ("Ctrl-N", "new session with this text"),
    ("Ctrl-W", "new in a worktree"),
    ("Ctrl-G", "next that waits"),
    ("Esc", "close"),
)


class OverviewRow(msgspec.Struct, frozen=True):
    """A session of the overview. With `is_open`, another process has it open."""

    id: str
    cwd: str
    title: str
    activity: Activity
    details: str = ""
    is_open: bool = False


class OverviewChoice(msgspec.Struct, frozen=True):
    """What to do: open the session, or start a new one in the folder, in a worktree if so chosen."""

    id: str = ""
    cwd: str = ""
    prompt: str = ""
    in_worktree: bool = False


class OverviewScreen(ModalScreen[OverviewChoice | None]):
    """Lists the sessions, those that wait for the user first."""

    DEFAULT_CSS = """
    OverviewScreen { align: left top; background: $background 50%; }
    OverviewScreen > Vertical { width: 100%; height: 100%; background: $surface; padding: 1 1 0 1; }
    OverviewScreen Input, OverviewScreen Input:focus { border: none; height: 1; background: $panel; padding: 0 1;
        margin-bottom: 1; }
    OverviewScreen ChoiceRows { height: 1fr; background: $surface; }
    OverviewScreen TextRows { height: 1; background: $surface; }
    """
    AUTO_FOCUS: ClassVar[str | None] = "Input"

    def __init__(self, live: Iterable[LiveSession], stored: Sequence[StoredState], cwd: str) -> None:
        """`live` are the sessions of this client; `cwd` is where new work starts if no session is selected."""
        super().__init__()
        self._live = live
        self._stored = stored
        self._cwd = cwd
        self._rows: dict[str, OverviewRow] = {}

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Input(placeholder="search sessions, or describe new work")
            yield ChoiceRows()
            yield TextRows(id="overview-hints")

    def on_mount(self) -> None:
        self._show()
        hints = "  ".join(f"{PAINT(key, 'cyan')} {label}" for key, label in HINTS)
        self.query_one(TextRows).show([hints])
        self.set_interval(REFRESH_SECONDS, self._show)

    def _show(self) -> None:
        """Show the current states, with the selected session still selected."""
        self._rows = {row.id: row for row in overview_rows(self._live, self._stored)}
        words = self.query_one(Input).value.casefold().split()
        items = [_choice(row) for row in self._rows.values()]
        self.query_one(ChoiceRows).show(matching(items, words), keep_selected=True)

    @property
    def _selected(self) -> OverviewRow | None:
        chosen = self.query_one(ChoiceRows).selected
        return self._rows.get(chosen.value) if chosen else None

    def on_input_changed(self) -> None:
        self._show()

    def on_input_submitted(self) -> None:
        if row := self._selected:
            self._open(row)
        elif text := self.query_one(Input).value.strip():
            self.dismiss(OverviewChoice(cwd=self._cwd, prompt=text))

    def on_choice_rows_chosen(self, event: ChoiceRows.Chosen) -> None:
        self._open(self._rows[event.value])

    def _open(self, row: OverviewRow) -> None:
        if row.is_open:
            self.query_one(TextRows).show([PAINT("another process has this session open", "yellow")])
        else:
            self.dismiss(OverviewChoice(row.id, row.cwd))

    def on_key(self, event: events.Key) -> None:
        steps = {"up": -1, "down": 1, "pageup": -10, "pagedown": 10}
        if event.key in steps:
            self.query_one(ChoiceRows).move(steps[event.key])
        elif event.key in ("ctrl+n", "ctrl+w"):
            cwd = self._selected.cwd if self._selected else self._cwd
            text = self.query_one(Input).value.strip()
            self.dismiss(OverviewChoice(cwd=cwd, prompt=text, in_worktree=event.key == "ctrl+w"))
        elif event.key == "ctrl+g":
            waiting = next((row for row in self._rows.values() if row.activity == "waiting" and not row.is_open), None)
            if waiting:
                self.dismiss(OverviewChoice(waiting.id, waiting.cwd))
        elif event.key in ("escape", "ctrl+c", "f5"):
            self.dismiss(None)
        else:
            return
        event.stop()
        event.prevent_default()


def overview_rows(live: Iterable[LiveSession], stored: Sequence[StoredState]) -> list[OverviewRow]:
    """Return all sessions: those that wait, those that work, then the others, each newest first."""
    rows = [_live_row(session) for session in live]
    known = {row.id for row in rows}
    rows += [_stored_row(state) for state in stored if state.summary.id not in known]
    order = ("waiting", "working", "done")
    return sorted(rows, key=lambda row: order.index(row.activity))


def _live_row(live: LiveSession) -> OverviewRow:
    where = "shown" if live.is_shown else "open here"
    detail = live.controller.feed.last if live.activity != "done" else ""
    parts = (os.path.basename(live.project.cwd), where, detail)
    return OverviewRow(live.id, live.project.cwd, _one_line(live.title), live.activity, _details(parts))


def _stored_row(state: StoredState) -> OverviewRow:
    summary = state.summary
    turns = f"{summary.turns} turn{'s' * (summary.turns != 1)}"
    where = "open in another process" if state.is_open else ""
    parts = (os.path.basename(summary.cwd), state.branch, _age(summary.changed), turns, where)
    title = _one_line(summary.title) or summary.id
    return OverviewRow(summary.id, summary.cwd, title, state.activity, _details(parts), state.is_open)


def _choice(row: OverviewRow) -> Choice:
    mark, style = MARKS[row.activity]
    label = {"waiting": "waits for you", "working": "working"}.get(row.activity, "")
    return Choice(row.id, row.title, _details((label, row.details)), mark, style)


def _details(parts: Iterable[str]) -> str:
    return " · ".join(_one_line(part) for part in parts if part)


def _one_line(text: str) -> str:
    return " ".join(sanitise(text).split())


def _age(changed: str) -> str:
    """Return how long ago a time was, such as `5 min`."""
    try:
        seconds = time.time() - datetime.fromisoformat(changed).timestamp()
    except ValueError:
        return ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "now"
