"""`./run` on machines that lack something: it says what, and changes nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = ("sh", "dirname", "pwd", "tee", "sed", "grep", "tail", "rm", "cat", "flock", "cp")


@pytest.fixture
def machine(tmp_path):
    """A copy of the project in a path with a space, and a PATH with next to nothing on it."""
    project = tmp_path / "with a space"
    project.mkdir()
    for name in ("run", "requirements.lock", "requirements-dev.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, project / name)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    return project, programs


def start(machine, *arguments, cwd="/"):
    project, programs = machine
    env = {"PATH": str(programs), "HOME": "/nonexistent"}
    return subprocess.run(
        [str(project / "run"), *arguments], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


def add_python(machine, text):
    program = machine[1] / "python3"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)


@pytest.mark.req("DX-2")
def test_without_python_it_says_what_to_install(machine):
    done = start(machine, "demo")
    assert done.returncode == 2
    assert "needs Python 3.11 or newer" in done.stderr
    assert "apt-get install python3" in done.stderr
    assert not (machine[0] / ".venv").exists()


@pytest.mark.req("DX-2")
def test_a_python_that_is_too_old_is_none(machine):
    add_python(machine, "exit 1")
    assert "needs Python 3.11 or newer" in start(machine, "demo").stderr


@pytest.mark.req("DX-2")
def test_without_pip_it_says_what_to_install(machine):
    add_python(machine, f'case "$2" in *"import pip"*) exit 1;; esac\nexec {sys.executable} "$@"')
    done = start(machine, "demo")
    assert done.returncode == 2
    assert "has no pip" in done.stderr
    assert "apt-get install python3-pip" in done.stderr


def test_a_failed_install_shows_the_reason_and_keeps_the_log(machine):
    (machine[0] / "requirements.lock").write_text("no-such-package==1 --hash=sha256:00\n")
    answers = (
        'case "$2" in *"import pip"*) exit 0;; esac\n'
        'case "$*" in *"install --no-input"*) echo "no matching distribution"; exit 1;; esac'
    )
    add_python(machine, f'{answers}\nexec {sys.executable} "$@"')
    done = start(machine, "demo")
    assert done.returncode == 2
    assert "no matching distribution" in done.stderr
    assert "set-up stopped there" in done.stderr
    assert (machine[0] / ".venv.log").exists()
    assert not (machine[0] / ".venv" / "runtime.at").exists()


@pytest.mark.req("DX-2")
def test_locks_pin_and_hash_everything_and_name_no_host():
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text()
        packages = [line for line in text.splitlines() if line and not line[0].isspace()]
        assert packages
        assert all("==" in line for line in packages)
        assert text.count("--hash=sha256:") >= len(packages)
        assert "://" not in text
        assert "index" not in text


def test_the_two_commands_of_the_readme_are_there():
    readme = (ROOT / "README.md").read_text()
    assert "./run demo" in readme
    assert "./run test" in readme
    assert os.access(ROOT / "run", os.X_OK)
    assert (ROOT / "run").read_text().startswith("#!/bin/sh\n")
