"""Joins the line client: settings, house, and a console that fits the terminal."""

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ostler.app.folders import project_folder, workspace
from ostler.app.options import RunOptions
from ostler.app.trusting import load_settings
from ostler.drawing.paint import THEMES, Paint, wants_colour, window_columns
from ostler.faces.repl.console import Console
from ostler.faces.repl.face import Repl
from ostler.faces.repl.plain import PlainConsole
from ostler.settings.effective import Settings
from ostler.text.sanitise import sanitise
from ostler.vocabulary.seams import Ground, Session, ToolRunner
from ostler.vocabulary.sessions import Opening, Query, SessionSummary

if TYPE_CHECKING:
    from ostler.app.house import LocalHouse
    from ostler.app.persons import PersonsServices

POOR_TERMINALS = ("", "dumb", "unknown")


class Chatting(msgspec.Struct, frozen=True):
    """The line client from start to exit status."""

    options: RunOptions
    resume: str = ""
    plain: bool = False

    def play(self) -> int:
        """The exit status; errors before the first prompt are raised."""
        try:
            return asyncio.run(self._play())
        finally:
            _let_go()

    async def _play(self) -> int:
        cwd = workspace(self.options.cwd)
        editor = not self.plain and capable()
        columns = partial(window_columns, sys.stdout) if editor else lambda: 0
        paint = Paint(editor and wants_colour(sys.stdout, os.environ), columns=columns)
        settings = load_settings(cwd, trust=self.options.trust)
        ui = settings.config.ui
        paint.theme = ui.theme if ui.theme in THEMES else paint.theme
        console = self._editor(cwd, paint, settings) if editor else _plain()

        def say(line: str) -> None:
            from ostler.drawing.wrap import told_rows

            console.show([paint(row, "dim") for row in told_rows(f"· {sanitise(line)}", paint.columns())])

        house = LateHouse(self.options, say)
        opening = Opening(self.options.cwd, self.options.backend, resume=self.resume, attended=True)

        def services() -> "PersonsServices":
            from ostler.app.persons import PersonsServices

            return PersonsServices(cwd, self.options, house)

        return await Repl(opening, console, paint, services, ui.details).run(house)

    def _editor(self, cwd: Path, paint: Paint, settings: Settings) -> Console:
        from ostler.faces.repl.editor import EditorConsole

        history = None if self.options.ephemeral else project_folder(cwd) / "prompt_history"
        ui = settings.config.ui
        vi = ui.keys.get("editing") == "vi"
        console = EditorConsole(sys.stdout, history, colour=paint.on, vi=vi, bell=ui.bell)
        console.hides = partial(_holds_secret, settings, self.options.model.get("api_key", ""))
        return console


class LateHouse:
    """The house, joined when it is first needed: by then the prompt is there."""

    def __init__(self, options: RunOptions, say: Callable[[str], None]) -> None:
        self._options = options
        self._say = say

    @cached_property
    def _house(self) -> "LocalHouse":
        from ostler.app.house import LocalHouse

        return LocalHouse(self._options, self._say)

    async def open(self, opening: Opening, *, tools: ToolRunner | None = None, ground: Ground | None = None) -> Session:
        return await self._house.open(opening, tools=tools, ground=ground)

    async def list(self, query: Query) -> Sequence[SessionSummary]:
        return await self._house.list(query)

    async def delete(self, session_id: str) -> None:
        await self._house.delete(session_id)


def _holds_secret(settings: Settings, flag: str, text: str) -> bool:
    """Whether a prompt has a secret in it that is in use."""
    from ostler.app.known_secrets import secrets_in_use
    from ostler.text.withheld import Withheld

    return Withheld(secrets_in_use(settings, os.environ, flag)).out_of(text) != text


def capable() -> bool:
    """Whether there is a terminal on both ends that can do more than append lines."""
    if not (_terminal(0) and _terminal(1)) or os.environ.get("TERM", "") in POOR_TERMINALS:
        return False
    try:
        import termios  # noqa: F401  # what the editor needs
    except ImportError:
        return False
    return True


def _terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def _let_go() -> None:
    """Where the terminal is gone, what is left to be written goes nowhere, and is no error at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in (1, 2):
            os.dup2(nowhere, descriptor)


def _plain() -> PlainConsole:
    return PlainConsole(0, sys.stdout, terminal=_terminal(0))
