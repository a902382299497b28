"""Plays the demonstration and judges it by the test itself."""

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

import msgspec

from ostler.app.demo.project import RECORDING, TASK, TEST_COMMAND, write_project, write_test
from ostler.app.model_choice import ModelChoice, choose_model
from ostler.app.run_options import RunOptions
from ostler.app.session_manager import LocalSessionManager
from ostler.app.session_workspace import SessionShell
from ostler.core.errors import UsageError
from ostler.core.prompt import Prompt, TextContent
from ostler.core.protocols import CommandRequest
from ostler.core.sessions import OpenSessionRequest
from ostler.frontends.headless.frontend import HeadlessFrontend
from ostler.frontends.headless.outputs import make_output
from ostler.rendering.style import Styler, is_colour_enabled
from ostler.settings.effective import Settings
from ostler.settings.load import load
from ostler.testing.scripted_model import ScriptedModel

RECORDING_DESCRIPTION = "none found: a recording of one speaks; all the rest is real"


class Demo(msgspec.Struct, frozen=True):
    """One showing; it never asks, and succeeds only if the test passed in the end."""

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
        face = HeadlessFrontend(
            OpenSessionRequest(str(folder), interactive=False),
            Prompt("demo", (TextContent(TASK),)),
            make_output("text", paint),
        )
        status = await face.run(manager)
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
            _print_lines("", paint("✗ the test still fails; the agent did not make it", "red"))
            return status or 1
        tries = _next_steps(folder if self.keep else None, no_model=no_model and not self.recording)
        _print_lines("", paint("✓ the test passes", "bold", "green"), "", *tries)
        return 0


async def _test_passes(folder: Path) -> bool:
    """The test as it was at the start, run like any command: whoever wrote the code may have written more."""
    write_test(folder)
    shell = SessionShell(str(folder), writable=True, sandbox="prefer")
    try:
        return (await shell.run(CommandRequest(f"{TEST_COMMAND} test_basket", timeout=60))).exit_code == 0
    finally:
        await shell.aclose()


def _next_steps(kept_folder: Path | None, *, no_model: bool) -> list[str]:
    called = os.environ.get("OSTLER_CALLED", "ostler")
    tries = [
        (f'{called} run "what does this project do?"', "reads, changes nothing"),
        (f'{called} run --write "add a test for …"', "may change files here"),
        (f"{called} undo", "takes that back"),
        (f"{called} doctor", "what this machine has and lacks"),
        *([(f"{called} model install", "a small model on this machine, 1.2 GB, for this demo")] if no_model else []),
        *([(f"cd {kept_folder}", "look at what it did")] if kept_folder else []),
    ]
    width = max(len(command) for command, _ in tries)
    return ["Try next, in a folder of yours:", *(f"  {command:<{width}}   {told}" for command, told in tries)]


def _print_lines(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
