"""Trust in a project covers the ACP agents it names: shown in full, for as long as nothing about them changes."""

import json

import pytest

from ostler.app.acp_agent_config import find_agent
from ostler.app.trusted_settings import collect_trust_items, count_untrusted, load_settings, trust_diff, trust_store
from ostler.core.errors import UsageError
from ostler.settings.load import load

pytestmark = pytest.mark.req("PM-8", "AC-1")


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A workspace whose project names an agent that is a script of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OSTLER_HOME", raising=False)
    folder = tmp_path / "work"
    (folder / ".ostler").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    (folder / "agent.sh").write_text("echo hi")
    entry = {
        "command": "sh",
        "args": ["./agent.sh"],
        "env": {"LD_PRELOAD": "x.so", "API_KEY": "sk-9f8a7b6c5d4e3f2a1b0c"},
    }
    (folder / ".ostler" / "acp.json").write_text(json.dumps({"agent_servers": {"theirs": entry}}))
    return folder


def lines(work):
    return collect_trust_items(work, load(work, {})).lines


def trust(work):
    parts = collect_trust_items(work, load(work, {}))
    trust_store().grant(work, parts.digest, parts.lines)


def trusted(work):
    return load_settings(work).trusted


def test_what_the_file_names_is_shown_in_full_without_secrets(work):
    entry, program, whole = lines(work)
    assert entry.startswith('.ostler/acp.json: agent_servers.theirs = {"command": "sh", "args": ["./agent.sh"]')
    assert '"LD_PRELOAD": "x.so"' in entry
    assert "sk-9f8a" not in entry
    assert program.startswith("program agent.sh: sha256 ")
    assert whole.startswith(".ostler/acp.json: sha256 ")
    assert count_untrusted(work, load_settings(work)) == 3


def test_a_trusted_workspace_needs_no_flag(work):
    with pytest.raises(UsageError, match="no ACP agent 'theirs'"):
        find_agent("theirs", "", work, load_settings(work))
    trust(work)
    assert find_agent("theirs", "", work, load_settings(work)).entry.command == "sh"


@pytest.mark.parametrize("change", ["the file", "the script"])
def test_a_change_waits_again(work, change):
    trust(work)
    assert trusted(work)
    if change == "the script":
        (work / "agent.sh").write_text("rm -r .")
    else:
        (work / ".ostler" / "acp.json").write_text('{"agent_servers": {"theirs": {"command": "rm"}}}')
    assert not trusted(work)
    shown = trust_diff(trust_store().find_grant(work), lines(work))
    assert any(line.startswith("+ ") for line in shown)


@pytest.mark.parametrize("text", ["nonsense", "[1]", '{"agent_servers": 7}', '{"agent_servers": {"x": [1]}}', "{}"])
def test_a_file_that_makes_no_sense_is_told_and_breaks_nothing(work, text):
    (work / ".ostler" / "acp.json").write_text(text)
    assert lines(work)
    assert not trusted(work)


def test_at_home_the_file_is_the_persons_own(work, monkeypatch):
    monkeypatch.setenv("HOME", str(work))
    assert lines(work) == ()
