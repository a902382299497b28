"""MCP servers in OpenCode's config files."""

import json

import pytest
from tests.mcp.configured_servers import call, configure, server
from tests.mcp.fake_http_server import FakeHttpServer

pytestmark = pytest.mark.req("MC-1")


def write_global(ostler, servers, name="opencode.json"):
    folder = ostler.home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps({"mcp": servers, "theme": "opencode", "model": "x/y"}))


def local(ostler, name, **more):
    return {"type": "local", **server(ostler, name), **more}


@pytest.mark.parametrize("name", ["opencode.json", "opencode.jsonc"])
def test_server_in_the_users_file_is_used_without_trust(ostler, name):
    write_global(ostler, {"oc": local(ostler, "oc")}, name)
    assert call(ostler, "oc_echo", '{"text": "hi"}', "--allow", "oc_*")["for_model"] == "oc: hi"
    assert "oc  " in ostler("mcp", "list").stdout


def test_variables_of_the_environment_are_filled_in(ostler):
    write_global(ostler, {"oc": local(ostler, "oc", environment={"A": "x{env:SET_HERE}", "B": "plain"})})
    done = ostler("tool", "call", "--allow", "oc_*", "oc_environment", "{}", env={"SET_HERE": "yes"})
    found = json.loads(json.loads(done.stdout)["for_model"])
    assert (found["A"], found["B"]) == ("xyes", "plain")
    assert "needs the variable SET_HERE, which is not set" in ostler("mcp", "list").stdout


@pytest.mark.parametrize("name", ["opencode.json", "opencode.jsonc", ".opencode/opencode.json"])
def test_server_in_the_projects_file_needs_trust(ostler, name):
    file = ostler.workspace / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("// a comment\n" + json.dumps({"mcp": {"proj": local(ostler, "proj")}}))
    assert ostler("tool", "call", "--allow", "*", "proj_echo", '{"text": "x"}').code == 2
    assert not (ostler.home / "proj" / "pids").exists()
    assert "proj  not trusted" in ostler("mcp", "list").stdout
    assert "mcp.proj" in ostler("trust").stdout
    assert ostler("trust", "--yes").code == 0
    assert call(ostler, "proj_echo", '{"text": "hi"}', "--allow", "proj_*")["for_model"] == "proj: hi"
    file.write_text(file.read_text().replace('"proj"', '"other"'))
    assert "other  not trusted" in ostler("mcp", "list").stdout


def test_untrusted_project_cannot_enable_a_server_but_can_disable_it(ostler):
    write_global(ostler, {"off": local(ostler, "off", enabled=False), "on": local(ostler, "on")})
    project = {"mcp": {"off": {"enabled": True}, "on": {"enabled": False}}}
    (ostler.workspace / "opencode.json").write_text(json.dumps(project))
    listed = ostler("mcp", "list").stdout
    assert "off  disabled" in listed
    assert "on  disabled" in listed


def test_ostlers_own_config_takes_precedence(ostler):
    write_global(ostler, {"oc": local(ostler, "oc")})
    configure(ostler, {"oc": {"enabled": False}})
    assert "oc  disabled" in ostler("mcp", "list").stdout


def test_remote_server_gets_its_headers(ostler):
    with FakeHttpServer(token="abc-123") as remote:
        write_global(
            ostler, {"far": {"type": "remote", "url": remote.url, "headers": {"Authorization": "Bearer {env:T_KEY}"}}}
        )
        done = ostler("mcp", "test", "far", env={"T_KEY": "abc-123"})
        assert done.code == 0, done.stdout
        assert all(headers["authorization"] == "Bearer abc-123" for headers, _ in remote.requests)


def test_oauth_settings_are_read_and_masked(ostler):
    remote = {"type": "remote", "url": "https://mcp.invalid/"}
    settings = {"clientId": "me", "clientSecret": "shh-very-secret", "scope": "a b", "callbackPort": 7000}
    write_global(ostler, {"far": {**remote, "oauth": settings}, "none": {**remote, "oauth": False}})
    shown = ostler("config", "show").stdout
    assert '"client_id": "me"' in shown
    assert '"redirect_port": 7000' in shown
    assert "shh-very-secret" not in shown
    refused = ostler("mcp", "login", "none")
    assert refused.code == 2
    assert "does not use OAuth" in refused.stderr


def test_servers_of_version_2_are_read(ostler):
    folder = ostler.home / ".config" / "opencode"
    folder.mkdir(parents=True)
    entry = local(ostler, "v2", timeout={"startup": 7000, "request": 9000})
    servers = {"v2": entry, "off": local(ostler, "off", disabled=True)}
    (folder / "opencode.jsonc").write_text(json.dumps({"mcp": {"servers": servers}}))
    assert "7 s to start, 9 s per call" in ostler("mcp", "test", "v2").stdout
    assert "off  disabled" in ostler("mcp", "list").stdout


def test_timeout_limits_the_start(ostler):
    write_global(ostler, {"oc": local(ostler, "oc", timeout=4000)})
    assert "4 s to start, 4 s per call" in ostler("mcp", "test", "oc").stdout


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"mcp": 3}', '{"mcp": {"servers": 3}}', '{"mcp": {"a": 3, "b": {"type": ["x"], "command": 7}}}'],
)
def test_broken_file_does_not_stop_ostler(ostler, content):
    write_global(ostler, {})
    (ostler.home / ".config" / "opencode" / "opencode.json").write_text(content)
    (ostler.workspace / "opencode.json").write_text(content)
    assert ostler("mcp", "list").code == 0
