"""The sessions that are open in this client. One is shown; the others continue in the background."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from ostler.core.events import RemoteCursor
from ostler.core.protocols import Session
from ostler.frontends.tui.projects import Activity, OpenedProject
from ostler.frontends.tui.transcript.model import TranscriptModel
from ostler.interaction.chat_exit import ChatExit
from ostler.interaction.services import CommandServices

if TYPE_CHECKING:
    from ostler.frontends.tui.screens.chat_screen import ChatScreen


class LiveSession:
    """An open session with its project and controller. It passes to the screen what the screen may show."""

    def __init__(
        self,
        session: Session,
        project: OpenedProject,
        services: CommandServices,
        model: TranscriptModel,
        owner: "LiveSessions",
        backend: str,
    ) -> None:
        """`backend` is what was requested; empty for the one of the project or of the stored session."""
        self.project = project
        self.backend = backend
        self.draft = ""  # the text of the input while the session is not shown
        self.screen = owner.screen
        self._owner = owner
        from ostler.frontends.tui.session_controller import SessionController  # after the first frame

        self.controller: SessionController = SessionController(session, services, self, model, owner.themes)

    @property
    def id(self) -> str:
        return self.controller.session.id

    @property
    def title(self) -> str:
        return self.controller.title

    @property
    def server_id(self) -> str:
        """The id of the session at its server; empty if it has none."""
        records = self.controller.session.records()
        last = max(records.indexes_of(["far_mark"]), default=-1)
        cursor = records[last].event if last >= 0 else None
        return cursor.epoch.partition("/")[0] if isinstance(cursor, RemoteCursor) else ""

    @property
    def activity(self) -> Activity:
        if self.controller.requests.has_unanswered:
            return "waiting"
        return "working" if self.controller.turns.busy else "done"

    @property
    def is_shown(self) -> bool:
        return self._owner.shown is self

    # -- what the screen shows of it -----------------------------------------------------------------------------

    def show_status(self) -> None:
        """Show the current status; called after every event except text."""
        self.screen.show_status()

    def show_requests(self) -> None:
        """Show the first open request, or close the dialog if there is none."""
        if self.is_shown:
            self.screen.show_requests()
        else:
            self.screen.show_status()

    def restore_draft(self, text: str) -> None:
        if self.is_shown:
            self.screen.restore_draft(text)
        else:
            self.draft = f"{text}\n{self.draft}" if self.draft else text

    def alert(self, message: str) -> None:
        self.screen.owner.alert(message if self.is_shown else f"{message} ({self.title})")

    async def edit(self, path: str) -> bool:
        return await self.screen.edit_file(path)

    def leave(self, chat_exit: ChatExit) -> None:
        self._owner.on_leave(self, chat_exit)


class LiveSessions:
    """All open sessions, in the order in which they were opened."""

    def __init__(
        self, screen: "ChatScreen", themes: list[str], on_leave: Callable[[LiveSession, ChatExit], None]
    ) -> None:
        self.screen = screen
        self.themes = themes
        self.on_leave = on_leave
        self.shown: LiveSession | None = None
        self._by_id: dict[str, LiveSession] = {}

    def __iter__(self) -> Iterator[LiveSession]:
        return iter(tuple(self._by_id.values()))

    def find(self, session_id: str) -> LiveSession | None:
        return self._by_id.get(session_id)

    def add(self, live: LiveSession) -> None:
        self._by_id[live.id] = live

    def remove(self, live: LiveSession) -> None:
        self._by_id.pop(live.id, None)
        if self.shown is live:
            self.shown = None

    @property
    def others(self) -> "OtherSessions":
        """How many sessions in the background wait or work."""
        found = [live.activity for live in self if live is not self.shown]
        return OtherSessions(found.count("waiting"), found.count("working"))

    def next_waiting(self) -> LiveSession | None:
        """Return the next session after the shown one that waits for the user."""
        sessions = list(self)
        start = sessions.index(self.shown) + 1 if self.shown in sessions else 0
        return next((live for live in sessions[start:] + sessions[:start] if live.activity == "waiting"), None)


class OtherSessions(msgspec.Struct, frozen=True):
    """How many sessions in the background wait for the user, and how many work."""

    waiting: int = 0
    working: int = 0

    def __bool__(self) -> bool:
        return bool(self.waiting or self.working)

    def __str__(self) -> str:
        asking = f"{self.waiting} ask{'s' * (self.waiting == 1)} you" if self.waiting else ""
        parts = (asking, f"{self.working} working" if self.working else "")
        return ", ".join(filter(None, parts))
