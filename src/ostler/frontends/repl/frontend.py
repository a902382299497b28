"""The line client: a prompt on the workspace, at the end of the terminal's own scrollback."""

import asyncio
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from ostler.core.errors import OstlerError
from ostler.core.protocols import Session, SessionManager
from ostler.core.sessions import OpenSessionRequest
from ostler.frontends.repl.console import Console, ExitRequested, InterruptRequested
from ostler.rendering.style import Styler
from ostler.text.sanitise import sanitise

if TYPE_CHECKING:
    from ostler.commands.services import CommandServices

STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class ReplFrontend:
    """Opens sessions one after the other until the person leaves."""

    def __init__(
        self,
        opening: OpenSessionRequest,
        console: Console,
        paint: Styler,
        services: "Callable[[], CommandServices]",
        details: bool = False,
    ) -> None:
        """`services` are made when the prompt is there; `details`: calls are shown in full from the beginning."""
        self._opening = opening
        self._console = console
        self._paint = paint
        self._services = services
        self._details = details

    async def run(self, manager: SessionManager) -> int:
        with _SignalHandlers(self._console):
            try:
                await self._console.start()
                from ostler.frontends.repl.chat import ChatController  # by now the person sees a prompt

                services = self._services()
                session = await manager.open(self._opening)
                while True:
                    over = await ChatController(session, self._console, self._paint, services, self._details).run()
                    if over.status is not None:
                        return over.status
                    session = await self._switch_session(manager, over.session, session.id)
            finally:
                await self._console.aclose()

    async def _switch_session(self, manager: SessionManager, session_id: str, previous: str) -> Session:
        """Another session; where that cannot be, the one before again."""
        try:
            session = await manager.open(msgspec.structs.replace(self._opening, resume=session_id))
            told = f"· session {session.id}" if session_id else "· a new session"
            self._console.show(["", self._paint(told, "dim")])
            return session
        except OstlerError as error:
            self._console.show([self._paint(f"  {sanitise(str(error))}", "red")])
            return await manager.open(msgspec.structs.replace(self._opening, resume=previous))


class _SignalHandlers:
    """Signals are things the person does: one interrupts, the others leave."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> None:
        self._loop.add_signal_handler(signal.SIGINT, self._console.inject, InterruptRequested())
        for number in STOP_SIGNALS:
            self._loop.add_signal_handler(number, self._console.inject, ExitRequested(128 + number, "signal"))

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGINT, *STOP_SIGNALS):
            self._loop.remove_signal_handler(number)
