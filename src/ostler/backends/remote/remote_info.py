"""What the frontend learns about the session on the server: its options and title, where it is, where the tools run."""

from collections.abc import Callable, Sequence

import msgspec

from ostler.backends.remote.server import SESSIONS, ServerAddress
from ostler.core.events import Event, InfoChanged, Renamed
from ostler.core.sessions import OptionChoice, SessionInfo, SessionOption
from ostler.wire.server_frames import SessionCreated

NAME = "remote"
_OPTIONS = ("model", "thinking")


class RemoteInfo:
    """Emits `InfoChanged` and `Renamed` when something changes after the session was opened."""

    def __init__(
        self,
        address: ServerAddress,
        session_id: str,
        model: str,
        models: Sequence[str],
        describe_tools: Callable[[], str],
        emit: Callable[[Event], None],
    ) -> None:
        server = f"unix:{address.unix}" if address.unix else address.url
        self._url = f"{server}{SESSIONS}/{session_id}"
        choices = tuple(map(OptionChoice, models))
        self._options: tuple[SessionOption, ...] = (SessionOption("model", model, choices=choices, has_default=True),)
        self._describe_tools = describe_tools
        self._emit = emit
        self._title = ""
        self._connection = "connected"
        self._reported: SessionInfo | None = None  # None until the session is open

    def open(self) -> SessionInfo:
        """Return the info of the opened session; later changes are emitted."""
        self._reported = self._current()
        return self._reported

    def on_connected(self, created: SessionCreated) -> None:
        self._connection = "connected"
        if created.model:
            self._options = tuple(
                msgspec.structs.replace(option, value=created.model) if option.id == "model" else option
                for option in self._options
            )
        self.set_title(created.title)
        self.report()

    def on_disconnected(self) -> None:
        self._connection = "not connected, trying again"
        self.report()

    def on_stopped(self) -> None:
        self._connection = "ended"
        self.report()

    def on_info(self, info: SessionInfo) -> None:
        """Take the options that also a client can set from the server's info."""
        self._options = tuple(option for option in info.options if option.id in _OPTIONS) or self._options
        self.report()

    def set_title(self, title: str) -> None:
        if title and title != self._title:
            self._title = title
            self._emit(Renamed(title))

    def report(self) -> None:
        """Emit the info if it changed."""
        if self._reported is not None and (current := self._current()) != self._reported:
            self._reported = current
            self._emit(InfoChanged(current))

    def _current(self) -> SessionInfo:
        facts = (("server", self._url), ("state", self._connection), ("tools", self._describe_tools()))
        return SessionInfo(
            NAME, self._options, can_steer=True, title=self._title, can_take_over=True, keeps_queue=True, facts=facts
        )
