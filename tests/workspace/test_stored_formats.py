"""Stored files outside sessions: `undo_gaps.json` and the trust digest."""

import json

import pytest
from tests.stored_examples import STORED, check

from ostler.workspace.undo_gaps import ReportedGaps

GAPS = [".git (its own history)", "big (more than 2 GB)"]


@pytest.mark.req("EN-13")
def test_undo_gaps_keep_the_stored_format(tmp_path):
    ReportedGaps(tmp_path).mark_reported(GAPS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["undo_gaps.json", "undo_gaps.lock"]
    check("undo_gaps", json.loads((tmp_path / "undo_gaps.json").read_text("utf-8")))
    (tmp_path / "undo_gaps.json").write_bytes((STORED / "undo_gaps.json").read_bytes())
    assert ReportedGaps(tmp_path).reported() == GAPS
    assert ReportedGaps(tmp_path).unreported([*GAPS, "new (no reason)"]) == ["new (no reason)"]


@pytest.mark.req("PM-4")
def test_trust_digest_does_not_change(ostler):
    """A trusted project must stay trusted in the next version."""
    folder = ostler.workspace / ".ostler"
    for name, content in {
        "config.json": {"hooks": {"before_tool": [{"command": ["true"]}]}, "permission": {"bash": {"ls *": "allow"}}},
        "agents/poet.md": "---\ndescription: rhymes\npermission:\n  bash: allow\n---\nAnswer in verse.\n",
        "commands/greet.md": "Greet !`whoami`.\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    done = ostler("trust", "--yes")
    assert done.code == 0, done.stderr
    ((path, grant),) = json.loads((ostler.home / ".ostler" / "trust.json").read_text("utf-8"))["grants"].items()
    assert path == str(ostler.workspace.resolve())
    check("trusted_project", {name: value for name, value in grant.items() if name != "when"})
