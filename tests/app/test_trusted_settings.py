"""Settings of a project whose own file cannot be used."""

import pytest

from ostler.app.doctor import run_checks
from ostler.app.session_admin import SessionAdmin
from ostler.app.trusted_settings import load_settings, load_settings_leniently
from ostler.app.undo_notice import notify_session
from ostler.core.errors import UsageError

pytestmark = pytest.mark.req("PM-8")


@pytest.fixture
def broken(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / ".ostler").mkdir(parents=True)
    (tmp_path / "home" / ".ostler" / "config.json").write_text('{"session": {"path": "kept-here"}}')
    file = tmp_path / "work" / ".ostler" / "config.json"
    file.parent.mkdir(parents=True)
    file.write_text('{\n  "models" 3\n}')
    return file


def test_who_only_looks_is_told_the_place_and_gets_the_person_s_own(broken):
    told = []
    settings = load_settings_leniently(broken.parents[1], told.append)
    assert settings.config.session.path == "kept-here"
    (line,) = told
    assert line.startswith(f"{broken}:2:")


def test_who_would_do_something_is_refused(broken):
    with pytest.raises(UsageError, match=r"config.json:2:"):
        load_settings(broken.parents[1])


def test_a_person_s_own_file_is_not_left_out(broken, tmp_path):
    (tmp_path / "home" / ".ostler" / "config.json").write_text("{")
    with pytest.raises(UsageError, match=r"home/.ostler/config.json"):
        load_settings_leniently(broken.parents[1], lambda told: None)


def test_sessions_can_be_looked_after(broken):
    told = []
    with SessionAdmin(str(broken.parents[1]), all_workspaces=False, notify=told.append) as desk:
        assert "no session" in desk.list(20, as_json=False)
    assert len(told) == 1


async def test_the_doctor_looks_at_all_the_rest(broken):
    found = {finding.name: finding for finding in await run_checks(str(broken.parents[1]), {})}
    assert found["config"].state == "bad"
    assert {"model", "sandbox", "git"} <= found.keys()


@pytest.mark.req("EN-13")
def test_what_was_taken_back_is_no_error_where_a_person_s_own_file_is_broken(broken, tmp_path):
    (tmp_path / "home" / ".ostler" / "config.json").write_text("{")
    told = []
    notify_session(broken.parents[1], "undo", "session/turn-1", ["a"], told.append)
    assert len(told) == 1 and "config.json:1" in told[0]
