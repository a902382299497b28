"""What the sessions of the full-screen client use of the flags of the command line."""

import msgspec
import pytest

from ostler.app.tui_projects import LocalProjects
from ostler.core.permission import Rule
from ostler.policy.profiles import PROFILES, ProfileRules
from ostler.settings.run_options import RunOptions


@pytest.fixture
def opened_with(tmp_path, monkeypatch):
    """`opened_with(flags, backend, resume)` returns the options of a session that is opened later."""
    monkeypatch.setattr("ostler.app.tui_projects.LazySessionManager", lambda options, notify: options)
    monkeypatch.setattr("ostler.app.tui_projects._stored_backend", lambda settings, session_id: session_id)

    def open_with(flags, backend="", resume="", folder=""):
        options = RunOptions(cwd=str(tmp_path), write=True, model={"model": "m"}, backend=flags)
        return LocalProjects(options).open(folder or str(tmp_path), backend, resume).manager

    return open_with


@pytest.mark.req("TU-3", "TU-6")
@pytest.mark.parametrize(
    ("flags", "backend", "resume", "used"),
    [
        ("", "", "", ""),
        ("", "engine", "", ""),
        ("", "acp:a", "", "acp:a"),
        ("", "", "acp:a", "acp:a"),
        ("acp:a", "acp:a", "", "acp:a"),
        ("acp:a", "", "engine", "engine"),
        ("acp:a", "", "", ""),
    ],
)
def test_flags_of_the_model_are_for_the_backend_of_the_command_line(opened_with, flags, backend, resume, used):
    options = opened_with(flags, backend, resume)
    assert options.backend == used
    assert bool(options.model) == ((used or "engine") == (flags or "engine"))
    assert options.write


@pytest.mark.req("TU-3")
def test_prompts_are_stored_unless_a_server_has_the_session(tmp_path):
    projects = LocalProjects(RunOptions(cwd=str(tmp_path)))
    assert projects.open(str(tmp_path), "engine").history
    assert not projects.open(str(tmp_path), "remote:http://127.0.0.1:1").history


@pytest.mark.req("TU-3", "PM-10")
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (RunOptions("", mode="plan", profile="paranoid", max_steps=3), True),
        (
            RunOptions("", mode="accept-edits", profile="god_mode", write=True, yolo=True, trust=True, allow=("*",)),
            False,
        ),
        (RunOptions("", mode="ask", profile="balanced"), False),
        (RunOptions("", profile="commands"), True),
    ],
)
def test_other_project_gets_only_the_flags_that_extend_no_permissions(tmp_path, given, kept, monkeypatch):
    asks = (Rule("bash", "*", "ask", "the profile asks for every command"),)
    monkeypatch.setitem(PROFILES, "commands", ProfileRules("ask before every command", asks=asks))
    first, other = tmp_path / "first", tmp_path / "other"
    first.mkdir()
    projects = LocalProjects(msgspec.structs.replace(given, cwd=str(first)))
    assert projects._options_for(first, "") == msgspec.structs.replace(given, cwd=str(first))
    wanted = given if kept else RunOptions("")
    assert projects._options_for(other, "") == msgspec.structs.replace(wanted, cwd=str(other))
