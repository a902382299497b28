"""Standing rules on disk."""

import pytest

from ostler.core.permission import Rule
from ostler.settings.grants import ProjectGrants

RULE = Rule("bash", "git push *", "allow", "you")
OTHER = Rule("write", "src/*", "allow", "you")

pytestmark = pytest.mark.req("PM-6")


def test_rules_are_kept_listed_and_revoked(tmp_path):
    book = ProjectGrants(tmp_path / "project")
    book.add(RULE)
    book.add(OTHER)
    book.add(RULE)
    again = ProjectGrants(tmp_path / "project")
    assert again.rules() == [OTHER, RULE]
    assert all(given.when for given in again.granted())
    assert again.revoke(OTHER)
    assert not again.revoke(OTHER)
    assert ProjectGrants(tmp_path / "project").rules() == [RULE]
    assert oct((tmp_path / "project" / "grants.json").stat().st_mode & 0o777) == "0o600"


@pytest.mark.parametrize("content", [b"{", b"[1]", b"[" * 9000, b"\xff", b'[{"rule": {"key": "*"}}]'])
def test_a_file_that_is_not_ours_grants_nothing(tmp_path, content):
    (tmp_path / "grants.json").write_bytes(content)
    book = ProjectGrants(tmp_path)
    assert book.rules() == []
    assert "no standing rule counts" in book.notes[0]


def test_a_file_others_could_have_written_grants_nothing(tmp_path):
    ProjectGrants(tmp_path).add(RULE)
    (tmp_path / "grants.json").chmod(0o666)
    assert ProjectGrants(tmp_path).rules() == []
