"""`./run test --near`: the tests near a change."""

import subprocess
from pathlib import Path

import pytest
from tasks.near import changed_files, importing_packages, near_tests

PROJECT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("file", "near", "far"),
    [
        ("src/ostler/http/proxy.py", {"tests/http", "tests/models"}, {"tests/workspace", "tests/frontends/repl"}),
        ("src/ostler/policy/shell/sed.py", {"tests/policy", "tests/tools", "tests/contract"}, {"tests/models"}),
        ("src/ostler/frontends/repl/chat.py", {"tests/frontends/repl"}, {"tests/frontends/acp_agent", "tests/tools"}),
        ("src/ostler/tools/edit.md", {"tests/tools"}, {"tests/models"}),
        ("src/ostler/testing/echo_agent.py", {"tests/cli/test_acp_run.py", "tests/contract"}, {"tests/models"}),
        ("docs/chat.md", {"tests/docs"}, {"tests/cli"}),
        ("pyproject.toml", {"tests/run"}, {"tests/cli"}),
        ("tests/text/test_diff.py", {"tests/text/test_diff.py"}, {"tests/text"}),
        ("tests/journal/samples.py", {"tests/journal"}, {"tests/text"}),
    ],
)
def test_change_reaches_its_package_and_those_that_import_it(file, near, far):
    found = set(near_tests([file]) or ())
    assert near <= found
    assert not far & found
    assert all((PROJECT / name).exists() for name in found)


@pytest.mark.parametrize("file", ["src/ostler/core/events.py", "tests/conftest.py"])
def test_change_of_what_everything_uses_reaches_all_tests(file):
    assert near_tests(["docs/chat.md", file]) is None


def test_no_change_reaches_no_tests():
    assert near_tests([]) == []


def test_file_is_not_listed_beside_its_folder():
    assert near_tests(["tests/text/test_diff.py", "tests/text/helper.txt"]) == ["tests/text"]


def test_import_through_a_module_of_the_same_package_is_followed():
    graph = {
        "ostler.text.b": {"ostler.text.a"},
        "ostler.tools.x": {"ostler.text.b"},
        "ostler.wire.y": {"ostler.text"},
        "ostler.models.z": {"ostler.tools.x"},
    }
    assert importing_packages(graph, {"ostler.text.a"}) == {"text", "tools", "wire"}


def git(folder, *arguments):
    name = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", str(folder), *name, *arguments], check=True, capture_output=True)


def test_changed_files_are_found_since_a_commit(tmp_path):
    git(tmp_path, "init")
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("old")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "one")
    git(tmp_path, "checkout", "-b", "work")
    (tmp_path / "a").write_text("new")
    git(tmp_path, "commit", "-a", "-m", "two")
    (tmp_path / "b").write_text("new")
    (tmp_path / "untracked").touch()
    assert changed_files(root=tmp_path) == ["b", "untracked"]
    assert changed_files("main", tmp_path) == ["a", "b", "untracked"]
    with pytest.raises(SystemExit, match="needs git"):
        changed_files("no-such-commit", tmp_path)
