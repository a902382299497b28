"""Tells the editor the title of a session, as the list of sessions shows it."""

from ostler.core.events import Envelope, Renamed, Reverted, TurnStarted
from ostler.text.session_title import session_title
from ostler.wire.acp_updates import SessionInfoUpdate


class TitleUpdates:
    """Follows the title: the first prompt, until the session is renamed. `on_event` must receive every event."""

    def __init__(self) -> None:
        self.title = ""
        self._named = False
        self._first_words = ""
        self._first_seq = 0

    def on_event(self, envelope: Envelope) -> SessionInfoUpdate | None:
        """Return an update if the title changed to another one."""
        before = self.title
        match envelope.event:
            case TurnStarted(_, prompt) if not self.title:
                self.title = self._first_words = session_title(prompt.text)
                self._first_seq = envelope.seq
            case Renamed(title) if title:
                self.title, self._named = session_title(title), True
            case Reverted(to_seq) if not self._named:  # a reverted prompt does not name the session
                self.title = self._first_words if to_seq >= self._first_seq else ""
            case _:
                return None
        return SessionInfoUpdate(self.title) if self.title not in ("", before) else None
