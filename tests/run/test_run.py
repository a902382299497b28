"""`./run` on machines where something is missing: it reports what, and changes nothing."""

import os
import re
import shlex
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


def start(machine, *arguments, cwd="/", variables=None):
    project, programs = machine
    env = {"PATH": str(programs), "HOME": "/nonexistent", **(variables or {})}
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
    add_python(machine, f'case "$2" in *"import pip"*) exit 1;; esac\nexec {shlex.quote(sys.executable)} "$@"')
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
    add_python(machine, f'{fake_pip}\nexec {shlex.quote(sys.executable)} "$@"')
    completed = start(machine, "demo")
    assert completed.returncode == 2
    assert "no matching distribution" in completed.stderr
    assert "installation failed" in completed.stderr
    assert (machine[0] / ".venv.log").exists()
    assert not (machine[0] / ".venv" / "runtime.at").exists()


def test_path_of_python_may_contain_a_space(machine):
    python = machine[0] / "python"
    python.write_text('#!/bin/sh\ncase "$2" in *"import pip"*) exit 1;; esac\necho "the chosen one"\n')
    python.chmod(0o755)
    assert "the chosen one has no pip" in start(machine, "demo", variables={"OSTLER_PYTHON": str(python)}).stderr


@pytest.mark.req("DX-2")
@pytest.mark.parametrize("obstacle", ["folder", "lock"])
def test_folder_that_is_not_writable_is_reported_with_the_way_out(machine, obstacle):
    project = machine[0]
    if obstacle == "folder":
        project.chmod(0o555)
        if os.access(project, os.W_OK):
            pytest.skip("this user can write everywhere")
    else:
        (project / ".venv.lock").mkdir()  # nobody can write to it, not even root
    completed = start(machine, "demo")
    project.chmod(0o755)
    assert completed.returncode == 2
    assert completed.stderr == (
        f"ostler: cannot write to {project}, where Ostler is installed."
        " Copy the project to a folder that you can write to.\n"
    )


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
