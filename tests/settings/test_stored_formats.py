"""`trust.json`, `grants.json` and project folder names, as the current version writes and reads them."""

import json
import re
from pathlib import Path

import pytest
from tests.stored import STORED, check

from ostler.core.permission import Rule
from ostler.settings.grants import ProjectGrants
from ostler.settings.home import project_id
from ostler.settings.trust import TrustStore

pytestmark = pytest.mark.req("PM-4")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
RULES = (Rule("bash", "git *", "allow", "your answer"), Rule("edit", "*.md", "ask"), Rule("read", "*.env", "deny"))
PARTS = ("hooks.before_tool = [1 entry]", "model = large")


def without_times(text):
    assert TIME.search(text)
    return json.loads(TIME.sub("2026-01-02T03:04:05+00:00", text))


def test_grants_are_written_in_the_stored_format(tmp_path):
    grants = ProjectGrants(tmp_path)
    for rule in RULES:
        grants.add(rule)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["grants.json", "grants.lock"]
    check("grants", without_times((tmp_path / "grants.json").read_text("utf-8")))


def test_stored_grants_are_read(tmp_path):
    (tmp_path / "grants.json").write_bytes((STORED / "grants.json").read_bytes())
    (tmp_path / "grants.json").chmod(0o600)
    grants = ProjectGrants(tmp_path)
    assert (tuple(grants.rules()), grants.notes) == (RULES, [])


def test_trust_is_written_in_the_stored_format(tmp_path):
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    TrustStore(home).grant(project, "0123abcd", PARTS)
    assert sorted(path.name for path in home.iterdir()) == ["trust.json", "trust.lock"]
    text = (home / "trust.json").read_text("utf-8").replace(str(project.resolve()), "/tmp/project")
    check("trust", without_times(text))


def test_stored_trust_is_read(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    text = (STORED / "trust.json").read_text("utf-8").replace("/tmp/project", str(project.resolve()))
    (tmp_path / "trust.json").write_text(text, "utf-8")
    (tmp_path / "trust.json").chmod(0o600)
    store = TrustStore(tmp_path)
    assert store.is_trusted(project, "0123abcd")
    assert (store.find_grant(project).parts, store.notes) == (PARTS, [])


def test_project_folder_names_do_not_change():
    assert project_id(Path("/tmp/project")) == "tmp-project-f630ad93"
    assert project_id(Path("/srv/Some Place/ä")) == "srv-some_place-_-c463cfd2"
