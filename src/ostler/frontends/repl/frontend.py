"""Opens one session after the other until the user quits."""

import signal
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ostler.core.errors import OstlerError
from ostler.core.protocols import Session, SessionManager
from ostler.core.sessions import OpenSessionRequest
from ostler.frontends.repl.console import Console, ExitRequested, InterruptRequested
from ostler.interaction.signals import STOP_SIGNALS, handled_signals
from ostler.rendering.style import Styler
from ostler.text.sanitise import sanitise

if TYPE_CHECKING:
    from ostler.interaction.services import CommandServices


class ReplFrontend:
    """Runs chats one after the other until the user quits."""

    def __init__(
        self,
        opening: OpenSessionRequest,
        console: Console,
        paint: Styler,
        services: "Callable[[], CommandServices]",
        details: bool = False,
    ) -> None:
        """`services` is called after the prompt is shown; `details` shows tool calls in full from the start."""
        self._opening = opening
        self._console = console
        self._paint = paint
        self._services = services
        self._details = details

    async def run(self, manager: SessionManager) -> int:
        with handled_signals(self._signal_handlers()):
            try:
                await self._console.start()
                from ostler.frontends.repl.chat import ChatController  # imported late: the prompt is already visible

                services = self._services()
                session = await manager.open(self._opening)
                while True:
                    chat_exit = await ChatController(session, self._console, self._paint, services, self._details).run()
                    if chat_exit.status is not None:
                        return chat_exit.status
                    session = await self._switch_session(manager, chat_exit.session, session.id)
            finally:
                await self._console.aclose()

    def _signal_handlers(self) -> dict[signal.Signals, Callable[[], None]]:
        """Convert signals to console events: SIGINT interrupts, the others quit."""
        inject = self._console.inject
        quits = {number: partial(inject, ExitRequested(128 + number, "signal")) for number in STOP_SIGNALS}
        return {signal.SIGINT: partial(inject, InterruptRequested()), **quits}

    async def _switch_session(self, manager: SessionManager, session_id: str, previous: str) -> Session:
        """Open another session, or the previous one again if that fails."""
        try:
            session = await manager.open(msgspec.structs.replace(self._opening, resume=session_id))
            title = f"· session {session.id}" if session_id else "· new session"
            self._console.show(["", self._paint(title, "dim")])
            return session
        except OstlerError as error:
            self._console.show([self._paint(f"  {sanitise(str(error))}", "red")])
            return await manager.open(msgspec.structs.replace(self._opening, resume=previous))
