"""The environment of commands: no secrets, no prompts, the rest unchanged."""

import pytest

from ostler.processes.command_environment import NON_INTERACTIVE_ENV, command_environment, is_secret

_SECRETS = [
    *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"),
    *("NPM_TOKEN", "PGPASSWORD", "MYSQL_PWD_PASSWORD", "DB_PASS", "SSH_PRIVATE", "GOOGLE_APPLICATION_CREDENTIALS"),
    *("openai_api_key", "MYTOKEN", "GITHUB_PAT", "SENTRY_DSN", "NPM_AUTH", "SSH_ASKPASS", "SUDO_ASKPASS", "A_JWT"),
]
_HARMLESS = [
    *("PATH", "HOME", "PWD", "LANG", "USER", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "PYTHONPATH", "VIRTUAL_ENV"),
    *("TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK", "COMPASS", "PATTERN", "JAVA_HOME", "PINNED", "BYPASS_CACHE"),
]


@pytest.mark.parametrize("name", _SECRETS)
def test_secrets_are_removed(name):
    assert is_secret(name, "x") and name not in command_environment({name: "x"})


@pytest.mark.parametrize("name", _HARMLESS)
def test_harmless_variables_are_kept(name):
    assert command_environment({name: "/x"})[name] == "/x"


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ("postgres://user:pw@host/db", True),
        ("redis://:pw@host", True),
        ("https://host/path", False),
        ("https://user@host/", False),
        ("http://host:8080/a@b", False),
    ],
)
def test_url_with_password_is_secret(value, secret):
    assert is_secret("DATABASE_URL", value) is secret


@pytest.mark.parametrize("name", ["BASH_ENV", "ENV", "PROMPT_COMMAND", "BASH_FUNC_ls%%", "SHELLOPTS"])
def test_code_variables_are_removed(name):
    assert name not in command_environment({name: "x"})


@pytest.mark.parametrize("name", ["SSH_AUTH_SOCK", "DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST"])
def test_escape_variables_are_removed_in_sandbox(name):
    assert name in command_environment({name: "x"})
    assert name not in command_environment({name: "x"}, sandboxed=True)


def test_pagers_and_prompts_are_off_and_ssh_command_is_kept():
    assert command_environment({"PAGER": "less", "TERM": "xterm"}) == NON_INTERACTIVE_ENV
    assert command_environment({"GIT_SSH_COMMAND": "ssh -i k"})["GIT_SSH_COMMAND"] == "ssh -i k"


@pytest.mark.req("SH-1")
async def test_command_gets_this_environment(processes, monkeypatch):
    monkeypatch.setenv("SOME_SECRET", "sk-1")
    result = await processes.run('echo "[$SOME_SECRET] $PAGER $TERM $EXTRA"', timeout=60, env={"EXTRA": "given"})
    assert result.stdout == "[] cat dumb given\n"
