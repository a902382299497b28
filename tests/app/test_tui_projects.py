"""The projects of the full-screen client."""

import msgspec
import pytest

from ostler.app.tui_projects import LocalProjects
from ostler.settings.run_options import RunOptions


@pytest.mark.req("TU-3", "PM-10")
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (RunOptions("", mode="plan", profile="paranoid", max_steps=3), True),
        (
            RunOptions("", mode="accept-edits", profile="god_mode", write=True, yolo=True, trust=True, allow=("*",)),
            False,
        ),
    ],
)
def test_other_project_gets_only_the_flags_that_extend_no_permissions(tmp_path, given, kept):
    first, other = tmp_path / "first", tmp_path / "other"
    first.mkdir()
    projects = LocalProjects(msgspec.structs.replace(given, cwd=str(first)))
    assert projects._options_for(first) == msgspec.structs.replace(given, cwd=str(first))
    wanted = given if kept else RunOptions("")
    assert projects._options_for(other) == msgspec.structs.replace(wanted, cwd=str(other))
