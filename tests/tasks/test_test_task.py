"""`./run test`: what fails only beside others is run again alone and told; what fails twice fails the run."""

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
UNSTEADY = """
from pathlib import Path
def test_unsteady():
    been = Path("been")
    first = not been.exists()
    been.touch()
    assert not first
def test_steady():
    pass
"""


def suite(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "tests").mkdir()
    (folder / "tests" / "test_one.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    (folder / "tasks").symlink_to(PROJECT / "tasks")
    command = [sys.executable, "-m", "tasks.test"]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p xdist.plugin"}  # no others
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=150)


def test_what_fails_beside_others_only_is_told_and_passes(tmp_path):
    ran = suite(tmp_path, UNSTEADY)
    assert ran.returncode == 0
    assert "1 failed, 1 passed" in ran.stdout and "test_unsteady PASSED" in ran.stdout
    assert "not steady" in ran.stdout


def test_what_fails_alone_too_fails_the_run(tmp_path):
    ran = suite(tmp_path, UNSTEADY.replace("been.touch()", ""))
    assert ran.returncode == 1
    assert "test_unsteady FAILED" in ran.stdout


def test_many_failures_are_a_broken_change_and_not_run_again(tmp_path):
    ran = suite(tmp_path, "import pytest\n@pytest.mark.parametrize('n', range(13))\ndef test_it(n):\n    assert 0\n")
    assert ran.returncode == 1 and "not steady" not in ran.stdout
