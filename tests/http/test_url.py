"""Origins, and URLs in messages."""

import pytest

from ostler.http.url import ServerOrigin, strip_secrets


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("localhost", True), ("127.0.0.2", True), ("::1", True), ("a.localhost", True), ("10.0.0.1", False)],
)
def test_loopback(host, loopback):
    assert ServerOrigin("http", host, 80).is_loopback is loopback


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:pw@host:1/v1?key=x", "http://host:1/v1"),
        ("https://host/v1", "https://host/v1"),
        ("http://a@b@host/v1", "http://host/v1"),
    ],
)
def test_secrets_are_stripped_from_url(url, shown):
    assert strip_secrets(url) == shown
