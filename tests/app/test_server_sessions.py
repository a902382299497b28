"""The sessions at the servers that this machine knows, and how they are listed."""

import shlex
import threading

import pytest

from ostler.app import server_sessions
from ostler.app.server_sessions import ServerSession, list_server_sessions
from ostler.backends.remote.server import RemoteSession
from ostler.cli.sessions_text import format_server_list

pytestmark = pytest.mark.req("SV-12")


async def test_list_does_not_wait_for_a_locked_keyring(tmp_path, monkeypatch):
    unlocked = threading.Event()
    monkeypatch.setenv("OSTLER_HOME", str(tmp_path))
    monkeypatch.setattr(server_sessions, "LIST_SECONDS", 0.05)
    monkeypatch.setattr(server_sessions, "known_servers", lambda backend: ["https://127.0.0.1:1"])
    monkeypatch.setattr(server_sessions, "find_server", lambda *_: unlocked.wait(10))
    try:
        assert list(await list_server_sessions("")) == []
    finally:
        unlocked.set()


def test_listed_backend_is_one_word_in_a_shell():
    backend = "remote:https://host:1/api/agent/sessions/x; touch $(id) `id` 'y'"
    lines = format_server_list([ServerSession(RemoteSession("x"), backend, "host")]).splitlines()
    assert shlex.split(lines[1]) == ["--backend", backend]
