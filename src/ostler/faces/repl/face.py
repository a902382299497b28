"""The line client: a prompt on the workspace, at the end of the terminal's own scrollback."""

import asyncio
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from ostler.drawing.paint import Paint
from ostler.faces.repl.console import Console, Interrupt, Leave
from ostler.text.sanitise import sanitise
from ostler.vocabulary.errors import OstlerError
from ostler.vocabulary.seams import House, Session
from ostler.vocabulary.sessions import Opening

if TYPE_CHECKING:
    from ostler.commands.services import Services

ENDING = (signal.SIGTERM, signal.SIGHUP)


class Repl:
    """Opens sessions one after the other until the person leaves."""

    def __init__(
        self,
        opening: Opening,
        console: Console,
        paint: Paint,
        services: "Callable[[], Services]",
        details: bool = False,
    ) -> None:
        """`services` are made when the prompt is there; `details`: calls are shown in full from the beginning."""
        self._opening = opening
        self._console = console
        self._paint = paint
        self._services = services
        self._details = details

    async def run(self, house: House) -> int:
        with _Signals(self._console):
            try:
                await self._console.begin()
                from ostler.faces.repl.chat import Chat  # by now the person sees a prompt

                services = self._services()
                session = await house.open(self._opening)
                while True:
                    over = await Chat(session, self._console, self._paint, services, self._details).run()
                    if over.status is not None:
                        return over.status
                    session = await self._enter(house, over.session, session.id)
            finally:
                await self._console.aclose()

    async def _enter(self, house: House, wanted: str, before: str) -> Session:
        """Another session; where that cannot be, the one before again."""
        try:
            session = await house.open(msgspec.structs.replace(self._opening, resume=wanted))
            told = f"· session {session.id}" if wanted else "· a new session"
            self._console.show(["", self._paint(told, "dim")])
            return session
        except OstlerError as error:
            self._console.show([self._paint(f"  {sanitise(str(error))}", "red")])
            return await house.open(msgspec.structs.replace(self._opening, resume=before))


class _Signals:
    """Signals are things the person does: one interrupts, the others leave."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> None:
        self._loop.add_signal_handler(signal.SIGINT, self._console.push, Interrupt())
        for number in ENDING:
            self._loop.add_signal_handler(number, self._console.push, Leave(128 + number, "signal"))

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGINT, *ENDING):
            self._loop.remove_signal_handler(number)
