"""The redactor masks secrets of the settings and environment, and no ordinary words."""

import json

import pytest

from ostler.app.interactive import contains_secret
from ostler.settings.known_secrets import secrets_in_use
from ostler.settings.load import load
from ostler.storage.redaction import make_redactor

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
def test_secret_of_the_settings_is_masked(redact, secret):
    assert secret not in redact(f"the value {secret} there")


@pytest.mark.parametrize("word", ["ordinary-host", "proxy.example", "other-host"])
def test_host_names_are_not_masked(redact, word):
    assert redact(f"the value {word} there") == f"the value {word} there"


def in_use(tmp_path, profile, *extra_secrets, **env):
    (tmp_path / ".ostler").mkdir(exist_ok=True)
    (tmp_path / ".ostler" / "config.json").write_text(json.dumps({"models": {"profiles": [PROFILE | profile]}}))
    (tmp_path / ".ostler" / "key.txt").write_text("a-key-in-a-file\n")
    (tmp_path / ".ostler" / "query.txt").write_text("x")
    env = {"HOME": str(tmp_path), "HOST_NAME": "h", "TEAM_NAME": "team-of-many-people"} | env
    return secrets_in_use(load(tmp_path, env), env, *extra_secrets)


def test_secrets_in_use(tmp_path):
    headers = {
        "Authorization": "Bearer of-the-profile-1",
        "X-Zone": "eu-central-northern",
        "X-Id": "8f3kQ0z9xW1m7Vb2Lp5T",
    }
    secrets = in_use(
        tmp_path,
        {"headers": headers, "proxy": "http://me:a-word-of-the-proxy@proxy.example:1"},
        "the-flag-with-a-key",
        OPENAI_API_KEY="sk-of-somebody-else",
        DB_PASSWORD="correct-horse-9",
    )
    assert secrets == {
        *("of-the-profile-1", "8f3kQ0z9xW1m7Vb2Lp5T", "a-word-of-the-proxy", "the-flag-with-a-key"),
        *("sk-of-somebody-else", "correct-horse-9", "a-key-in-a-file"),
    }


def test_harmless_values_are_not_secrets(tmp_path):
    harmless = {"SSH_AUTH_SOCK": "/tmp/ssh-1234567890/agent.1", "DB_PASSWORD": "developmentdb", "MY_TOKEN": "short1"}
    secrets = in_use(tmp_path, {"apiKey": "ollama", "proxy": "", "headers": {}}, "", **harmless)
    assert secrets == set()


def test_prompt_with_a_secret_is_detected(tmp_path, monkeypatch):
    monkeypatch.setenv("OSTLER_API_KEY", 'sk-"planted"-0123456789')
    settings = load(tmp_path, {"HOME": str(tmp_path)})
    assert contains_secret(settings, "", 'is sk-"planted"-0123456789 it?')
    assert contains_secret(settings, "given-as-a-flag", "given-as-a-flag")
    assert not contains_secret(settings, "", "is it?")


@pytest.mark.parametrize("name", ["PWD", "OLDPWD"])
def test_shell_folder_variables_are_not_secrets(tmp_path, name):
    folder = "/tmp/pytest-of-root/pytest-709/test_x0kQ9zR7/workspace"
    env = {"HOME": str(tmp_path), name: folder, "DB_PASSWORD": folder}
    assert secrets_in_use(load(tmp_path, {"HOME": str(tmp_path)}), {"HOME": str(tmp_path), name: folder}) == set()
    assert folder in secrets_in_use(load(tmp_path, env), env)  # under another name it is masked
    redact = make_redactor(load(tmp_path, {"HOME": str(tmp_path)}), {"HOME": str(tmp_path), name: folder}).redact
    assert redact(f"opened in {folder}/a.py") == f"opened in {folder}/a.py"
    assert redact(f"{name}={folder}") == f"{name}={folder}"
