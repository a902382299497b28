"""The environment of commands: secrets out, prompts off, the rest as it is."""

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
def test_secrets_are_left_out(name):
    assert is_secret(name, "x") and name not in command_environment({name: "x"})


@pytest.mark.parametrize("name", _HARMLESS)
def test_the_rest_stays(name):
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
def test_an_address_with_a_password_is_a_secret(value, secret):
    assert is_secret("DATABASE_URL", value) is secret


@pytest.mark.parametrize("name", ["BASH_ENV", "ENV", "PROMPT_COMMAND", "BASH_FUNC_ls%%", "SHELLOPTS"])
def test_nothing_runs_before_the_command(name):
    assert name not in command_environment({name: "x"})


@pytest.mark.parametrize("name", ["SSH_AUTH_SOCK", "DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST"])
def test_ways_out_of_a_sandbox_are_dropped_in_one(name):
    assert name in command_environment({name: "x"})
    assert name not in command_environment({name: "x"}, sandboxed=True)


def test_pagers_and_prompts_are_off_and_a_person_s_ssh_is_kept():
    assert command_environment({"PAGER": "less", "TERM": "xterm"}) == NON_INTERACTIVE_ENV
    assert command_environment({"GIT_SSH_COMMAND": "ssh -i k"})["GIT_SSH_COMMAND"] == "ssh -i k"


@pytest.mark.req("SH-1")
async def test_a_command_sees_it_so(processes, monkeypatch):
    monkeypatch.setenv("SOME_SECRET", "sk-1")
    ran = await processes.run('echo "[$SOME_SECRET] $PAGER $TERM $EXTRA"', timeout=60, env={"EXTRA": "given"})
    assert ran.stdout == "[] cat dumb given\n"
