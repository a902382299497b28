"""The fast suite runs a few cases of large matrices, and each value of each parameter in one of them."""

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
MATRIX = """
import pytest

@pytest.mark.parametrize("small", ["x", "y"])
@pytest.mark.parametrize("large", [1, 2, 3])
@pytest.mark.sampled
def test_matrix(small, large):
    pass

@pytest.mark.parametrize("value", range(7))
@pytest.mark.sampled(every=3)
def test_row(value):
    pass

@pytest.mark.slow
@pytest.mark.parametrize("value", range(2))
def test_stress(value):
    pass
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with our conftest.py, and tests of every kind."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "tests").mkdir()
    (folder / "tests" / "test_one.py").write_text(MATRIX)
    for name in ("conftest.py", "tiers.py", "certificates.py", "process_starter.py"):
        (folder / "tests" / name).symlink_to(PROJECT / "tests" / name)
    (folder / "tasks").symlink_to(PROJECT / "tasks")
    (folder / "pyproject.toml").symlink_to(PROJECT / "pyproject.toml")
    return folder


@pytest.mark.parametrize(
    ("option", "selected"),
    [
        ((), ["matrix[1-x]", "matrix[2-y]", "matrix[3-x]", "row[0]", "row[3]", "row[6]"]),
        (("--sample",), ["matrix[1-y]", "row[1]", "stress[0]"]),
        (
            ("--slow",),
            [
                *(f"matrix[{large}-{small}]" for large in (1, 2, 3) for small in "xy"),
                *(f"row[{n}]" for n in range(7)),
                *("stress[0]", "stress[1]"),
            ],
        ),
    ],
    ids=["fast", "sample", "slow"],
)
def test_tier_selects_its_cases(project, option, selected):
    command = [sys.executable, "-m", "tasks.test", *option, "-n", "0", "--collect-only", "-q", "tests/test_one.py"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)
    found = [line.partition("::test_")[2] for line in done.stdout.splitlines() if "::" in line]
    assert found == selected
