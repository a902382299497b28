"""Builds and runs the full-screen client."""

import asyncio
import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from ostler.core.errors import OstlerError, UsageError
from ostler.core.sessions import OpenSessionRequest
from ostler.frontends.repl.terminal import can_edit_lines
from ostler.knowledge.trusted_settings import load_settings
from ostler.settings.home import ensure_home
from ostler.settings.project_paths import workspace_path
from ostler.settings.run_options import RunOptions

THEME_FILE = "tui_theme"


class FullScreenClient(msgspec.Struct, frozen=True):
    """The full-screen client in this terminal. `slow` is for slow connections, `worktree` names a new worktree."""

    options: RunOptions
    resume: str = ""
    worktree: str | None = None
    slow: bool = False
    leave_transcript: bool = False

    def run(self) -> int:
        """Run until the user exits and return the exit status."""
        if not can_edit_lines():
            if sys.stdin.isatty() and sys.stdout.isatty():
                raise UsageError("this terminal has no full screen", hint="use `ostler chat`")
            raise UsageError(
                "the full-screen client needs a terminal", hint='use `ostler run "…"` in scripts and pipes'
            )
        return asyncio.run(self.run_async())

    async def run_async(self) -> int:
        """Run in the current event loop."""
        try:
            from ostler.app.tui_projects import LocalProjects
            from ostler.frontends.tui.frontend import TuiFrontend
            from ostler.frontends.tui.options import SLOW_FRAMES, TuiOptions
        except ModuleNotFoundError as error:
            if error.name not in ("textual", "rich"):
                raise
            command = f"{os.environ['OSTLER_CALLED']} tui" if os.environ.get("OSTLER_CALLED") else ""
            hint = f"run `{command}`" if command else "run `pip install 'ostler[tui]'`"
            raise UsageError("the full-screen client is not installed", hint=hint) from None
        cwd = workspace_path(self.options.cwd)
        ui = load_settings(cwd, trust=self.options.trust).config.ui
        state = ensure_home(os.environ) / THEME_FILE
        given = self.options
        if self.worktree is not None:
            from ostler.workspace.worktrees import add_worktree

            cwd = await asyncio.to_thread(add_worktree, cwd, self.worktree)
            given = msgspec.structs.replace(given, cwd=str(cwd))  # the flags are for the worktree
        projects = LocalProjects(given)
        options = TuiOptions(
            theme=ui.theme or (state.read_text(errors="replace").strip() if state.is_file() else ""),
            keys=ui.keys,
            details=ui.details,
            bell=ui.bell,
            arcade="off" if self.slow else ui.arcade,
            animations=ui.animations and not self.slow,
            leave_transcript=self.leave_transcript,
            remember_theme=partial(_write_line, state),
            frames_per_second=SLOW_FRAMES if self.slow else 30.0,
            projects=projects,
        )
        request = OpenSessionRequest(str(cwd), given.backend, resume=self.resume, interactive=True)
        project = projects.open(str(cwd), given.backend)
        try:
            return await TuiFrontend(request, project, options).run(project.manager)
        except OstlerError:  # no session could be opened
            if self.worktree is not None:
                from ostler.app.worktrees import remove

                with suppress(OstlerError):
                    await asyncio.to_thread(remove, str(cwd), cwd.name)
            raise


def _write_line(path: Path, line: str) -> None:
    """Write a line if that is possible; it is only remembered for the next start."""
    with suppress(OSError):
        path.write_text(f"{line}\n")
