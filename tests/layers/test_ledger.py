"""Check the form of the acceptance tests, and that `tasks.ledger` counts them correctly."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.form

ROOT = Path(__file__).parents[2]
SCENARIOS = {"eidolon": 30, "jolli": 51, "agent_zero": 40, "offline_agent": 28, "acpcli": 10}
FAMILIES = ("FS", "SH", "TL", "PM", "MD", "EN", "SE", "MC", "CL", "TU", "SV", "AZ", "AC", "DX")
REQUIREMENT = re.compile(rf"({'|'.join(FAMILIES)})-[1-9]\d?")


def is_known(requirement: str) -> bool:
    """Return whether an id is of a known family; requirements are added, so that no number is the last."""
    return REQUIREMENT.fullmatch(requirement) is not None


@pytest.mark.parametrize("requirement", ["PM-12", "TL-12", "MC-6", "TU-10", "SV-14", "AZ-7", "SH-9"])
def test_requirement_that_was_added_later_is_known(requirement):
    assert is_known(requirement)


@pytest.mark.parametrize("requirement", ["XX-1", "PM-0", "PM-01", "PM-123", "PM12", "pm-1", "PM-1 ", ""])
def test_malformed_requirement_is_not_known(requirement):
    assert not is_known(requirement)


def cited_requirements(test: ast.AST) -> list[str]:
    """Return the requirement ids in a test's `req` mark."""
    marks = [
        node for node in test.decorator_list if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("req")
    ]
    return [ast.literal_eval(argument) for mark in marks for argument in mark.args]


@pytest.mark.parametrize("specification", SCENARIOS)
def test_scenarios_are_complete_documented_and_cite_a_requirement(specification):
    tree = ast.parse((ROOT / f"tests/acceptance/test_{specification}.py").read_text())
    tests = [node for node in tree.body if getattr(node, "name", "").startswith("test_")]
    assert len({test.name for test in tests}) == SCENARIOS[specification]
    assert [test.name for test in tests if not ast.get_docstring(test)] == []
    assert [
        test.name for test in tests if not cited_requirements(test) or not all(map(is_known, cited_requirements(test)))
    ] == []


MODULE = """
import pytest

def test_passes(): pass

@pytest.mark.parametrize("case", [1, 2])
def test_half(case):
    if case == 2: pytest.xfail("not yet")

@pytest.mark.xfail(raises=NotImplementedError)
def test_missing(): raise NotImplementedError

@pytest.mark.skip
def test_skips(): pass
"""
FORGOTTEN_MARK = """
@pytest.mark.xfail(raises=NotImplementedError)
def test_forgotten_mark(): pass

@pytest.mark.xfail(raises=NotImplementedError)
def test_fails_differently(): assert False
"""


def load(path: str):
    spec = importlib.util.spec_from_file_location("loaded", ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def ledger():
    return load("tasks/ledger.py")


def run_ledger(ledger, folder: Path, source: str):
    (folder / "test_eidolon.py").write_text(source)
    return ledger.run(folder, ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder)])


def test_expected_failures_and_skipped_tests_are_not_passed(ledger, tmp_path):
    states, status, output = run_ledger(ledger, tmp_path, MODULE)
    assert {name: state for (_, name), state in states.items()} == {
        "test_passes": "pass",
        "test_half": "missing",
        "test_missing": "missing",
        "test_skips": "skip",
    }
    assert status == 0, output
    assert ledger.table(states).splitlines()[1].split() == ["000", "eidolon", "4", "1", "2", "1", "0"]


def test_forgotten_mark_and_real_failure_fail_the_run(ledger, tmp_path):
    states, status, output = run_ledger(ledger, tmp_path, MODULE + FORGOTTEN_MARK)
    assert states["test_eidolon", "test_forgotten_mark"] == "fail", output
    assert states["test_eidolon", "test_fails_differently"] == "fail"
    assert status == 1


@pytest.mark.parametrize("status", [0, 1, 2, 5])
def test_exit_status_follows_pytest(ledger, monkeypatch, capsys, status):
    monkeypatch.setattr(ledger, "run", lambda folder, options: ({}, status, "pytest output"))
    assert ledger.main() == (1 if status else 0)
    assert ("pytest output" in capsys.readouterr().err) == bool(status)


def test_command_line_fixture_hides_the_callers_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "the caller's key")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/somewhere")
    ostler = load("tests/conftest.py").Ostler(tmp_path)
    assert set(ostler.environment({"EXTRA": "1"})) <= {"PATH", "TMPDIR", "HOME", "LANG", "EXTRA"}
    assert ostler.environment({"EXTRA": "1"})["EXTRA"] == "1"
    assert ostler.environment()["HOME"] == str(ostler.home)
    assert list(ostler.home.iterdir()) == []


def test_command_line_fixture_runs_in_its_workspace(tmp_path):
    ostler = load("tests/conftest.py").Ostler(tmp_path)
    outcome = ostler("--no-such-option", stdin="unread")
    assert outcome.code == 2
    assert "--no-such-option" in outcome.stderr
    assert list(ostler.workspace.iterdir()) == []
