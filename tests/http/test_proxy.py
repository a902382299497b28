"""Selecting a proxy by the usual environment variables."""

import pytest

from ostler.core.errors import BackendError
from ostler.http.proxy import parse_proxy, proxy_for
from ostler.http.url import ServerOrigin

HTTPS = ServerOrigin("https", "api.example.com", 443)


@pytest.mark.parametrize(
    ("environ", "address"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://p:3128"}, "p:3128"),
        ({"https_proxy": "http://low:1", "HTTPS_PROXY": "http://up:1"}, "low:1"),
        ({"https_proxy": "", "HTTPS_PROXY": "http://up:1"}, None),
        ({"HTTP_PROXY": "http://p:3128"}, None),
        ({"ALL_PROXY": "p:3128"}, "p:3128"),
        ({"HTTPS_PROXY": "p:3128", "NO_PROXY": "other.com"}, "p:3128"),
        ({"HTTPS_PROXY": "p:3128", "NO_PROXY": "*"}, None),
        ({"HTTPS_PROXY": "p:3128", "NO_PROXY": "api.example.com"}, None),
        ({"HTTPS_PROXY": "p:3128", "NO_PROXY": "a.b, example.com"}, None),
        ({"HTTPS_PROXY": "p:3128", "NO_PROXY": ".example.com"}, None),
        ({"HTTPS_PROXY": "p:3128", "NO_PROXY": "*.example.com"}, None),
        ({"HTTPS_PROXY": "p:3128", "no_proxy": "EXAMPLE.com"}, None),
        ({"HTTPS_PROXY": "p:3128", "NO_PROXY": "ample.com"}, "p:3128"),
        ({"HTTPS_PROXY": "p:3128", "NO_PROXY": "example.com:443"}, None),
        ({"HTTPS_PROXY": "p:3128", "NO_PROXY": "example.com:8443"}, "p:3128"),
        ({"HTTPS_PROXY": "p:3128", "NO_PROXY": "10.0.0.0/8"}, "p:3128"),
    ],
)
def test_proxy_by_environment(environ, address):
    proxy = proxy_for(HTTPS, environ)
    assert (proxy.origin.address if proxy else None) == address


@pytest.mark.parametrize(
    ("host", "no_proxy", "used"),
    [
        ("10.1.2.3", "10.0.0.0/8", False),
        ("11.1.2.3", "10.0.0.0/8", True),
        ("10.1.2.3", "nonsense/8", True),
        ("10.1.2.3", "10.1.2.3", False),
        ("fd00::1", "fd00::/8", False),
        ("fd00::1", "[fd00::1]:443", False),
        ("localhost", "", False),
        ("127.0.0.1", "", False),
    ],
)
def test_no_proxy_addresses(host, no_proxy, used):
    environ = {"HTTPS_PROXY": "http://p:1", "NO_PROXY": no_proxy}
    assert (proxy_for(ServerOrigin("https", host, 443), environ) is not None) is used


def test_http_proxy_is_ignored_in_cgi_scripts():
    environ = {"HTTP_PROXY": "http://evil:1", "REQUEST_METHOD": "GET"}
    assert proxy_for(ServerOrigin("http", "x.example", 80), environ) is None


def test_credentials_are_decoded_into_a_header():
    proxy = parse_proxy("http://me:p%40ss@p.example:3128")
    assert proxy.origin.address == "p.example:3128"
    assert proxy.credentials == "Basic bWU6cEBzcw=="


@pytest.mark.parametrize("url", ["socks5://p:1", "https://p:1", "http://", "http://p:1:2"])
def test_invalid_proxy_url(url):
    with pytest.raises(BackendError) as caught:
        parse_proxy(url)
    assert caught.value.fault.code == "proxy"
    assert "HTTPS_PROXY" in str(caught.value)


def test_password_is_not_shown():
    with pytest.raises(BackendError) as caught:
        parse_proxy("http://me:hunter2@:x")
    assert "hunter2" not in str(caught.value)
