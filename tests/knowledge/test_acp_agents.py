"""The configured ACP agent: the order of the settings files, well-known names and errors."""

import json
from pathlib import Path

import pytest

from ostler.core.errors import UsageError
from ostler.knowledge.acp_agents import WELL_KNOWN, find_agent, read_mcp_servers
from ostler.settings.load import load


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with a workspace and a home, both without settings."""
    (tmp_path / "home" / ".ostler").mkdir(parents=True)
    (tmp_path / "work" / ".ostler").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OSTLER_HOME", raising=False)
    return tmp_path


def write(file: Path, *names, **more):
    listed = {name: {"command": f"/bin/{file.parent.parent.name}-{name}"} for name in names}
    file.write_text(json.dumps({"agent_servers": listed, **more}))
    return str(file)


def find(folder, name="", settings="", *, trust=False):
    work = folder / "work"
    return find_agent(name, settings, work, load(work, {"HOME": str(folder / "home")}, trusted=trust))


@pytest.mark.req("AC-1")
def test_order_of_settings_files(folder):
    write(folder / "home" / ".ostler" / "acp.json", "mine", "both")
    write(folder / "work" / ".ostler" / "acp.json", "theirs", "both")
    (folder / "home" / ".ostler" / "config.jsonc").write_text('{"agent_servers": {"main": {"command": "/bin/main"}}}')
    assert (find(folder).name, find(folder, "both").entry.command) == ("mine", "/bin/home-both")
    assert find(folder, "main").entry.command == "/bin/main"
    with pytest.raises(UsageError, match="unknown ACP agent 'theirs'"):
        find(folder, "theirs")
    assert find(folder, trust=True).name == "theirs"
    assert find(folder, "both", trust=True).entry.command == "/bin/work-both"
    own_file = write(folder / "own_file.json", "other")
    assert find(folder, settings=own_file).name == "other"
    with pytest.raises(UsageError, match="unknown ACP agent 'mine'"):
        find(folder, "mine", own_file)


@pytest.mark.req("AC-1")
def test_well_known_names_need_no_settings(folder):
    assert (find(folder, "gemini").entry.command, find(folder, "gemini").entry.args) == ("gemini", ("--acp",))
    with pytest.raises(UsageError, match="no ACP agent is configured") as caught:
        find(folder)
    assert all(name in caught.value.fault.hint for name in WELL_KNOWN)


@pytest.mark.req("AC-8")
def test_settings_extend_the_environment(folder, monkeypatch):
    monkeypatch.setenv("KEY_OF_MINE", "k3y")
    config = {"agent_servers": {"x": {"command": "y", "env": {"TOKEN": "{env:KEY_OF_MINE}", "A": "1"}}}}
    (folder / "home" / ".ostler" / "config.jsonc").write_text(json.dumps(config))
    agent = find(folder, "x")
    assert agent.environment({"A": "0", "B": "2"}) == {"A": "1", "B": "2", "TOKEN": "k3y"}


INVALID_SETTINGS = [
    ('{"agent_servers": {"x": {"args": []}}}', "missing required field `command`"),
    ('{"agent_servers": {"x": {"command": ""}}}', "length >= 1"),
    ('{"agent_servers": {"x": {"command": "y", "args": "z"}}}', "Expected `array`"),
    ('{"agent_servers": {"x": {"command": "y", "args": [1]}}}', "Expected `str`"),
    ('{"agent_servers": {"x": {"command": "y", "env": {"A": 1}}}}', "Expected `str`"),
    ('{"agent_servers": []}', "Expected `object`"),
    ('{"agent_servers": {}}', "no agent in settings file"),
    ('{"mcp_servers": []}', "no agent in settings file"),
    ('{"agent_servers": {"x": {"command": "y"}}, "mcp_servers": [{"command": "z"}]}', "missing required field `name`"),
    ("[1]", "Expected `object`"),
    ("nonsense", "own_file.json:1:1"),
    ("", "own_file.json"),
]


@pytest.mark.req("AC-1", "AC-5")
@pytest.mark.parametrize(("text", "message"), INVALID_SETTINGS)
def test_invalid_settings_file(folder, text, message):
    (folder / "own_file.json").write_text(text)
    with pytest.raises(UsageError) as caught:
        find(folder, settings=str(folder / "own_file.json"))
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


def test_missing_settings_file(folder):
    with pytest.raises(UsageError, match=r"settings file /nowhere\.json not found"):
        find(folder, settings="/nowhere.json")


MCP = {"name": "m", "command": "/bin/m", "args": ["-v"], "env": {"A": "b"}}


@pytest.mark.parametrize(
    "value",
    [[MCP], {"mcp_servers": [MCP]}, {"mcpServers": {"m": {key: MCP[key] for key in ("command", "args", "env")}}}],
)
def test_mcp_servers_from_a_file(folder, value):
    (folder / "mcp.json").write_text(json.dumps(value))
    (server,) = read_mcp_servers(str(folder / "mcp.json"))
    assert (server.name, server.command, server.env) == ("m", ("/bin/m", "-v"), {"A": "b"})


def test_mcp_server_with_a_url(folder):
    (folder / "mcp.json").write_text('[{"name": "far", "url": "https://x.example/mcp", "headers": {"K": "v"}}]')
    (server,) = read_mcp_servers(str(folder / "mcp.json"))
    assert (server.type, server.url, server.headers) == ("http", "https://x.example/mcp", {"K": "v"})
