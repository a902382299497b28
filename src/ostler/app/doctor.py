"""The examinations behind `ostler doctor`: each looks at one thing and says what to do."""

import os
import platform
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from ostler.app.models import choose_model
from ostler.app.trusting import settings_for_looking
from ostler.settings.catalogue import catalogue
from ostler.settings.effective import Settings
from ostler.settings.home import ensure_home
from ostler.settings.profiles import unset_in
from ostler.tools.search import ripgrep
from ostler.vocabulary.errors import OstlerError

if TYPE_CHECKING:
    from ostler.processes.proving import Proof


# What Landlock does not hold, in the words of whoever has to live with it.
_NOT_HELD = {
    "chmod": "a command can change the mode of files that are yours, also outside the workspace",
    "protected hooks": "a command can write there; a hook that git would run is set aside when it has ended",
    "protected config": "a command can write there; what would make git run a program is set aside when it has ended",
    "protected by way of its folder": "a command can move .git away; what it makes instead is looked at afterwards",
}


class Finding(msgspec.Struct, frozen=True):
    """What was found: good, poor (it works without) or bad."""

    name: str
    state: Literal["good", "poor", "bad"]
    told: str
    remedy: str = ""


async def examine(cwd: str, model: dict[str, str]) -> list[Finding]:
    """Everything, in the order a person would mend it."""
    found = [_python(), _terminal(), _home()]
    broken: list[str] = []
    try:
        settings = settings_for_looking(Path(cwd).resolve(), broken.append)
    except OstlerError as error:
        config = Finding("config", "bad", error.fault.message, error.fault.hint)
        return [*found, config, await _sandbox(), _git(), _ripgrep()]
    config = Finding("config", "bad", broken[0], "ostler config check") if broken else _config(settings)
    chosen = await _model(settings, model)
    return [*found, config, chosen, *_unset(settings, chosen), await _sandbox(), _git(), _ripgrep()]


def _python() -> Finding:
    return Finding("python", "good", f"{platform.python_version()} ({sys.executable})")


def _terminal() -> Finding:
    term = os.environ.get("TERM", "")
    if not sys.stdout.isatty():
        return Finding("terminal", "poor", "output goes to a file or pipe: no colours, no line client")
    size = shutil.get_terminal_size()
    if term in ("", "dumb"):
        return Finding("terminal", "poor", f"TERM={term or '(unset)'}", "set TERM, e.g. to xterm-256color")
    return Finding("terminal", "good", f"{term}, {size.columns} × {size.lines}")


def _home() -> Finding:
    try:
        return Finding("home", "good", str(ensure_home(os.environ)))
    except OstlerError as error:
        return Finding("home", "bad", error.fault.message, error.fault.hint or "or run with --ephemeral")


def _config(settings: Settings) -> Finding:
    files = sorted({layer.file for layer in settings.layers if layer.file})
    if settings.problems:
        return Finding("config", "poor", str(settings.problems[0]), "ostler config check")
    held = f"; {len(settings.held)} project settings wait for trust" if settings.held else ""
    return Finding("config", "good", (", ".join(files) or "defaults only") + held)


async def _model(settings: Settings, flags: dict[str, str]) -> Finding:
    try:
        return Finding("model", "good", (await choose_model(settings, flags, os.environ)).told)
    except OstlerError as error:
        return Finding("model", "bad", error.fault.message, error.fault.hint)


def _unset(settings: Settings, chosen: Finding) -> list[Finding]:
    """Profiles that could not be used now, for a variable that they refer to is not set."""
    lacking = {candidate.entry.name: unset_in(candidate.entry, os.environ) for candidate in catalogue(settings)}
    return [
        Finding("profile", "poor", f"{name} needs the variable {names[0]}, which is not set", f"set {names[0]}")
        for name, names in lacking.items()
        if names and names[0] not in chosen.told
    ]


async def _sandbox() -> Finding:
    from ostler.processes.proving import probe

    for found in probe():
        if found.available and found.name in ("bubblewrap", "landlock"):
            return Finding("sandbox", "good", f"{found.name} ({found.detail}); `ostler doctor sandbox` proves it")
    return Finding("sandbox", "poor", "commands run without one", "on Debian: apt-get install bubblewrap")


async def examine_sandbox() -> list[Finding]:
    """The sandbox put to the proof: a hostile command really tries, and each thing it tried is told."""
    from ostler.processes.proving import probe, prove

    have = [Finding(found.name, "good" if found.available else "poor", found.detail) for found in probe()]
    proofs = await prove()
    by_landlock = proofs[0].detail == "landlock"
    return have + [_proven(proof, _NOT_HELD.get(proof.name, "") if by_landlock else "") for proof in proofs]


def _proven(proof: "Proof", meaning: str) -> Finding:
    if proof.held or not meaning:
        return Finding(proof.name, "good" if proof.held else "bad", proof.detail)
    remedy = "bubblewrap holds it; on Debian: apt-get install bubblewrap"
    return Finding(proof.name, "bad", f"not held: {meaning}", remedy)


def _git() -> Finding:
    path = shutil.which("git")
    return Finding("git", "good", path) if path else Finding("git", "poor", "not found", "apt-get install git")


def _ripgrep() -> Finding:
    path = ripgrep()
    return Finding("ripgrep", "good", path) if path else Finding("ripgrep", "poor", "not found; search is slower")
