"""Runs the full-screen client until the user quits."""

import os
import signal
import sys
from functools import partial

from ostler.core.protocols import SessionManager
from ostler.core.sessions import OpenSessionRequest
from ostler.frontends.tui.app import FullScreenApp
from ostler.frontends.tui.options import TuiOptions
from ostler.frontends.tui.projects import OpenedProject
from ostler.frontends.tui.terminal_guard import TerminalGuard
from ostler.interaction.chat_exit import ChatExit
from ostler.interaction.signals import ALL_STOP_SIGNALS, handled_signals
from ostler.rendering.measure import plain_text
from ostler.rendering.style import is_colour_enabled


class TuiFrontend:
    """The full-screen client."""

    def __init__(self, opening: OpenSessionRequest, project: OpenedProject, options: TuiOptions) -> None:
        self._opening = opening
        self._project = project
        self._options = options

    async def run(self, manager: SessionManager) -> int:
        guard = TerminalGuard()
        app = FullScreenApp(self._opening, self._project, self._options, on_first_frame=guard.start)

        def stop(number: signal.Signals) -> None:
            if number != signal.SIGINT or not app.is_suspended:  # Ctrl-C in another program is not for this one
                app.leave(ChatExit(128 + number))

        try:
            with handled_signals({number: partial(stop, number) for number in ALL_STOP_SIGNALS}):
                status = await app.run_async()
        finally:
            guard.close()
        has_colour = is_colour_enabled(sys.stdout, os.environ)
        for line in app.final_lines:
            sys.stdout.write(f"{line if has_colour else plain_text(line)}\n")
        if app.failure:
            raise app.failure
        return app.return_code or 1 if status is None else status  # no status: Textual has shown an error
