"""Checks behind `ostler doctor`; each reports a status and a fix."""

import os
import platform
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from ostler.core.errors import OstlerError
from ostler.knowledge.trusted_settings import load_settings_leniently
from ostler.models.model_choice import choose_model
from ostler.settings.effective import Settings
from ostler.settings.home import ensure_home
from ostler.settings.model_catalogue import list_candidates
from ostler.settings.model_profiles import unset_profile_variables
from ostler.tools.search import find_ripgrep

if TYPE_CHECKING:
    from ostler.processes.sandbox_selftest import SelfTestResult


# Gaps of Landlock, by the name of the self-test.
_LANDLOCK_GAPS = {
    "chmod": "a command can change the mode of your files, also outside the workspace",
    "protected hooks": "a command can write there; hooks that git would run are quarantined after the command",
    "protected config": "a command can write there; settings that make git run a program are quarantined afterwards",
    "protected by way of its folder": "a command can replace .git; the replacement is checked afterwards",
}


MARKS = {"ok": "✓", "warning": "–", "error": "✗"}


class DoctorFinding(msgspec.Struct, frozen=True):
    """The result of a check. With a warning Ostler still works."""

    name: str
    state: Literal["ok", "warning", "error"]
    message: str
    remedy: str = ""

    def line(self) -> str:
        """Return the finding in one line."""
        remedy = f" → {self.remedy}" if self.remedy else ""
        return f"{MARKS[self.state]} {self.name:<9} {self.message}{remedy}"


async def run_checks(cwd: str, model: dict[str, str]) -> list[DoctorFinding]:
    """Run all checks; the findings are in the order in which to fix them."""
    findings = [_check_python(), _check_terminal(), _check_home()]
    errors: list[str] = []
    try:
        settings = load_settings_leniently(Path(cwd).resolve(), errors.append)
    except OstlerError as error:
        config = DoctorFinding("config", "error", error.fault.message, error.fault.hint)
        return [*findings, config, await _check_sandbox_available(), _check_git(), _check_ripgrep()]
    config = (
        DoctorFinding("config", "error", errors[0], "run `ostler config check`") if errors else _check_config(settings)
    )
    model_finding = await _check_model(settings, model)
    return [
        *findings,
        config,
        model_finding,
        *_check_unset_variables(settings, model_finding),
        await _check_sandbox_available(),
        _check_git(),
        _check_ripgrep(),
    ]


def _check_python() -> DoctorFinding:
    return DoctorFinding("python", "ok", f"{platform.python_version()} ({sys.executable})")


def _check_terminal() -> DoctorFinding:
    term = os.environ.get("TERM", "")
    if not sys.stdout.isatty():
        return DoctorFinding("terminal", "warning", "output is not a terminal: no colours, no interactive client")
    size = shutil.get_terminal_size()
    if term in ("", "dumb"):
        return DoctorFinding("terminal", "warning", f"TERM={term or '(unset)'}", "set TERM, e.g. to xterm-256color")
    return DoctorFinding("terminal", "ok", f"{term}, {size.columns} × {size.lines}")


def _check_home() -> DoctorFinding:
    try:
        return DoctorFinding("home", "ok", str(ensure_home(os.environ)))
    except OstlerError as error:
        return DoctorFinding("home", "error", error.fault.message, error.fault.hint or "run with --ephemeral")


def _check_config(settings: Settings) -> DoctorFinding:
    files = sorted({layer.file for layer in settings.layers if layer.file})
    if settings.problems:
        return DoctorFinding("config", "warning", str(settings.problems[0]), "run `ostler config check`")
    count = len(settings.pending_trust)
    pending = f"; {count} project settings are ignored until you run `ostler trust`" if count else ""
    return DoctorFinding("config", "ok", (", ".join(files) or "defaults only") + pending)


async def _check_model(settings: Settings, flags: dict[str, str]) -> DoctorFinding:
    try:
        choice = await choose_model(settings, flags, os.environ)
    except OstlerError as error:
        return DoctorFinding("model", "error", error.fault.message, error.fault.hint)
    try:
        await choice.check_server()
    except OstlerError as error:
        state: Literal["warning", "error"] = "warning" if error.fault.code == "timeout" else "error"
        return DoctorFinding("model", state, f"{choice.description}: {error.fault.message}", error.fault.hint)
    return DoctorFinding("model", "ok", choice.description)


def _check_unset_variables(settings: Settings, model_finding: DoctorFinding) -> list[DoctorFinding]:
    """Return a warning for each profile that refers to an unset environment variable."""
    unset = {
        candidate.entry.name: unset_profile_variables(candidate.entry, os.environ)
        for candidate in list_candidates(settings)
    }
    return [
        DoctorFinding("profile", "warning", f"{name}: environment variable {names[0]} is not set", f"set {names[0]}")
        for name, names in unset.items()
        if names and names[0] not in model_finding.message
    ]


async def _check_sandbox_available() -> DoctorFinding:
    from ostler.processes.sandbox_selftest import probe

    for sandbox in probe():
        if sandbox.available and sandbox.name in ("bubblewrap", "landlock"):
            message = f"{sandbox.name} ({sandbox.detail}); test it with `ostler doctor sandbox`"
            return DoctorFinding("sandbox", "ok", message)
    return DoctorFinding(
        "sandbox", "warning", "no sandbox: commands run unconfined", "on Debian: apt-get install bubblewrap"
    )


async def check_sandbox(cwd: str) -> list[DoctorFinding]:
    """Test the sandbox with a hostile command and return what it achieved and what of home directories is readable."""
    from ostler.processes.sandbox_selftest import probe, run_selftest

    sandboxes = [DoctorFinding(item.name, "ok" if item.available else "warning", item.detail) for item in probe()]
    results = await run_selftest()
    is_landlock = results[0].detail == "landlock"
    return [*sandboxes, _check_homes(cwd)] + [
        _self_test_finding(result, _LANDLOCK_GAPS.get(result.name, "") if is_landlock else "") for result in results
    ]


def _check_homes(cwd: str) -> DoctorFinding:
    from ostler.processes.sandbox_policy import describe_homes, resolve_layout
    from ostler.workspace.session_workspace import workspace_policy

    root = Path(cwd).resolve()
    readable = load_settings_leniently(root, lambda problem: None).config.security.sandbox_readable
    cwd = str(root)
    layout = resolve_layout(workspace_policy(cwd, writable=True, mode="prefer", readable=readable), cwd)
    state: Literal["ok", "warning"] = "warning" if layout.shows_home or not layout.homes else "ok"
    shown = ", ".join(layout.readable)
    return DoctorFinding("home", state, f"{describe_homes(layout)}{f' ({shown})' if shown else ''}")


def _self_test_finding(result: "SelfTestResult", gap: str) -> DoctorFinding:
    if result.blocked or not gap:
        return DoctorFinding(result.name, "ok" if result.blocked else "error", result.detail)
    remedy = "bubblewrap blocks it; on Debian: apt-get install bubblewrap"
    return DoctorFinding(result.name, "error", f"not blocked: {gap}", remedy)


def _check_git() -> DoctorFinding:
    path = shutil.which("git")
    return (
        DoctorFinding("git", "ok", path)
        if path
        else DoctorFinding("git", "warning", "not found", "apt-get install git")
    )


def _check_ripgrep() -> DoctorFinding:
    path = find_ripgrep()
    return (
        DoctorFinding("ripgrep", "ok", path)
        if path
        else DoctorFinding("ripgrep", "warning", "not found; search is slower")
    )
