"""`./run` on machines where something is missing: it reports what, and changes nothing."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = ("sh", "dirname", "pwd", "tee", "sed", "grep", "tail", "rm", "cat", "flock", "cp")


@pytest.fixture
def machine(tmp_path):
    """A copy of the project in a path with a space, and a PATH with only a few programs."""
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
def test_missing_python_is_reported_with_the_package_to_install(machine):
    completed = start(machine, "demo")
    assert completed.returncode == 2
    assert "needs Python 3.11 or newer" in completed.stderr
    assert "apt-get install python3" in completed.stderr
    assert not (machine[0] / ".venv").exists()


@pytest.mark.req("DX-2")
def test_old_python_is_not_used(machine):
    add_python(machine, "exit 1")
    assert "needs Python 3.11 or newer" in start(machine, "demo").stderr


@pytest.mark.req("DX-2")
def test_missing_pip_is_reported_with_the_package_to_install(machine):
    add_python(machine, f'case "$2" in *"import pip"*) exit 1;; esac\nexec {sys.executable} "$@"')
    completed = start(machine, "demo")
    assert completed.returncode == 2
    assert "has no pip" in completed.stderr
    assert "apt-get install python3-pip" in completed.stderr


def test_failed_installation_shows_the_reason_and_keeps_the_log(machine):
    (machine[0] / "requirements.lock").write_text("no-such-package==1 --hash=sha256:00\n")
    fake_pip = (
        'case "$2" in *"import pip"*) exit 0;; esac\n'
        'case "$*" in *"install --no-input"*) echo "no matching distribution"; exit 1;; esac'
    )
    add_python(machine, f'{fake_pip}\nexec {sys.executable} "$@"')
    completed = start(machine, "demo")
    assert completed.returncode == 2
    assert "no matching distribution" in completed.stderr
    assert "installation failed" in completed.stderr
    assert (machine[0] / ".venv.log").exists()
    assert not (machine[0] / ".venv" / "runtime.at").exists()


@pytest.mark.req("DX-2")
def test_lock_files_pin_and_hash_every_package_and_name_no_host():
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text()
        packages = [line for line in text.splitlines() if line and not line[0].isspace()]
        assert packages
        assert all("==" in line for line in packages)
        assert text.count("--hash=sha256:") >= len(packages)
        assert "://" not in text
        assert "index" not in text


def test_commands_of_the_readme_exist():
    readme = (ROOT / "README.md").read_text()
    assert re.findall(r"^    (\./run \w+)", readme, re.MULTILINE)[:2] == ["./run demo", "./run test"]
    assert os.access(ROOT / "run", os.X_OK)
    assert (ROOT / "run").read_text().startswith("#!/bin/sh\n")
