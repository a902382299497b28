"""Runs the full-screen client until the user quits."""

import signal
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ostler.core.protocols import SessionManager
from ostler.core.sessions import OpenSessionRequest
from ostler.frontends.tui.app import FullScreenApp
from ostler.frontends.tui.options import TuiOptions
from ostler.interaction.chat_exit import ChatExit
from ostler.interaction.signals import STOP_SIGNALS, handled_signals

if TYPE_CHECKING:
    from ostler.interaction.services import CommandServices


class TuiFrontend:
    """The full-screen client."""

    def __init__(
        self, opening: OpenSessionRequest, services: "Callable[[], CommandServices]", options: TuiOptions
    ) -> None:
        self._opening = opening
        self._services = services
        self._options = options

    async def run(self, manager: SessionManager) -> int:
        app = FullScreenApp(self._opening, manager, self._services, self._options)

        def stop(number: signal.Signals) -> None:
            app.leave(ChatExit(128 + number))

        with handled_signals({number: partial(stop, number) for number in STOP_SIGNALS}):
            status = await app.run_async()
        if app.failure:
            raise app.failure
        return app.return_code or 0 if status is None else status
