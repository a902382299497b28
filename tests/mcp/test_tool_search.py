"""Many tools: searched instead of listed, so that they cost little context."""

import json
import sys
from pathlib import Path

import pytest
from tests.conftest import at

from ostler.core.tools import ToolSpec
from ostler.mcp.tool_search import find_tools
from ostler.testing.model_server import calls, text

pytestmark = pytest.mark.req("MC-3", "EN-8")
SCRIPT = Path(__file__).with_name("fake_mcp_server.py")


def spec(name, description="", namespace="s"):
    return ToolSpec(name, "other", description, {"type": "object"}, namespace=namespace)


def test_exact_name_comes_first():
    specs = [spec("s_issue_list_all", "issue issue issue"), spec("s_create_issue", "issue"), spec("s_issue")]
    for query in ("s_issue", "issue", "S.Issue"):
        assert find_tools(query, specs)[0].name == "s_issue"


def test_words_of_the_description_are_found():
    specs = [spec("s_a", "Open a pull request."), spec("s_b", "Read a file.")]
    assert [found.name for found in find_tools("pull request", specs)] == ["s_a"]
    assert find_tools("weather", specs) == []


@pytest.fixture
def many(ostler):
    """Ten servers with 30 further tools each, whose lists are known."""
    properties = {f"parameter_{n}": {"type": "string", "description": "what it is about"} for n in range(4)}
    servers = {}
    for number in range(10):
        folder = ostler.home / f"server{number}"
        folder.mkdir()
        tools = [
            {
                "name": f"tool_{n}",
                "description": f"Does thing {n}.",
                "inputSchema": {"type": "object", "properties": properties},
            }
            for n in range(30)
        ]
        (folder / "tools.json").write_text(json.dumps(tools))
        command = [sys.executable, "-S", "-E", str(SCRIPT), "--name", folder.name, "--folder", str(folder)]
        command += ["--instructions", f"Tools of team {number}. " * 40]
        servers[folder.name] = {"command": command}
    (ostler.home / ".ostler").mkdir()
    config = {"mcp": servers, "permission": {"server*": "allow", "server3_crash": "deny"}}
    (ostler.home / ".ostler" / "config.json").write_text(json.dumps(config))
    for name in servers:
        assert ostler("mcp", "test", name).code == 0
    return ostler


def test_many_tools_cost_little_and_can_be_searched_and_called(many, models):
    script = [
        calls([("mcp_search", {"query": "server7_tool_12"})]),
        calls([("mcp_call", {"name": "server7_echo", "arguments": {"text": "hi"}}), ("server2_echo", {"text": "ho"})]),
        calls([("mcp_call", {"name": "server3_crash"}), ("mcp_call", {"name": "server3_nothing"})]),
        text("done"),
    ]
    with models.playing(*script) as served:
        done = many("run", *at(served), "go")
    assert done.code in (0, 4), done.stderr
    first = served.requests[0].json["tools"]
    mcp = [tool for tool in first if tool["function"]["name"].startswith(("mcp_", "server"))]
    assert [tool["function"]["name"] for tool in mcp] == ["mcp_search", "mcp_call"]
    assert len(json.dumps(mcp)) / 4 <= 1500
    assert all(request.json["tools"] == first for request in served.requests)
    results = [message["content"] for message in served.requests[-1].json["messages"] if message["role"] == "tool"]
    assert json.loads(results[0].partition("\n")[0])["name"] == "server7_tool_12"
    assert [result.partition("\n")[0] for result in results[1:3]] == ["server7: hi", "server2: ho"]
    assert "Denied" in results[3]
    assert "no MCP tool 'server3_nothing'" in results[4]
    started = [
        name for name in (f"server{n}" for n in range(10)) if len((many.home / name / "pids").read_text().split()) > 1
    ]
    assert started == ["server2", "server7"]


def request_size(ostler, models, *flags):
    with models.playing(text("done")) as served:
        assert ostler("run", *at(served), *flags, "go").code == 0
    return len(served.requests[0].body)


def test_ten_servers_with_300_tools_add_at_most_1500_tokens_to_a_request(many, models):
    with_servers = request_size(many, models)
    config = many.home / ".ostler" / "config.json"
    config.write_text("{}")
    assert 0 < (with_servers - request_size(many, models)) / 4 <= 1500


class TestThreshold:
    """The share of the context window from which tools are searched."""

    @pytest.fixture
    def listed(self, ostler, models):
        """Return the names of the MCP tools in the first request, for a window and further settings."""
        command = [sys.executable, "-S", "-E", str(SCRIPT), "--name", "one", "--folder", str(ostler.home)]
        entry = {"command": command}
        more = [{"name": f"tool_{n}", "description": "Does things. " * 5, "inputSchema": {}} for n in range(10)]
        (ostler.home / "tools.json").write_text(json.dumps(more))

        def names(window, **settings):
            profile = {"name": "p", "model": "m", "context": window, "editing": "tools"}
            with models.playing(text("done")) as served:
                profile["baseUrl"] = at(served)[1]
                config = {"mcp": {"one": entry}, "models": {"profiles": [profile], "active": "p"}, **settings}
                (ostler.home / ".ostler" / "config.json").write_text(json.dumps(config))
                assert ostler("run", "go").code == 0
            found = [tool["function"]["name"] for tool in served.requests[0].json["tools"]]
            return [name for name in found if name.startswith(("mcp_", "one_"))]

        (ostler.home / ".ostler").mkdir()
        (ostler.home / ".ostler" / "config.json").write_text(json.dumps({"mcp": {"one": entry}}))
        assert ostler("mcp", "test", "one").code == 0
        return names

    def test_depends_on_the_context_window(self, listed):
        assert listed(16_384) == ["mcp_search", "mcp_call"]
        assert "one_echo" in listed(200_000)

    def test_can_be_configured(self, listed):
        assert "one_echo" in listed(16_384, limits={"mcp_tools": 0.2})
        assert listed(200_000, limits={"mcp_tools": 0}) == ["mcp_search", "mcp_call"]

    def test_counts_only_tools_that_the_agent_has(self, listed):
        agent = {"build": {"tools": {"one_*": False, "one_echo": True}}}
        assert listed(16_384, agent=agent) == ["one_echo"]


def test_agent_without_a_tool_neither_finds_nor_calls_it(many, models):
    config = many.home / ".ostler" / "config.json"
    value = {**json.loads(config.read_text()), "agent": {"build": {"tools": {"server7_*": False}}}}
    config.write_text(json.dumps(value))
    script = [calls([("mcp_search", {"query": "server7_echo"}), ("mcp_call", {"name": "server7_echo"})]), text("done")]
    with models.playing(*script) as served:
        many("run", *at(served), "go")
    found, called = [m["content"] for m in served.requests[-1].json["messages"] if m["role"] == "tool"]
    assert '"server7' not in found
    assert "no MCP tool" in called
