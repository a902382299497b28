"""Builds and runs the interactive terminal client."""

import asyncio
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ostler.app.interactive import LazySessionManager, keeps_prompts
from ostler.core.sessions import OpenSessionRequest
from ostler.frontends.repl.frontend import ReplFrontend
from ostler.frontends.repl.plain_console import PlainConsole
from ostler.frontends.repl.terminal import can_edit_lines, is_terminal, silence_closed_output
from ostler.knowledge.trusted_settings import load_settings
from ostler.rendering.style import THEMES, Styler, is_colour_enabled, terminal_columns
from ostler.settings.effective import Settings
from ostler.settings.known_secrets import contains_secret
from ostler.settings.project_paths import project_folder, workspace_path
from ostler.settings.run_options import RunOptions
from ostler.text.sanitise import sanitise

if TYPE_CHECKING:
    from ostler.app.command_services import LocalCommandServices
    from ostler.frontends.repl.line_editor import LineEditorConsole


class ChatClient(msgspec.Struct, frozen=True):
    """The interactive client, with a line editor or with plain input and output."""

    options: RunOptions
    resume: str = ""
    plain: bool = False
    is_default: bool = False  # started without a command, so that the settings choose the frontend

    def run(self) -> int:
        """Run until the user exits and return the exit status. Errors before the first prompt are raised."""
        try:
            return asyncio.run(self._run())
        finally:
            silence_closed_output()

    async def _run(self) -> int:
        cwd = workspace_path(self.options.cwd)
        editor = not self.plain and can_edit_lines()
        columns = partial(terminal_columns, sys.stdout) if editor else lambda: 0
        paint = Styler(editor and is_colour_enabled(sys.stdout, os.environ), columns=columns)
        settings = load_settings(cwd, trust=self.options.trust)
        ui = settings.config.ui
        if self.is_default and editor and ui.frontend == "tui":
            from ostler.app.tui import FullScreenClient

            return await FullScreenClient(self.options, self.resume).run_async()
        paint.theme = ui.theme if ui.theme in THEMES else paint.theme
        line_editor = self._make_line_editor(cwd, paint, settings) if editor else None
        console = line_editor or PlainConsole(0, sys.stdout, is_terminal=is_terminal(0))

        def notify(line: str) -> None:
            from ostler.rendering.wrapping import wrap_notice

            console.show([paint(row, "dim") for row in wrap_notice(f"· {sanitise(line)}", paint.columns())])

        manager = LazySessionManager(self.options, notify, keeps_prompts=not self.resume)
        if line_editor:
            has_secret = partial(contains_secret, settings, self.options.model.get("api_key", ""))
            line_editor.is_sensitive = lambda text: not manager.keeps_prompts or has_secret(text)
        request = OpenSessionRequest(self.options.cwd, self.options.backend, resume=self.resume, interactive=True)

        def services() -> "LocalCommandServices":
            from ostler.app.command_services import LocalCommandServices

            return LocalCommandServices(cwd, self.options, manager)

        return await ReplFrontend(request, console, paint, services, ui.details).run(manager)

    def _make_line_editor(self, cwd: Path, paint: Styler, settings: Settings) -> "LineEditorConsole":
        from ostler.frontends.repl.line_editor import LineEditorConsole

        history = project_folder(cwd) / "prompt_history" if keeps_prompts(self.options) else None
        ui = settings.config.ui
        vi = ui.keys.get("editing") == "vi"
        return LineEditorConsole(sys.stdout, history, colour=paint.enabled, vi=vi, bell=ui.bell)
