"""Keys and tokens in the file and in the system's keyring, with real files, processes and a `secret-tool`."""

import json
import os
import shlex
import stat
import subprocess
import sys
from types import SimpleNamespace

import pytest

from ostler.core.credentials import CredentialName
from ostler.core.errors import UsageError
from ostler.credentials.store import FILE_NAME, LocalCredentials
from ostler.credentials.system_keyring import find_keyring

NAME = CredentialName("mcp:files", "me@example.com")
OTHER = CredentialName("api.example.com", "work")
SECRET = "s3cret-Ω-token"

SECRET_TOOL = """import json, sys
from pathlib import Path
if Path({locked!r}).exists():
    sys.exit(1)
kept = Path({kept!r})
entries = json.loads(kept.read_text()) if kept.exists() else {{}}
action, *rest = [word for word in sys.argv[1:] if not word.startswith("--label=")]
key = " ".join(rest)
if action == "lookup":
    if key not in entries:
        sys.exit(1)
    sys.stdout.write(entries[key])
elif action == "store":
    entries[key] = sys.stdin.read()
elif action == "clear":
    del entries[key]
kept.write_text(json.dumps(entries))
"""


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def file(home):
    return home / FILE_NAME


def test_stored_key_is_returned_by_another_process_of_the_same_home(home):
    LocalCredentials(home).set(NAME, SECRET)
    LocalCredentials(home).set(OTHER, "other")
    again = LocalCredentials(home)
    assert again.get(NAME) == SECRET
    assert again.get(CredentialName(NAME.service, "somebody")) is None
    assert again.names() == [OTHER, NAME]


def test_nothing_is_created_by_reading(home):
    store = LocalCredentials(home)
    assert (store.get(NAME), store.names()) == (None, [])
    assert not home.exists()


def test_key_is_replaced_and_deleted(home):
    store = LocalCredentials(home)
    store.set(NAME, "old")
    store.set(NAME, SECRET)
    assert store.get(NAME) == SECRET
    assert store.delete(NAME)
    assert not store.delete(NAME)
    assert (store.get(NAME), store.names()) == (None, [])


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_only_the_user_can_read_the_file(home, file, umask):
    before = os.umask(umask)
    try:
        LocalCredentials(home).set(NAME, SECRET)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert {path.name for path in home.iterdir()} == {FILE_NAME, "credentials.lock"}


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o620])
def test_file_that_others_can_use_is_refused(home, file, mode):
    store = LocalCredentials(home)
    store.set(NAME, SECRET)
    file.chmod(mode)
    for call in (lambda: store.get(NAME), lambda: store.set(NAME, "new"), store.names):
        with pytest.raises(UsageError, match="other users"):
            call()
    file.chmod(0o600)
    assert store.get(NAME) == SECRET


@pytest.mark.parametrize("exists", [True, False])
def test_symlink_is_refused_and_its_target_is_unchanged(home, file, tmp_path, exists):
    target = tmp_path / "target.json"
    home.mkdir()
    if exists:
        target.write_text('{"credentials": []}')
        target.chmod(0o600)
    file.symlink_to(target)
    store = LocalCredentials(home)
    for call in (lambda: store.get(NAME), lambda: store.set(NAME, SECRET), lambda: store.delete(NAME)):
        with pytest.raises(UsageError, match=FILE_NAME):
            call()
    assert file.is_symlink()
    assert target.exists() == exists
    assert not exists or target.read_text() == '{"credentials": []}'


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"credentials": [{"service": 1}]}', b"\xff", b'{"version": 2}'])
def test_unusable_file_is_reported_and_never_overwritten(home, file, content):
    home.mkdir(mode=0o700)
    file.write_bytes(content)
    file.chmod(0o600)
    store = LocalCredentials(home)
    for call in (lambda: store.get(NAME), lambda: store.set(NAME, SECRET), lambda: store.delete(NAME), store.names):
        with pytest.raises(UsageError, match=FILE_NAME):
            call()
    assert file.read_bytes() == content


@pytest.mark.parametrize("name", [CredentialName("", "a"), CredentialName("s", ""), CredentialName("s\n", "a")])
def test_invalid_name_is_refused(home, name):
    with pytest.raises(UsageError, match="empty or contains control characters"):
        LocalCredentials(home).set(name, SECRET)


@pytest.mark.parametrize("secret", ["", "two\nlines", "nul\0", "\ud800"])
def test_invalid_key_is_refused_and_not_shown(home, secret):
    with pytest.raises(UsageError) as caught:
        LocalCredentials(home).set(NAME, secret)
    assert "two" not in str(caught.value)


