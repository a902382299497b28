"""`./run test`: failed tests are run again one by one; a test that fails twice fails the run."""

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
FLAKY = """
from pathlib import Path
def test_flaky():
    marker = Path("marker")
    first = not marker.exists()
    marker.touch()
    assert not first
def test_reliable():
    pass
"""


PROGRAM = "import sys; from tasks import test; test.WORKERS[1] = sys.argv[1]; sys.exit(test.main([]))"


def run_suite(folder: Path, text: str, workers: int = 0) -> subprocess.CompletedProcess[str]:
    (folder / "tests").mkdir()
    (folder / "tests" / "test_one.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    (folder / "tasks").symlink_to(PROJECT / "tasks")
    command = [sys.executable, "-c", PROGRAM, str(workers)]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p xdist.plugin"}  # no other plugins
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=150)


def test_flaky_test_is_reported_and_the_run_passes(tmp_path):
    ran = run_suite(tmp_path, FLAKY, workers=2)
    assert ran.returncode == 0
    assert "1 failed, 1 passed" in ran.stdout and "test_flaky PASSED" in ran.stdout
    assert "not reliable" in ran.stdout


def test_test_that_fails_twice_fails_the_run(tmp_path):
    ran = run_suite(tmp_path, FLAKY.replace("marker.touch()", ""))
    assert ran.returncode == 1
    assert "test_flaky FAILED" in ran.stdout


def test_many_failures_are_not_run_again(tmp_path):
    ran = run_suite(
        tmp_path, "import pytest\n@pytest.mark.parametrize('n', range(13))\ndef test_it(n):\n    assert 0\n"
    )
    assert ran.returncode == 1 and "not reliable" not in ran.stdout
