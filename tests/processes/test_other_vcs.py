"""Settings of Mercurial, Sapling, Jujutsu, darcs and others that a command created."""

import os

import pytest

from ostler.processes.git_exec_files import QUARANTINE_SUFFIX
from ostler.processes.git_guard import GitGuard
from ostler.processes.other_vcs import SETTINGS_PATHS, is_safe_config

pytestmark = pytest.mark.req("SH-8")


@pytest.mark.parametrize("name", SETTINGS_PATHS)
@pytest.mark.parametrize("folder", ["", "deep/er/"])
async def test_new_settings_are_quarantined_at_any_depth(tmp_path, name, folder):
    guard = GitGuard((str(tmp_path),))
    await guard.command_started()
    file = tmp_path / folder / name
    file.parent.mkdir(parents=True)
    file.write_text("[hooks]\npost-status = evil\n")
    await guard.command_ended()
    assert not file.exists() and file.with_name(file.name + QUARANTINE_SUFFIX).exists()
    assert f"{file} was quarantined" in guard.take_notes()[0]


async def test_changed_settings_are_restored(tmp_path):
    file = tmp_path / ".hg" / "hgrc"
    file.parent.mkdir()
    file.write_text("[hooks]\npost-status = mine\n")
    guard = GitGuard((str(tmp_path),))
    await guard.command_started()
    file.write_text("[hooks]\npost-status = evil\n")
    await guard.command_ended()
    assert file.read_text() == "[hooks]\npost-status = mine\n"


async def test_symlink_to_repository_is_quarantined(tmp_path):
    guard = GitGuard((str(tmp_path),))
    await guard.command_started()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "hgrc").write_text("[alias]\nstatus = !evil\n")
    (tmp_path / ".hg").symlink_to("elsewhere")
    await guard.command_ended()
    assert not (tmp_path / ".hg").exists()


@pytest.mark.parametrize("kind", ["file", "link"])
async def test_pointer_to_other_settings_is_quarantined(tmp_path, kind):
    guard = GitGuard((str(tmp_path),))
    await guard.command_started()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "config.toml").write_text("ui.pager = 'evil'\n")
    (tmp_path / ".jj").mkdir()
    pointer = tmp_path / ".jj" / "repo"
    if kind == "file":
        pointer.write_text("../elsewhere")
    else:
        pointer.symlink_to("../elsewhere")
    await guard.command_ended()
    assert not os.path.lexists(pointer)


async def test_pointer_of_user_is_restored(tmp_path):
    (tmp_path / ".jj").mkdir()
    pointer = tmp_path / ".jj" / "repo"
    pointer.write_text("../mine")
    guard = GitGuard((str(tmp_path),))
    await guard.command_started()
    pointer.write_text("../evil")
    await guard.command_ended()
    assert pointer.read_text() == "../mine"


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("# example repository config\n[paths]\ndefault = https://example.org/a b\n", False),
        ("# example repository config\n[paths]\ndefault = https://example.org/hg\n\n; more\n", True),
        ("[paths]\ndefault = ssh://hg@example.org/x\ndefault-push = ssh://example.org/x\n", True),
        ("[paths]\ndefault = ssh://-oProxyCommand=evil/x\n", False),
        ("[paths]\ndefault = ../there\n", False),
        ("[hooks]\nupdate = evil\n", False),
        ("%include ../evil\n", False),
        ("[paths]\ndefault = https://example.org/hg\n  [hooks]\n", False),
        ("", True),
    ],
)
def test_only_clone_source_is_safe(text, safe):
    assert is_safe_config(text.encode()) is safe
