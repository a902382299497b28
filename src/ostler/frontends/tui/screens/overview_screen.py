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
from textual.widgets import Input

from ostler.frontends.tui.live_sessions import LiveSession
from ostler.frontends.tui.projects import Activity, ProjectAccess, StoredState
from ostler.frontends.tui.screens.dialog import Dialog
from ostler.frontends.tui.strips import PAINT
from ostler.frontends.tui.widgets.choice_rows import Choice, ChoiceRows, matching
from ostler.frontends.tui.widgets.key_hints import KeyHints
from ostler.frontends.tui.widgets.line_field import LineField
from ostler.frontends.tui.widgets.text_rows import TextRows
from ostler.frontends.tui.workers import start_work
from ostler.text.sanitise import sanitise
from ostler.text.width import clip, width

REFRESH_SECONDS = 1.0
REFRESHES_PER_LIST = 3  # stored sessions are listed again with every third refresh
SIDEBAR_COLUMNS = 120  # from this width, the overview is a sidebar and the session stays visible
PROJECT_COLUMNS, BRANCH_COLUMNS = 16, 18
MARKS: dict[Activity, tuple[str, str]] = {"waiting": ("?", "yellow"), "working": ("▶", "green"), "done": ("·", "dim")}
GROUPS: dict[Activity, str] = {"waiting": "WAITING FOR YOU", "working": "WORKING", "done": "DONE"}
HINTS = (
    ("Enter", "open"),
    ("Ctrl-N", "start new work"),
    ("Esc", "close"),
    ("Ctrl-W", "in a worktree"),
    ("Ctrl-G", "next that waits"),
)
NEW_WORK_HINTS = (("Enter", "start new work with this text"), ("Ctrl-W", "in a worktree"), ("Esc", "close"))


class OverviewRow(msgspec.Struct, frozen=True):
    """A session of the overview. With `is_open`, another process has it open."""

    id: str
    cwd: str
    title: str
    activity: Activity
    branch: str = ""
    details: str = ""
    is_open: bool = False
    backend: str = ""


class OverviewChoice(msgspec.Struct, frozen=True):
    """What to do: open the session, or start a new one in the folder, in a worktree if so chosen."""

    id: str = ""
    cwd: str = ""
    prompt: str = ""
    in_worktree: bool = False
    backend: str = ""


