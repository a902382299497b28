"""Secrets are never shown."""

import copy
import json
import pickle
from typing import Any

import msgspec
import pytest

from ostler.settings.config_report import format_settings
from ostler.settings.masking import mask_secrets
from ostler.settings.model_profiles import active_profile
from ostler.settings.secret import Secret, decode_secret, encode_masked

pytestmark = pytest.mark.req("MD-3")

KEY = "hunter2-hunter2"


def test_secret_is_never_shown() -> None:
    secret = Secret(KEY)
    texts = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret!r:>20}",
        format(secret, ""),
        str([secret]),
        str({"k": secret}),
    ]
    assert all(KEY not in text and "***" in text for text in texts)
    assert secret.reveal() == KEY
    assert (secret == Secret(KEY), secret == KEY, bool(Secret(""))) == (True, False, False)
    assert len({secret, Secret(KEY)}) == 1
    for serialize in (pickle.dumps, copy.deepcopy, json.dumps, msgspec.json.encode):
        with pytest.raises(TypeError) as caught:
            serialize(secret)
        assert KEY not in str(caught.value)


def test_hooks_reject_other_types() -> None:
    with pytest.raises(TypeError):
        decode_secret(Secret, 3)
    with pytest.raises(NotImplementedError):
        encode_masked(object())


@pytest.mark.parametrize(
    ("text", "shown"), [("{env:X}", "{env:X}"), ("{file:~/k}", "{file:~/k}"), ("k{env:X}", "***"), ("", "***")]
)
def test_only_a_complete_reference_is_shown(text: str, shown: str) -> None:
    assert Secret(text).display_text() == shown


EVERYWHERE = {
    "models": {
        "active": "p",
        "profiles": [
            {
                "name": "p",
                "baseUrl": f"http://u:{KEY}@x/v1",
                "apiKey": KEY,
                "headers": {"X-Any": KEY},
                "proxy": f"http://u:{KEY}@p",
                "options": {"api_key": KEY, "nested": [{"password": KEY}]},
            }
        ],
    },
    "provider": {
        "api_key": KEY,
        "x": {"options": {"apiKey": KEY, "headers": {"H": KEY}}, "models": {"m": {"headers": {"H": KEY}}}},
    },
    "mcp": {"m": {"command": ["x"], "environment": {"TOKEN": KEY}}},
    "agent_servers": {"a": {"command": "x", "env": {"E_TOKEN": KEY}}},
    "mcp_servers": [{"name": "a", "command": "x", "env": {"E_TOKEN": KEY}}],
    "connection": {"api_key": KEY},
    "server": {"store": f"postgresql://u:{KEY}@h/d"},
}


def test_secrets_of_all_sections_are_masked(tree: Any) -> None:
    tree.user(json.dumps(EVERYWHERE))
    tree.project(json.dumps(EVERYWHERE))
    for trusted in (False, True):
        settings = tree.load(trusted=trusted, AGENTZERO_API_KEY=KEY)
        texts = [
            repr(settings.config),
            repr(settings),
            repr(settings.layers),
            repr(settings.pending_trust),
            format_settings(settings),
            format_settings(settings, with_origin=True),
        ]
        assert all(KEY not in text for text in texts)
    profile = active_profile(settings, {"OSTLER_API_KEY": KEY})
    assert profile and profile.key and KEY not in repr(profile)


@pytest.mark.parametrize(
    ("value", "name", "shown"),
    [
        ("plain", "model", "plain"),
        ("http://user:pw@host/x", "baseUrl", "http://***@host/x"),
        ("https://host/v1?api-version=2024-02-01", "baseUrl", "https://host/v1?api-version=2024-02-01"),
        ("{env:X}", "apiKey", "{env:X}"),
        ("", "apiKey", ""),
        (3, "apiKey", 3),
        ({"tls": {"cert": "/c.pem", "key": "/k.pem"}}, "", {"tls": {"cert": "/c.pem", "key": "/k.pem"}}),
        (("a", "b"), "command", ["a", "b"]),
    ],
)
def test_masking_keeps_values_that_are_not_secret(value: object, name: str, shown: object) -> None:
    assert mask_secrets(value, name) == shown


@pytest.mark.req("MD-3")
@pytest.mark.parametrize(("name", "key"), [("token", KEY), ("key", "Zq3vT8mK1xW7pL5rB9nD2cF6")])
def test_key_in_url_query_is_masked(name: str, key: str) -> None:
    shown = mask_secrets(f"https://host/v1?a=b&{name}={key}", "baseUrl")
    assert key not in shown
    assert shown.startswith(f"https://host/v1?a=b&{name}=***#")
