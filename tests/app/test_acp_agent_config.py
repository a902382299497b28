"""Which ACP agent is meant: settings files in their order, the well-known names, and clear refusals."""

import json
from pathlib import Path

import pytest

from ostler.app.acp_agent_config import WELL_KNOWN, find_agent, read_mcp_servers
from ostler.core.errors import UsageError
from ostler.settings.load import load


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A workspace and a home, neither with any settings."""
    (tmp_path / "home" / ".ostler").mkdir(parents=True)
    (tmp_path / "work" / ".ostler").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OSTLER_HOME", raising=False)
    return tmp_path


def write(file: Path, *names, **more):
    listed = {name: {"command": f"/bin/{file.parent.parent.name}-{name}"} for name in names}
    file.write_text(json.dumps({"agent_servers": listed, **more}))
    return str(file)


def find(place, name="", settings="", *, trust=False):
    work = place / "work"
    return find_agent(name, settings, work, load(work, {"HOME": str(place / "home")}, trusted=trust))


@pytest.mark.req("AC-1")
def test_the_order_of_the_files(place):
    write(place / "home" / ".ostler" / "acp.json", "mine", "both")
    write(place / "work" / ".ostler" / "acp.json", "theirs", "both")
    (place / "home" / ".ostler" / "config.jsonc").write_text('{"agent_servers": {"main": {"command": "/bin/main"}}}')
    assert (find(place).name, find(place, "both").entry.command) == ("mine", "/bin/home-both")
    assert find(place, "main").entry.command == "/bin/main"
    with pytest.raises(UsageError, match="no ACP agent 'theirs'"):
        find(place, "theirs")
    assert find(place, trust=True).name == "theirs"
    assert find(place, "both", trust=True).entry.command == "/bin/work-both"
    own = write(place / "own.json", "other")
    assert find(place, settings=own).name == "other"
    with pytest.raises(UsageError, match="no ACP agent 'mine'"):
        find(place, "mine", own)


@pytest.mark.req("AC-1")
def test_well_known_names_need_no_settings(place):
    assert (find(place, "gemini").entry.command, find(place, "gemini").entry.args) == ("gemini", ("--acp",))
    with pytest.raises(UsageError, match="no ACP agent is configured") as caught:
        find(place)
    assert all(name in caught.value.fault.hint for name in WELL_KNOWN)


@pytest.mark.req("AC-8")
def test_the_environment_is_ours_and_the_settings_on_top(place, monkeypatch):
    monkeypatch.setenv("KEY_OF_MINE", "k3y")
    config = {"agent_servers": {"x": {"command": "y", "env": {"TOKEN": "{env:KEY_OF_MINE}", "A": "1"}}}}
    (place / "home" / ".ostler" / "config.jsonc").write_text(json.dumps(config))
    found = find(place, "x")
    assert found.environment({"A": "0", "B": "2"}) == {"A": "1", "B": "2", "TOKEN": "k3y"}


WRONG = [
    ('{"agent_servers": {"x": {"args": []}}}', "missing required field `command`"),
    ('{"agent_servers": {"x": {"command": ""}}}', "length >= 1"),
    ('{"agent_servers": {"x": {"command": "y", "args": "z"}}}', "Expected `array`"),
    ('{"agent_servers": {"x": {"command": "y", "args": [1]}}}', "Expected `str`"),
    ('{"agent_servers": {"x": {"command": "y", "env": {"A": 1}}}}', "Expected `str`"),
    ('{"agent_servers": []}', "Expected `object`"),
    ('{"agent_servers": {}}', "name no agent"),
    ('{"mcp_servers": []}', "name no agent"),
    ('{"agent_servers": {"x": {"command": "y"}}, "mcp_servers": [{"command": "z"}]}', "missing required field `name`"),
    ("[1]", "Expected `object`"),
    ("nonsense", "own.json:1:1"),
    ("", "own.json"),
]


@pytest.mark.req("AC-1", "AC-5")
@pytest.mark.parametrize(("text", "told"), WRONG)
def test_a_settings_file_that_is_wrong(place, text, told):
    (place / "own.json").write_text(text)
    with pytest.raises(UsageError) as caught:
        find(place, settings=str(place / "own.json"))
    assert told in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_settings_file_that_is_not_there(place):
    with pytest.raises(UsageError, match="there is no settings file"):
        find(place, settings="/nowhere.json")


MCP = {"name": "m", "command": "/bin/m", "args": ["-v"], "env": {"A": "b"}}


@pytest.mark.parametrize(
    "value",
    [[MCP], {"mcp_servers": [MCP]}, {"mcpServers": {"m": {key: MCP[key] for key in ("command", "args", "env")}}}],
)
def test_mcp_servers_of_a_file(place, value):
    (place / "mcp.json").write_text(json.dumps(value))
    (server,) = read_mcp_servers(str(place / "mcp.json"))
    assert (server.name, server.command, server.args) == ("m", "/bin/m", ("-v",))
    assert [(variable.name, variable.value) for variable in server.env] == [("A", "b")]


def test_an_mcp_server_at_an_address(place):
    (place / "mcp.json").write_text('[{"name": "far", "url": "https://x.example/mcp", "headers": {"K": "v"}}]')
    (server,) = read_mcp_servers(str(place / "mcp.json"))
    assert (server.type, server.url, server.headers[0].name) == ("http", "https://x.example/mcp", "K")
