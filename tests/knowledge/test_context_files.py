"""The list of files for the description of a workspace."""

import pytest

from ostler.knowledge.context_files import MAX_REFUSED, list_context_files


@pytest.mark.req("AZ-4")
def test_search_ends_after_many_files_that_the_rules_exclude(tmp_path):
    for number in range(MAX_REFUSED + 50):
        (tmp_path / f"a{number:05}").touch()
    (tmp_path / "z").touch()
    judged = []
    tree = list_context_files(str(tmp_path), 200, 4, frozenset(), lambda path: judged.append(path) or path == "z")
    assert (tree.files, tree.is_complete, len(judged)) == ((), False, MAX_REFUSED)


@pytest.mark.req("AZ-4")
def test_files_are_complete_if_exactly_as_many_are_allowed(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).touch()
    tree = list_context_files(str(tmp_path), 2, 4, frozenset(), lambda path: path != "b")
    assert ([file.path for file in tree.files], tree.is_complete) == (["a", "c"], True)