WRITER = """
import sys
from pathlib import Path
from ostler.core.credentials import CredentialName
from ostler.credentials.store import LocalCredentials
store = LocalCredentials(Path(sys.argv[1]))
for number in range(20):
    store.set(CredentialName(sys.argv[2], str(number)), "x" * 100)
    if number % 2:
        assert store.delete(CredentialName(sys.argv[2], str(number)))
"""


def test_concurrent_writers_lose_nothing(home):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, home, f"service-{n}"]) for n in range(4)]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    expected = {CredentialName(f"service-{n}", str(number)) for n in range(4) for number in range(0, 20, 2)}
    assert set(LocalCredentials(home).names()) == expected


@pytest.fixture
def desktop(tmp_path):
    """A desktop session: `secret-tool`, what it stores, and a file that locks the keyring."""
    kept, locked, program = tmp_path / "kept.json", tmp_path / "locked", tmp_path / "bin" / "secret-tool"
    program.parent.mkdir()
    source = tmp_path / "secret_tool.py"
    source.write_text(SECRET_TOOL.format(kept=str(kept), locked=str(locked)))
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(source))} "$@"\n')
    program.chmod(0o755)
    env = {"PATH": str(program.parent), "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere", "LANG": "C.UTF-8"}
    return SimpleNamespace(env=env, kept=kept, locked=locked)


@pytest.fixture
def no_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "keyring", None)


@pytest.mark.usefixtures("no_package")
def test_key_is_stored_in_the_desktop_keyring_only(home, file, desktop):
    store = LocalCredentials(home, find_keyring(desktop.env))
    store.set(NAME, SECRET)
    assert store.get(NAME) == SECRET
    assert store.names() == [NAME]
    assert SECRET in json.loads(desktop.kept.read_text()).values()
    assert SECRET not in file.read_text("utf-8")
    assert store.delete(NAME)
    assert json.loads(desktop.kept.read_text()) == {}


@pytest.mark.usefixtures("no_package")
def test_key_goes_to_the_file_if_the_keyring_is_locked(home, desktop):
    desktop.locked.touch()
    store = LocalCredentials(home, find_keyring(desktop.env))
    store.set(NAME, SECRET)
    assert not desktop.kept.exists()
    assert LocalCredentials(home).get(NAME) == SECRET


@pytest.mark.usefixtures("no_package")
def test_key_in_a_keyring_that_is_not_available_is_reported(home, desktop):
    LocalCredentials(home, find_keyring(desktop.env)).set(NAME, SECRET)
    elsewhere = LocalCredentials(home, find_keyring({"PATH": desktop.env["PATH"]}))
    for call in (elsewhere.get, elsewhere.delete):
        with pytest.raises(UsageError, match="in the system keyring"):
            call(NAME)
    assert elsewhere.names() == [NAME]
    elsewhere.set(NAME, "new")
    assert elsewhere.get(NAME) == "new"


class FakeKeyringBackend:
    """A backend of the `keyring` package."""

    def __init__(self, priority, error=None):
        self.priority = priority
        self.error = error
        self.entries = {}

    def get_password(self, service, account):
        return self.entries.get((service, account))

    def set_password(self, service, account, secret):
        if self.error:
            raise self.error
        self.entries[service, account] = secret

    def delete_password(self, service, account):
        del self.entries[service, account]


def install(monkeypatch, backend):
    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_keyring=lambda: backend))


def test_installed_keyring_package_is_used(home, file, monkeypatch):
    backend = FakeKeyringBackend(5)
    install(monkeypatch, backend)
    store = LocalCredentials(home, find_keyring({}))
    store.set(NAME, SECRET)
    assert backend.entries == {("ostler:mcp:files", "me@example.com"): SECRET}
    assert store.get(NAME) == SECRET
    assert SECRET not in file.read_text("utf-8")
    assert store.delete(NAME)
    assert (backend.entries, store.names()) == ({}, [])


@pytest.mark.parametrize("backend", [FakeKeyringBackend(0), FakeKeyringBackend(5, RuntimeError(SECRET))])
def test_file_is_used_if_the_keyring_package_cannot_store(home, monkeypatch, backend):
    install(monkeypatch, backend)
    LocalCredentials(home, find_keyring({})).set(NAME, SECRET)
    assert LocalCredentials(home).get(NAME) == SECRET
