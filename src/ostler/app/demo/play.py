"""Plays the demonstration and judges it by the test itself."""

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

import msgspec

from ostler.app.demo.scene import CHECK, RECORDING, TASK, make_scene, restore_test
from ostler.app.grounds import Shell
from ostler.app.house import LocalHouse
from ostler.app.models import ModelChoice, choose_model
from ostler.app.options import RunOptions
from ostler.drawing.paint import Paint, wants_colour
from ostler.faces.printer.face import Printer
from ostler.faces.printer.outputs import make_output
from ostler.settings.effective import Settings
from ostler.settings.load import load
from ostler.testing.scripted_model import ScriptedModel
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.prompt import Prompt, Text
from ostler.vocabulary.seams import Running
from ostler.vocabulary.sessions import Opening

RECORDED = "none found: a recording of one speaks; all the rest is real"


class Demo(msgspec.Struct, frozen=True):
    """One showing; it never asks, and succeeds only if the test passed in the end."""

    model: dict[str, str]
    recording: bool = False
    keep: bool = False

    def play(self) -> int:
        folder = Path(tempfile.mkdtemp(prefix="ostler-demo-"))
        try:
            make_scene(folder)
            return asyncio.run(self._play(folder))
        finally:
            if not self.keep:
                shutil.rmtree(folder, ignore_errors=True)

    async def _play(self, folder: Path) -> int:
        paint = Paint(wants_colour(sys.stdout, os.environ))
        options = RunOptions(str(folder), self.model, write=True, allow=(f"bash:{CHECK} *",), ephemeral=True)
        settings = load(folder, os.environ)
        choice = await self._choose(settings)
        _print(paint("Ostler demo", "bold"), f"  folder  {folder}", f"  model   {choice.told}", f"  task    {TASK}", "")
        house = LocalHouse(options, lambda line: None, choice)
        face = Printer(Opening(str(folder), attended=False), Prompt("demo", (Text(TASK),)), make_output("text", paint))
        status = await face.run(house)
        return await self._judge(folder, status, paint, none_found=choice.told == RECORDED)

    async def _choose(self, settings: Settings) -> ModelChoice:
        scripted = ModelChoice(RECORDED, lambda _: ScriptedModel(RECORDING, name="recording"))
        if self.recording:
            return scripted
        try:
            return await choose_model(settings, self.model, os.environ)
        except UsageError:
            if self.model:
                raise
            return scripted

    async def _judge(self, folder: Path, status: int, paint: Paint, *, none_found: bool) -> int:
        if not await _passes(folder):
            _print("", paint("✗ the test still fails; the agent did not make it", "red"))
            return status or 1
        tries = _next(folder if self.keep else None, none_found=none_found and not self.recording)
        _print("", paint("✓ the test passes", "bold", "green"), "", *tries)
        return 0


async def _passes(folder: Path) -> bool:
    """The test as it was at the start, run like any command: whoever wrote the code may have written more."""
    restore_test(folder)
    shell = Shell(str(folder), writable=True, sandbox="prefer")
    try:
        return (await shell.run(Running(f"{CHECK} test_basket", timeout=60))).exit_code == 0
    finally:
        await shell.aclose()


def _next(kept: Path | None, *, none_found: bool) -> list[str]:
    called = os.environ.get("OSTLER_CALLED", "ostler")
    tries = [
        (f'{called} run "what does this project do?"', "reads, changes nothing"),
        (f'{called} run --write "add a test for …"', "may change files here"),
        (f"{called} undo", "takes that back"),
        (f"{called} doctor", "what this machine has and lacks"),
        *([(f"{called} model install", "a small model on this machine, 1.2 GB, for this demo")] if none_found else []),
        *([(f"cd {kept}", "look at what it did")] if kept else []),
    ]
    width = max(len(command) for command, _ in tries)
    return ["Try next, in a folder of yours:", *(f"  {command:<{width}}   {told}" for command, told in tries)]


def _print(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