class OverviewScreen(Dialog[OverviewChoice | None]):
    """Lists the sessions, those that wait for the user first."""

    DEFAULT_CSS = """
    OverviewScreen { align: left top; background: $background 60%; }
    OverviewScreen > Vertical { width: 100%; height: 100%; background: $surface; padding: 1 1 0 1; }
    OverviewScreen.sidebar > Vertical { width: 84; border-right: outer $panel; }
    OverviewScreen #overview-title { margin-bottom: 1; }
    OverviewScreen Input, OverviewScreen Input:focus { border: none; height: 1; background: $panel; padding: 0 1;
        margin-bottom: 1; }
    OverviewScreen ChoiceRows { height: 1fr; background: $surface; }
    OverviewScreen TextRows { height: 1; background: $surface; }
    """
    AUTO_FOCUS: ClassVar[str | None] = "Input"

    def __init__(
        self,
        live: Iterable[LiveSession],
        stored: Sequence[StoredState],
        projects: ProjectAccess | None,
        cwd: str,
    ) -> None:
        """`live` are the sessions of this client; `cwd` is where new work starts if no session is selected."""
        super().__init__()
        self._live = live
        self._stored = stored
        self._of_servers: Sequence[StoredState] = ()
        self._projects = projects
        self._refreshes = 0
        self._cwd = cwd
        self._rows: dict[str, OverviewRow] = {}

    def compose(self) -> ComposeResult:
        with Vertical():
            yield TextRows(id="overview-title", margin=1)
            yield LineField(placeholder="search, or describe new work")
            yield ChoiceRows()
            yield KeyHints(id="overview-hints", margin=1)

    def on_mount(self) -> None:
        self._show()
        start_work(self, self._list_servers, "servers", exclusive=True)
        self.set_interval(REFRESH_SECONDS, self._refresh)

    def on_resize(self) -> None:
        self.set_class(self.size.width >= SIDEBAR_COLUMNS, "sidebar")

    def _refresh(self) -> None:
        self._refreshes += 1
        if self._refreshes % REFRESHES_PER_LIST == 0:
            start_work(self, self._list_again, "sessions", exclusive=True)
        self._show()

    async def _list_again(self) -> None:
        if self._projects:
            self._stored = await self._projects.sessions()
            self._show()
            await self._list_servers()

    async def _list_servers(self) -> None:
        if self._projects and (found := await self._projects.server_sessions()) != self._of_servers:
            self._of_servers = found
            self._show()

    def _show(self) -> None:
        """Show the current states, with the selected session still selected."""
        self._rows = {row.id: row for row in overview_rows(self._live, [*self._stored, *self._of_servers])}
        words = self.query_one(Input).value.casefold().split()
        found = matching(_choices(self._rows.values()), words)
        self.query_one(ChoiceRows).show(found, keep_selected=True)
        counts = [f"{count} {name.lower()}" for name, count in _counts(self._rows.values()) if count]
        title = PAINT("Sessions of all projects", "bold") + PAINT(f"  {', '.join(counts)}", "dim")
        self.query_one("#overview-title", TextRows).show([title])
        self.query_one(KeyHints).show_hints(HINTS if found or not words else NEW_WORK_HINTS)

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
            note = PAINT("another process has this session open", "yellow")
            self.query_one("#overview-title", TextRows).show([note])
        else:
            self.dismiss(OverviewChoice("" if row.backend else row.id, row.cwd, backend=row.backend))

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
    """Return all sessions that were used: those that wait, those that work, then the others, each newest first."""
    rows = [_live_row(session) for session in live]
    known = {row.id for row in rows} | {session.server_id for session in live}
    rows += [_stored_row(state) for state in stored if state.summary.turns and state.summary.id not in known]
    order = ("waiting", "working", "done")
    return sorted(rows, key=lambda row: order.index(row.activity))


def _live_row(live: LiveSession) -> OverviewRow:
    where = "shown" if live.is_shown else "open here"
    detail = live.controller.news if live.activity != "done" else ""
    branch = next((label for label in live.controller.environment_labels if not label.startswith("sandbox ")), "")
    details = _details((where, detail))
    return OverviewRow(live.id, live.project.cwd, _one_line(live.title), live.activity, branch, details)


def _stored_row(state: StoredState) -> OverviewRow:
    summary = state.summary
    turns = f"{summary.turns} turn{'s' * (summary.turns != 1)}"
    where = "in another process" if state.is_open else f"on {state.server}" if state.server else ""
    title = _one_line(summary.title) or summary.id
    details = _details((_age(summary.changed), turns, where))
    return OverviewRow(
        summary.id, summary.cwd, title, state.activity, state.branch, details, state.is_open, state.backend
    )


def _choices(rows: Iterable[OverviewRow]) -> list[Choice]:
    """Return the rows as items, with projects and branches in columns."""
    rows = list(rows)
    projects = _column([os.path.basename(row.cwd) for row in rows], PROJECT_COLUMNS)
    branches = _column([row.branch for row in rows], BRANCH_COLUMNS)
    items = []
    for row, project, branch in zip(rows, projects, branches, strict=True):
        mark, style = MARKS[row.activity]
        description = "  ".join(filter(None, (project, branch, row.details)))
        items.append(Choice(row.id, row.title, description, mark, style, group=GROUPS[row.activity]))
    return items


def _column(texts: Iterable[str], max_columns: int) -> list[str]:
    """Return texts of the same width, not wider than needed."""
    clipped = [clip(_one_line(text), max_columns) for text in texts]
    columns = max(map(width, clipped), default=0)
    return [text + " " * (columns - width(text)) for text in clipped]


def _counts(rows: Iterable[OverviewRow]) -> Iterable[tuple[str, int]]:
    found = [row.activity for row in rows]
    return ((name, found.count(activity)) for activity, name in GROUPS.items())


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
