"""Runs the demo and verifies it with the original test."""

import asyncio
import os
import shutil
import sys
import tempfile
from contextlib import aclosing
from pathlib import Path

import msgspec

from ostler.app.session_manager import LocalSessionManager
from ostler.core.commands import CommandRequest
from ostler.core.errors import UsageError
from ostler.core.prompt import Prompt, TextContent
from ostler.core.sessions import OpenSessionRequest
from ostler.demo.project import RECORDING, TASK, TEST_COMMAND, write_project, write_test
from ostler.frontends.headless.frontend import HeadlessFrontend
from ostler.frontends.headless.outputs import make_output
from ostler.models.model_choice import ModelChoice, choose_model
from ostler.rendering.style import Styler, is_colour_enabled
from ostler.settings.effective import Settings
from ostler.settings.load import load
from ostler.settings.run_options import RunOptions
from ostler.testing.scripted_model import ScriptedModel
from ostler.workspace.session_workspace import SessionShell

RECORDING_DESCRIPTION = "none found: replaying recorded model replies; tools, edits and tests are real"


class Demo(msgspec.Struct, frozen=True):
    """One run of the demo. It is non-interactive, and succeeds only if the test passes at the end."""

    model: dict[str, str]
    recording: bool = False
    keep: bool = False

    def run(self) -> int:
        folder = Path(tempfile.mkdtemp(prefix="ostler-demo-"))
        try:
            write_project(folder)
            return asyncio.run(self._run(folder))
        finally:
            if not self.keep:
                shutil.rmtree(folder, ignore_errors=True)

    async def _run(self, folder: Path) -> int:
        paint = Styler(is_colour_enabled(sys.stdout, os.environ))
        options = RunOptions(str(folder), self.model, write=True, allow=(f"bash:{TEST_COMMAND} *",), ephemeral=True)
        settings = load(folder, os.environ)
        choice = await self._choose_model(settings)
        _print_lines(
            paint("Ostler demo", "bold"),
            f"  folder  {folder}",
            f"  model   {choice.description}",
            f"  task    {TASK}",
            "",
        )
        manager = LocalSessionManager(options, lambda line: None, choice)
        frontend = HeadlessFrontend(
            OpenSessionRequest(str(folder), interactive=False),
            Prompt("demo", (TextContent(TASK),)),
            make_output("text", paint),
        )
        status = await frontend.run(manager)
        return await self._report_result(folder, status, paint, no_model=choice.description == RECORDING_DESCRIPTION)

    async def _choose_model(self, settings: Settings) -> ModelChoice:
        scripted = ModelChoice(RECORDING_DESCRIPTION, lambda _: ScriptedModel(RECORDING, name="recording"))
        if self.recording:
            return scripted
        try:
            return await choose_model(settings, self.model, os.environ)
        except UsageError:
            if self.model:
                raise
            return scripted

    async def _report_result(self, folder: Path, status: int, paint: Styler, *, no_model: bool) -> int:
        if not await _test_passes(folder):
            _print_lines("", paint("✗ the test still fails; the agent did not fix it", "red"))
            return status or 1
        steps = _next_steps(folder if self.keep else None, no_model=no_model and not self.recording)
        _print_lines("", paint("✓ the test passes", "bold", "green"), "", *steps)
        return 0


async def _test_passes(folder: Path) -> bool:
    """Run the original test in the sandbox: the agent may have changed the test or written harmful code."""
    write_test(folder)
    async with aclosing(SessionShell(str(folder), writable=True, sandbox="prefer")) as shell:
        return (await shell.run(CommandRequest(f"{TEST_COMMAND} test_basket", timeout=60))).exit_code == 0


def _next_steps(folder_to_keep: Path | None, *, no_model: bool) -> list[str]:
    program = os.environ.get("OSTLER_CALLED", "ostler")
    steps = [
        (f'{program} run "what does this project do?"', "read-only"),
        (f'{program} run --write "add a test for …"', "may change files here"),
        (f"{program} undo", "undo these changes"),
        (f"{program} doctor", "check this machine"),
        *([(f"{program} model install", "install a small local model (1.2 GB)")] if no_model else []),
        *([(f"cd {folder_to_keep}", "inspect the result")] if folder_to_keep else []),
    ]
    width = max(len(command) for command, _ in steps)
    return ["Try next, in your own project:", *(f"  {command:<{width}}   {text}" for command, text in steps)]


def _print_lines(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
