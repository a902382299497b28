"""Builds and runs the full-screen client."""

import asyncio
import os
from functools import partial
from pathlib import Path

import msgspec

from ostler.app.chat import LazySessionManager, can_edit_lines, contains_secret
from ostler.app.command_services import LocalCommandServices
from ostler.core.errors import UsageError
from ostler.core.sessions import OpenSessionRequest
from ostler.knowledge.trusted_settings import load_settings
from ostler.settings.home import ensure_home
from ostler.settings.project_paths import project_folder, workspace_path
from ostler.settings.run_options import RunOptions

THEME_FILE = "tui_theme"


class FullScreenClient(msgspec.Struct, frozen=True):
    """The full-screen client in this terminal."""

    options: RunOptions
    resume: str = ""

    def run(self) -> int:
        """Run until the user exits and return the exit status."""
        if not can_edit_lines():
            raise UsageError(
                "the full-screen client needs a terminal", hint='use `ostler run "…"` in scripts and pipes'
            )
        return asyncio.run(self.run_async())

    async def run_async(self) -> int:
        """Run in the current event loop."""
        try:
            from ostler.frontends.tui.frontend import TuiFrontend
            from ostler.frontends.tui.options import TuiOptions
        except ModuleNotFoundError as error:
            if error.name not in ("textual", "rich"):
                raise
            command = f"{os.environ['OSTLER_CALLED']} tui" if os.environ.get("OSTLER_CALLED") else ""
            hint = f"run `{command}`" if command else "run `pip install 'ostler[tui]'`"
            raise UsageError("the full-screen client is not installed", hint=hint) from None
        cwd = workspace_path(self.options.cwd)
        settings = load_settings(cwd, trust=self.options.trust)
        ui = settings.config.ui
        state = ensure_home(os.environ) / THEME_FILE
        manager = LazySessionManager(self.options, lambda line: None)
        options = TuiOptions(
            project=str(cwd),
            theme=ui.theme or (state.read_text().strip() if state.is_file() else ""),
            keys=ui.keys,
            details=ui.details,
            bell=ui.bell,
            history=None if self.options.ephemeral else project_folder(cwd) / "prompt_history",
            is_sensitive=partial(contains_secret, settings, self.options.model.get("api_key", "")),
            remember_theme=partial(_write_line, state),
        )
        request = OpenSessionRequest(self.options.cwd, self.options.backend, resume=self.resume, interactive=True)
        return await TuiFrontend(request, partial(LocalCommandServices, cwd, self.options, manager), options).run(
            manager
        )


def _write_line(path: Path, line: str) -> None:
    path.write_text(f"{line}\n")
