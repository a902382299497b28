"""The filter of this machine: it knows the secrets of the settings wherever they stand, and no ordinary word."""

import json

import pytest

from ostler.app.redaction import make_redactor
from ostler.settings.load import load

pytestmark = pytest.mark.req("MD-3")

PROFILE = {
    "name": "p",
    "model": "m",
    "baseUrl": "http://{env:HOST_NAME}:1/v1?zone=planted-query&more={file:query.txt}",
    "apiKey": "{file:key.txt}",
    "headers": {"X-Zone": "planted-header", "X-Team": "{env:TEAM_NAME}"},
    "proxy": "http://me:planted@word@proxy.example:1",
}


@pytest.fixture
def redact(tmp_path):
    home = tmp_path / ".ostler"
    home.mkdir()
    (home / "config.json").write_text(json.dumps({"models": {"profiles": [PROFILE]}}))
    (home / "key.txt").write_text("planted-key\n")
    (home / "query.txt").write_text("planted-more")
    env = {"HOME": str(tmp_path), "HOST_NAME": "ordinary-host", "TEAM_NAME": "planted-team"}
    env["OSTLER_BASE_URL"] = "http://other-host/v1?sig=planted%20elsewhere"
    return make_redactor(load(tmp_path, env), env).redact


@pytest.mark.parametrize(
    "secret",
    [
        *("planted-query", "planted-more", "planted-key", "planted-header", "planted-team", "planted@word"),
        *("planted elsewhere", "planted%20elsewhere"),
    ],
)
def test_a_secret_of_the_settings_is_taken_out(redact, secret):
    assert secret not in redact(f"it said {secret} there")


@pytest.mark.parametrize("word", ["ordinary-host", "proxy.example", "other-host"])
def test_where_a_server_is_stays(redact, word):
    assert redact(f"it said {word} there") == f"it said {word} there"
