"""Names of MCP tools: within the limits of providers, never a built-in name, never that of another server's tool."""

import re

import pytest

from ostler.core.tool_aliases import resolve_tool_name
from ostler.core.tool_declarations import tool_names as builtin_names
from ostler.mcp.tool_names import server_prefixes, tool_names

pytestmark = pytest.mark.req("MC-3")


def names_of(servers):
    prefixes = server_prefixes(list(servers))
    return {
        (server, tool): name
        for server, tools in servers.items()
        for tool, name in tool_names(prefixes[server], tools, prefixes.values()).items()
    }


def test_name_is_server_and_tool():
    assert names_of({"time": ["now"]}) == {("time", "now"): "time_now"}


@pytest.mark.parametrize(
    "servers",
    [
        {"a": ["b_c"], "a_b": ["c"]},
        {"a b": ["x"], "a.b": ["x"], "a_b": ["x"]},
        {"s": ["do it", "do_it", "do.it", "do-it"]},
        {"s" * 80: ["t" * 80, "t" * 81], "s" * 81: ["t" * 80]},
        {"\x1b[31mred": ["\x1b[2J", "\u202e", "日本", ""]},
        {"": ["x"], "_": ["x"], "…": ["x"]},
    ],
)
def test_names_are_distinct_and_accepted_by_providers(servers):
    names = list(names_of(servers).values())
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)


def test_name_of_a_tool_does_not_begin_like_those_of_another_server():
    assert not names_of({"a": ["b_c"], "a_b": ["c"]})["a", "b_c"].startswith("a_b_")


@pytest.mark.parametrize(
    ("server", "tool"),
    [("git", "status"), ("write", "chunk"), ("read", "file"), ("external", "directory"), ("mcp", "search")],
)
def test_names_of_built_in_tools_and_permissions_are_not_used(server, tool):
    (name,) = names_of({server: [tool]}).values()
    assert name != f"{server}_{tool}"
    assert resolve_tool_name(name, {name, *builtin_names()}) == name


@pytest.mark.parametrize("alias", ["files.read_file", "files__read_file", "mcp__files__read_file", "files_read_file"])
def test_name_with_namespace_is_the_tool_of_the_server(alias):
    assert resolve_tool_name(alias, {"read", "files_read_file"}) == "files_read_file"
    assert resolve_tool_name("other.read_file", {"read", "files_read_file"}) == "read"
