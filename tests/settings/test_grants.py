"""Granted rules on disk."""

import pytest

from ostler.core.permission import Rule
from ostler.settings.grants import ProjectGrants

RULE = Rule("bash", "git push *", "allow", "you")
OTHER = Rule("write", "src/*", "allow", "you")

pytestmark = pytest.mark.req("PM-6")


def test_rules_are_stored_listed_and_revoked(tmp_path):
    grants = ProjectGrants(tmp_path / "project")
    grants.add(RULE)
    grants.add(OTHER)
    grants.add(RULE)
    reopened = ProjectGrants(tmp_path / "project")
    assert reopened.rules() == [OTHER, RULE]
    assert all(grant.when for grant in reopened.granted())
    assert reopened.revoke(OTHER)
    assert not reopened.revoke(OTHER)
    assert ProjectGrants(tmp_path / "project").rules() == [RULE]
    assert oct((tmp_path / "project" / "grants.json").stat().st_mode & 0o777) == "0o600"


@pytest.mark.parametrize("content", [b"{", b"[1]", b"[" * 9000, b"\xff", b'[{"rule": {"key": "*"}}]'])
def test_unusable_file_grants_nothing(tmp_path, content):
    (tmp_path / "grants.json").write_bytes(content)
    grants = ProjectGrants(tmp_path)
    assert grants.rules() == []
    assert "no granted rule applies" in grants.notes[0]


def test_file_writable_by_others_grants_nothing(tmp_path):
    ProjectGrants(tmp_path).add(RULE)
    (tmp_path / "grants.json").chmod(0o666)
    assert ProjectGrants(tmp_path).rules() == []
