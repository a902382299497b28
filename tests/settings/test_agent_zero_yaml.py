"""The config.yaml of Agent Zero's own client, and its environment variables."""

import pytest

from ostler.settings.load import load

FULL = """
connection:
  api_url: http://zero.example/api_message
  api_key: k3y-of-the-file
  lifetime_hours: 5
  stream_mode: sse
  use_mock: false
  workspace_root: /elsewhere
security:
  mode: paranoid
  allow_shell: true
  whitelist: [ls, git status]
  blacklist_patterns: ["rm -rf", ":(){"]
context:
  mode: once
  max_bytes: 999
  redact_keys: [shoe_size]
observer:
  enabled: true
agent_profile: reviewer
agent_profiles:
  reviewer: {prompt: Review only.}
"""


@pytest.fixture
def folders(tmp_path):
    home, cwd = tmp_path / "home", tmp_path / "ws"
    (home / ".config" / "agentzero").mkdir(parents=True)
    (home / ".ostler").mkdir()
    cwd.mkdir()
    return home, cwd


def load_in(folders, *, user="", project="", own="", trusted=False, **variables):
    home, cwd = folders
    for path, text in (
        (home / ".config" / "agentzero" / "config.yaml", user),
        (cwd / "config.yaml", project),
        (home / ".ostler" / "config.json", own),
    ):
        if text:
            path.write_text(text)
    return load(cwd, {"HOME": str(home), **variables}, trusted=trusted)


@pytest.mark.req("AZ-1")
def test_users_file_is_read_as_it_is(folders):
    settings = load_in(folders, user=FULL)
    connection, context = settings.config.connection, settings.config.context
    assert (connection.api_url, connection.lifetime_hours, connection.stream_mode) == (
        "http://zero.example/api_message",
        5,
        "sse",
    )
    assert connection.api_key.reveal() == "k3y-of-the-file"
    assert (connection.instructions, connection.agent_profile) == ("Review only.", "")
    assert (context.mode, context.max_bytes, context.redact_keys) == ("once", 999, ("shoe_size",))


@pytest.mark.req("SH-7", "PM-3")
def test_its_security_applies_only_to_sessions_with_agent_zero(folders):
    settings = load_in(folders, user=FULL)
    assert (settings.config.security.profile, settings.config.security.allow_shell) == ("balanced", None)
    security = settings.for_agent_zero().config.security
    assert (security.profile, security.allow_shell, security.whitelist) == ("paranoid", True, ("ls", "git status"))
    assert security.blacklist_patterns == ("(?i)rm\\ \\-rf", "(?i):\\(\\)\\{")


def test_unsupported_settings_are_reported_and_wrong_ones_ignored(folders):
    settings = load_in(folders, user=FULL.replace("lifetime_hours: 5", "lifetime_hours: soon"))
    notes = "\n".join(settings.zero_notes)
    for name in ("connection.use_mock", "connection.workspace_root", "observer", "connection.lifetime_hours"):
        assert f"config.yaml: {name} is " in notes
    assert settings.config.connection.lifetime_hours == 24
    assert not settings.problems


@pytest.mark.req("AZ-5")
def test_a_wrong_item_does_not_switch_off_the_others_of_its_list(folders):
    text = (
        'context: {redact_patterns: ["(", "acme-[0-9]+"]}\nsecurity: {blacklist_patterns: [7, rm], allow_shell: false}'
    )
    settings = load_in(folders, user=text)
    assert settings.config.context.redact_patterns == ("acme-[0-9]+",)
    assert settings.for_agent_zero().config.security.blacklist_patterns == ("(?i)rm",)
    assert [note.partition("config.yaml: ")[2].partition(": ")[0] for note in settings.zero_notes] == [
        "context.redact_patterns is ignored",
        "security.blacklist_patterns is ignored",
    ]


def test_many_unknown_settings_give_few_messages(folders):
    settings = load_in(folders, user=FULL + "".join(f"key{number}: 1\n" for number in range(3000)))
    assert len(settings.zero_notes) == 21
    assert settings.zero_notes[-1].endswith("2983 more settings are ignored")


def test_variable_and_own_config_override_the_file(folders):
    own = '{"connection": {"lifetime_hours": 6, "stream_mode": "jsonl"}}'
    variables = {"AGENTZERO_LIFETIME_HOURS": "7", "AGENTZERO_ALLOW_SHELL": "false"}
    settings = load_in(folders, user=FULL, own=own, **variables)
    connection = settings.config.connection
    assert (connection.lifetime_hours, connection.stream_mode) == (7, "jsonl")
    assert connection.api_url == "http://zero.example/api_message"
    assert settings.for_agent_zero().config.security.allow_shell is False


@pytest.mark.req("PM-3")
def test_file_of_the_workspace_restricts_at_once_and_widens_only_with_trust(folders):
    settings = load_in(folders, project=FULL)
    assert settings.config.connection.api_url == ""
    security = settings.for_agent_zero().config.security
    assert (security.profile, security.allow_shell, security.whitelist) == ("paranoid", None, ())
    assert len(security.blacklist_patterns) == 2
    pending = {setting.key for setting in settings.pending_trust}
    assert {"connection.api_url", "connection.api_key", "connection.security", "context.mode"} <= pending
    assert (settings.config.context.redact_keys, settings.config.context.max_bytes) == (("shoe_size",), 999)
    trusted = load_in(folders, project=FULL, trusted=True)
    assert trusted.config.connection.api_url == "http://zero.example/api_message"
    assert trusted.for_agent_zero().config.security.allow_shell is True


@pytest.mark.parametrize(
    "text",
    [
        "connection:\n  pool_size: 3\n",  # of another program
        "connection: &a [*a]\nsecurity: !!python/object/apply:os.system [true]\n",
        "connection: {api_url: [1, 2\n",
        "security:\n  allow_shell: " + "[" * 900,
        "- connection\n",
        "connection:\n  api_url: 7\n  host: [x]\nsecurity:\n  allow_shell: perhaps\n",
        "\x00connection:\n",
    ],
)
def test_other_and_broken_files_never_stop_ostler(folders, text):
    settings = load_in(folders, user=text, project=text)
    assert settings.config.connection.api_url == ""
    assert settings.for_agent_zero().config.security.allow_shell is None
    assert not settings.problems
