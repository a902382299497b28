"""A client can revoke the token that it uses, and no other."""

import pytest

from ostler.core.errors import JournalError
from ostler.wire.pairing import TOKEN_PATH

pytestmark = pytest.mark.req("SV-5")


def test_client_revokes_its_own_token_only(server):
    first, second = (server.accounts.issue("ada").text for _ in range(2))
    assert server.request("DELETE", TOKEN_PATH, first)[0] == 204
    assert server.request("GET", "/api/x", first)[0] == 401
    assert server.request("GET", "/api/x", second)[0] == 200
    assert server.entries()[0]["event"] == "token.revoked"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_other_methods_revoke_nothing(server, method):
    token = server.accounts.issue("ada").text
    assert server.request(method, TOKEN_PATH, token)[0] == 405
    assert server.request("GET", "/api/x", token)[0] == 200


def test_nothing_is_revoked_without_a_token_or_from_a_web_page(server):
    token = server.accounts.issue("ada").text
    assert server.request("DELETE", TOKEN_PATH)[0] == 401
    assert server.request("DELETE", TOKEN_PATH, token, [("Origin", "https://evil.example")])[0] == 403
    assert server.request("GET", "/api/x", token)[0] == 200


def test_failed_revocation_is_reported(server, monkeypatch):
    token = server.accounts.issue("ada").text

    def fail(token_id):
        raise JournalError("disk error")

    monkeypatch.setattr(server.accounts, "revoke", fail)
    assert server.request("DELETE", TOKEN_PATH, token)[0] == 503
