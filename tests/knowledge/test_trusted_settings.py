"""Settings of a project with an invalid config file."""

import pytest

from ostler.core.errors import UsageError
from ostler.doctor.checks import run_checks
from ostler.knowledge.trusted_settings import load_settings, load_settings_leniently
from ostler.session.undo_notice import notify_session
from ostler.settings.home import project_id
from ostler.storage.session_admin import SessionAdmin
from ostler.storage.session_stores import session_store

pytestmark = pytest.mark.req("PM-8")


@pytest.fixture
def broken(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / ".ostler").mkdir(parents=True)
    (tmp_path / "home" / ".ostler" / "config.json").write_text('{"session": {"path": "stored-here"}}')
    file = tmp_path / "work" / ".ostler" / "config.json"
    file.parent.mkdir(parents=True)
    file.write_text('{\n  "models" 3\n}')
    return file


def test_lenient_load_reports_the_error_and_uses_user_settings(broken):
    messages = []
    settings = load_settings_leniently(broken.parents[1], messages.append)
    assert settings.config.session.path == "stored-here"
    (line,) = messages
    assert line.startswith(f"{broken}:2:")


def test_strict_load_raises(broken):
    with pytest.raises(UsageError, match=r"config.json:2:"):
        load_settings(broken.parents[1])


def test_invalid_user_file_raises(broken, tmp_path):
    (tmp_path / "home" / ".ostler" / "config.json").write_text("{")
    with pytest.raises(UsageError, match=r"home/.ostler/config.json"):
        load_settings_leniently(broken.parents[1], lambda message: None)


def test_sessions_can_be_listed(broken):
    messages = []
    with SessionAdmin(str(broken.parents[1]), all_workspaces=False, notify=messages.append) as admin:
        assert admin.list(20) == []
    assert len(messages) == 1


async def test_doctor_runs_the_other_checks(broken):
    findings = {finding.name: finding for finding in await run_checks(str(broken.parents[1]), {})}
    assert findings["config"].state == "error"
    assert {"model", "sandbox", "git"} <= findings.keys()


@pytest.mark.req("EN-13")
def test_undo_notice_with_invalid_user_settings_is_only_reported(broken, tmp_path):
    (tmp_path / "home" / ".ostler" / "config.json").write_text("{")
    messages = []
    folder = broken.parents[1]

    def open_store():
        return session_store(load_settings_leniently(folder, messages.append))

    notify_session(open_store, project_id(folder), "undo", "session/turn-1", ["a"], messages.append)
    assert len(messages) == 1 and "config.json:1" in messages[0]
