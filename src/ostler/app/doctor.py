"""The examinations behind `ostler doctor`: each looks at one thing and says what to do."""

import os
import platform
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from ostler.app.model_choice import choose_model
from ostler.app.trusted_settings import load_settings_leniently
from ostler.core.errors import OstlerError
from ostler.settings.effective import Settings
from ostler.settings.home import ensure_home
from ostler.settings.model_catalogue import list_candidates
from ostler.settings.model_profiles import unset_profile_variables
from ostler.tools.search import find_ripgrep

if TYPE_CHECKING:
    from ostler.processes.sandbox_selftest import SelfTestResult


# What Landlock does not hold, in the words of whoever has to live with it.
_LANDLOCK_GAPS = {
    "chmod": "a command can change the mode of files that are yours, also outside the workspace",
    "protected hooks": "a command can write there; a hook that git would run is set aside when it has ended",
    "protected config": "a command can write there; what would make git run a program is set aside when it has ended",
    "protected by way of its folder": "a command can move .git away; what it makes instead is looked at afterwards",
}


class DoctorFinding(msgspec.Struct, frozen=True):
    """What was found: good, poor (it works without) or bad."""

    name: str
    state: Literal["good", "poor", "bad"]
    message: str
    remedy: str = ""


async def run_checks(cwd: str, model: dict[str, str]) -> list[DoctorFinding]:
    """Everything, in the order a person would mend it."""
    found = [_check_python(), _check_terminal(), _check_home()]
    broken: list[str] = []
    try:
        settings = load_settings_leniently(Path(cwd).resolve(), broken.append)
    except OstlerError as error:
        config = DoctorFinding("config", "bad", error.fault.message, error.fault.hint)
        return [*found, config, await _check_sandbox_available(), _check_git(), _check_ripgrep()]
    config = DoctorFinding("config", "bad", broken[0], "ostler config check") if broken else _check_config(settings)
    chosen = await _check_model(settings, model)
    return [
        *found,
        config,
        chosen,
        *_check_unset_variables(settings, chosen),
        await _check_sandbox_available(),
        _check_git(),
        _check_ripgrep(),
    ]


def _check_python() -> DoctorFinding:
    return DoctorFinding("python", "good", f"{platform.python_version()} ({sys.executable})")


def _check_terminal() -> DoctorFinding:
    term = os.environ.get("TERM", "")
    if not sys.stdout.isatty():
        return DoctorFinding("terminal", "poor", "output goes to a file or pipe: no colours, no line client")
    size = shutil.get_terminal_size()
    if term in ("", "dumb"):
        return DoctorFinding("terminal", "poor", f"TERM={term or '(unset)'}", "set TERM, e.g. to xterm-256color")
    return DoctorFinding("terminal", "good", f"{term}, {size.columns} × {size.lines}")


def _check_home() -> DoctorFinding:
    try:
        return DoctorFinding("home", "good", str(ensure_home(os.environ)))
    except OstlerError as error:
        return DoctorFinding("home", "bad", error.fault.message, error.fault.hint or "or run with --ephemeral")


def _check_config(settings: Settings) -> DoctorFinding:
    files = sorted({layer.file for layer in settings.layers if layer.file})
    if settings.problems:
        return DoctorFinding("config", "poor", str(settings.problems[0]), "ostler config check")
    held = f"; {len(settings.pending_trust)} project settings wait for trust" if settings.pending_trust else ""
    return DoctorFinding("config", "good", (", ".join(files) or "defaults only") + held)


async def _check_model(settings: Settings, flags: dict[str, str]) -> DoctorFinding:
    try:
        return DoctorFinding("model", "good", (await choose_model(settings, flags, os.environ)).description)
    except OstlerError as error:
        return DoctorFinding("model", "bad", error.fault.message, error.fault.hint)


def _check_unset_variables(settings: Settings, model_finding: DoctorFinding) -> list[DoctorFinding]:
    """Profiles that could not be used now, for a variable that they refer to is not set."""
    lacking = {
        candidate.entry.name: unset_profile_variables(candidate.entry, os.environ)
        for candidate in list_candidates(settings)
    }
    return [
        DoctorFinding("profile", "poor", f"{name} needs the variable {names[0]}, which is not set", f"set {names[0]}")
        for name, names in lacking.items()
        if names and names[0] not in model_finding.message
    ]


async def _check_sandbox_available() -> DoctorFinding:
    from ostler.processes.sandbox_selftest import probe

    for found in probe():
        if found.available and found.name in ("bubblewrap", "landlock"):
            return DoctorFinding("sandbox", "good", f"{found.name} ({found.detail}); `ostler doctor sandbox` proves it")
    return DoctorFinding("sandbox", "poor", "commands run without one", "on Debian: apt-get install bubblewrap")


async def check_sandbox() -> list[DoctorFinding]:
    """The sandbox put to the proof: a hostile command really tries, and each thing it tried is told."""
    from ostler.processes.sandbox_selftest import probe, run_selftest

    have = [DoctorFinding(found.name, "good" if found.available else "poor", found.detail) for found in probe()]
    proofs = await run_selftest()
    by_landlock = proofs[0].detail == "landlock"
    return have + [
        _self_test_finding(proof, _LANDLOCK_GAPS.get(proof.name, "") if by_landlock else "") for proof in proofs
    ]


def _self_test_finding(result: "SelfTestResult", gap: str) -> DoctorFinding:
    if result.blocked or not gap:
        return DoctorFinding(result.name, "good" if result.blocked else "bad", result.detail)
    remedy = "bubblewrap holds it; on Debian: apt-get install bubblewrap"
    return DoctorFinding(result.name, "bad", f"not held: {gap}", remedy)


def _check_git() -> DoctorFinding:
    path = shutil.which("git")
    return (
        DoctorFinding("git", "good", path) if path else DoctorFinding("git", "poor", "not found", "apt-get install git")
    )


def _check_ripgrep() -> DoctorFinding:
    path = find_ripgrep()
    return (
        DoctorFinding("ripgrep", "good", path)
        if path
        else DoctorFinding("ripgrep", "poor", "not found; search is slower")
    )
