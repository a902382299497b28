"""Base URLs as users write them."""

import pytest

from ostler.core.errors import UsageError
from ostler.models.base_url import parse_base_url


@pytest.mark.req("MD-1")
@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("http://localhost:8000", "http://localhost:8000 /v1/chat/completions"),
        ("http://localhost:8000/", "http://localhost:8000 /v1/chat/completions"),
        ("http://localhost:8000/v1", "http://localhost:8000 /v1/chat/completions"),
        ("http://localhost:8000/v1/", "http://localhost:8000 /v1/chat/completions"),
        ("http://localhost:8000/v1//", "http://localhost:8000 /v1/chat/completions"),
        ("http://localhost:8000/v1/chat/completions", "http://localhost:8000 /v1/chat/completions"),
        ("http://localhost:8000/v1/chat/completions/", "http://localhost:8000 /v1/chat/completions"),
        ("localhost:8000", "http://localhost:8000 /v1/chat/completions"),
        ("gpu-box:8000/v1", "http://gpu-box:8000 /v1/chat/completions"),
        ("192.168.1.5:8000", "http://192.168.1.5:8000 /v1/chat/completions"),
        ("api.example.com/v1", "https://api.example.com /v1/chat/completions"),
        (" HTTPS://API.Example.com/v1 ", "https://api.example.com /v1/chat/completions"),
        ("https://api.example.com:443/v1", "https://api.example.com /v1/chat/completions"),
        ("https://api.example.com/api/openai", "https://api.example.com /api/openai/chat/completions"),
        ("http://[::1]:8000/v1", "http://[::1]:8000 /v1/chat/completions"),
        ("https://bücher.example/v1", "https://xn--bcher-kva.example /v1/chat/completions"),
        ("https://x.example/a/ü", "https://x.example /a/%C3%BC/chat/completions"),
        ("https://x.example/v1?api-version=3#top", "https://x.example /v1/chat/completions?api-version=3"),
    ],
)
def test_openai(text, target):
    base = parse_base_url(text)
    assert f"{base.origin.scheme}://{base.origin.authority} {base.endpoint('chat/completions')}" == target


@pytest.mark.req("MD-1")
@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("https://api.anthropic.com", "/v1/messages"),
        ("https://api.anthropic.com/v1", "/v1/messages"),
        ("https://api.anthropic.com/v1/messages", "/v1/messages"),
        ("https://x.example/anthropic", "/anthropic/v1/messages"),
        ("https://x.example/api/v2/anthropic", "/api/v2/anthropic/messages"),
        ("https://x.example/vertex", "/vertex/v1/messages"),
    ],
)
def test_anthropic(text, target):
    assert parse_base_url(text, "anthropic").endpoint("messages") == target


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "invalid base URL"),
        ("http://", "invalid base URL"),
        ("http:///v1", "invalid base URL"),
        ("ftp://x.example", "ftp://"),
        ("http://x.example:99999", "99999"),
        ("http://x.example:0", "port 0"),
        ("http://x.example/a b", "spaces"),
        ("http://x.example/\nX-Evil: 1", "spaces"),
        ("http://" + "ü" * 80 + ".example", "invalid host name"),
        ("http://[::1", "invalid base URL"),
    ],
)
def test_invalid_base_url(text, message):
    with pytest.raises(UsageError) as caught:
        parse_base_url(text)
    assert message in str(caught.value)


@pytest.mark.req("MD-3")
def test_key_in_url_is_rejected_and_not_shown():
    with pytest.raises(UsageError) as caught:
        parse_base_url("https://sk-secret@api.example.com/v1")
    assert "sk-secret" not in str(caught.value)
