"""Trust covers the ACP agents of a project, until one of them changes."""

import json

import pytest

from ostler.core.errors import UsageError
from ostler.knowledge.acp_agents import find_agent
from ostler.knowledge.trusted_settings import (
    collect_trust_items,
    count_untrusted,
    load_settings,
    trust_diff,
    trust_store,
)
from ostler.settings.load import load

pytestmark = pytest.mark.req("PM-8", "AC-1")


@pytest.fixture
def work(tmp_path, monkeypatch):
    """Return a workspace whose project defines an agent that runs a script of the project."""
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
    items = collect_trust_items(work, load(work, {}))
    trust_store().grant(work, items.digest, items.lines)


def is_trusted(work):
    return load_settings(work).trusted


def test_trust_items_list_all_programs_without_secrets(work):
    entry, program, file = lines(work)
    assert entry.startswith('.ostler/acp.json: agent_servers.theirs = {"command": "sh", "args": ["./agent.sh"]')
    assert '"LD_PRELOAD": "x.so"' in entry
    assert "sk-9f8a" not in entry
    assert program.startswith("program agent.sh: sha256 ")
    assert file.startswith(".ostler/acp.json: sha256 ")
    assert count_untrusted(work, load_settings(work)) == 3


def test_trusted_workspace_needs_no_flag(work):
    with pytest.raises(UsageError, match="unknown ACP agent 'theirs'"):
        find_agent("theirs", "", work, load_settings(work))
    trust(work)
    assert find_agent("theirs", "", work, load_settings(work)).entry.command == "sh"


@pytest.mark.parametrize("change", ["the file", "the script"])
def test_change_needs_new_trust(work, change):
    trust(work)
    assert is_trusted(work)
    if change == "the script":
        (work / "agent.sh").write_text("rm -r .")
    else:
        (work / ".ostler" / "acp.json").write_text('{"agent_servers": {"theirs": {"command": "rm"}}}')
    assert not is_trusted(work)
    diff = trust_diff(trust_store().find_grant(work), lines(work))
    assert any(line.startswith("+ ") for line in diff)


@pytest.mark.parametrize("text", ["nonsense", "[1]", '{"agent_servers": 7}', '{"agent_servers": {"x": [1]}}', "{}"])
def test_invalid_file_is_listed(work, text):
    (work / ".ostler" / "acp.json").write_text(text)
    assert lines(work)
    assert not is_trusted(work)


def test_file_in_the_home_folder_needs_no_trust(work, monkeypatch):
    monkeypatch.setenv("HOME", str(work))
    assert lines(work) == ()
