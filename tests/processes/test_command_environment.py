"""The environment of commands: no secrets, no prompts, the rest unchanged."""

import pytest

from ostler.processes.command_environment import NON_INTERACTIVE_ENV, command_environment, is_secret

_SECRETS = [
    *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"),
    *("NPM_TOKEN", "PGPASSWORD", "MYSQL_PWD_PASSWORD", "DB_PASS", "SSH_PRIVATE", "GOOGLE_APPLICATION_CREDENTIALS"),
    *("MYSQL_PWD", "SMTP_PWD", "ADMIN_PW", "LDAP_BINDPW", "ROOTPW2", "DBPWD", "AZURE_STORAGE_CONNECTION_STRING"),
    *("SLACK_WEBHOOK", "DISCORD_WEBHOOK_URL", "GIT_CREDS", "SEED_PHRASE", "MNEMONIC", "WALLET_SEED", "STRIPE_SK"),
    *("openai_api_key", "MYTOKEN", "GITHUB_PAT", "SENTRY_DSN", "NPM_AUTH", "SSH_ASKPASS", "SUDO_ASKPASS", "A_JWT"),
]
_HARMLESS = [
    *("PATH", "HOME", "PWD", "LANG", "USER", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "PYTHONPATH", "VIRTUAL_ENV"),
    *("TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK", "COMPASS", "PATTERN", "JAVA_HOME", "PINNED", "BYPASS_CACHE"),
    *("OLDPWD", "INIT_CWD", "PW_TEST_REPORTER", "SKIP", "MASK", "DISK", "PYTHONHASHSEED", "SPEC", "CI", "TASK_NAME"),
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


@pytest.mark.req("SH-1")
@pytest.mark.parametrize(
    "value",
    [
        "jdbc:mysql://db/x?user=app&password=hunter22",
        "jdbc:oracle:thin:app/hunter22@db:1521/x",
        "Server=db;User Id=app;Password=hunter22;",
        '{"user": "app", "password": "hunter22"}',
        "-Djavax.net.ssl.keyStorePassword=hunter22 -Xmx1g",
        "Authorization: Bearer abcdefgh12345678",
        "https://hooks.slack.com/services/T00000000/B00000000/abcdEFGH1234abcdEFGH1234",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "app:hunter22@tcp(db:3306)/x",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----",
        "$6$saltsalt$" + "Kx1./" * 17 + "a",
        "x" * 100_000,
    ],
)
def test_a_secret_in_the_value_counts_whatever_the_name(value):
    assert "SERVICE_SETTING" not in command_environment({"SERVICE_SETTING": value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RANDOM_SEED", "42"),
        ("LS_COLORS", "rs=0:di=01;34:ln=01;36:mh=00:pi=40;33:*.tar=01;31:*.key=00;32"),
        ("PATH", "/home/me/.local/bin:/usr/local/bin:/usr/bin"),
        ("NODE_OPTIONS", "--max-old-space-size=4096"),
        ("GIT_AUTHOR_EMAIL", "me@example.org"),
        ("PS1", r"\u@\h:\w\$ "),
        ("LESSOPEN", "| /usr/bin/lesspipe %s"),
        ("XDG_DATA_DIRS", "/usr/local/share:/usr/share:/var/lib/flatpak/exports/share"),
        ("COMMIT", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"),
        ("INVOCATION_ID", "3f0d8e6b7c0c4bd1a5d1f0d3b2b1a4c9"),
        ("HTTP_PROXY", "http://proxy.example:3128"),
    ],
)
def test_values_that_programs_need_are_passed_on(name, value):
    assert command_environment({name: value})[name] == value


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
