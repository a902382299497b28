"""Logins at servers in the store of credentials."""

import stat

import pytest

from ostler.core.credentials import CredentialName
from ostler.core.errors import UsageError
from ostler.credentials.server_logins import SERVICE, ServerLogin, ServerLogins
from ostler.credentials.store import FILE_NAME, LocalCredentials

pytestmark = pytest.mark.req("SV-5")
URL = "https://host:8034"


@pytest.fixture
def store(tmp_path):
    return LocalCredentials(tmp_path)


def test_login_is_stored_in_a_private_file_and_deleted(store, tmp_path):
    logins, login = ServerLogins(store), ServerLogin("secret", "ab" * 32, allow_plain=True)
    logins.set(URL, login)
    assert logins.get(URL) == login
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600
    assert logins.delete(URL)
    assert logins.get(URL) is None
    assert not logins.delete(URL)


def test_only_servers_are_listed(store):
    store.set(CredentialName("agent_zero", "host:1"), "key")
    logins = ServerLogins(store)
    logins.set(URL, ServerLogin("a"))
    logins.set("http://127.0.0.1:1", ServerLogin("b"))
    assert logins.urls() == ["http://127.0.0.1:1", URL]


def test_token_of_one_address_is_not_used_for_another(store):
    logins = ServerLogins(store)
    logins.set(URL, ServerLogin("a"))
    for other in ("http://host:8034", "https://host:8035", "https://host", "https://host:8034/"):
        assert logins.get(other) is None


def test_damaged_login_says_what_to_do(store):
    store.set(CredentialName(SERVICE, URL), "no json")
    with pytest.raises(UsageError, match="ostler login https://host:8034"):
        ServerLogins(store).get(URL)
