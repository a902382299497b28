"""Declarations of MCP servers, as they are read."""

import pytest

from ostler.wire.mcp import describe_handshake, read_tool

pytestmark = pytest.mark.req("MC-3")


@pytest.mark.parametrize("support", ["required", "optional", "forbidden", 7, None])
def test_tool_that_runs_only_as_a_task_is_left_out(support):
    found = read_tool({"name": "slow", "inputSchema": {}, "execution": {"taskSupport": support}})
    assert (found is None) == (support == "required")


@pytest.mark.parametrize("value", [None, 7, [], {}, {"name": 7}, {"name": " "}])
def test_tool_without_a_name_is_left_out(value):
    assert read_tool(value) is None


def test_names_and_instructions_of_a_server_are_limited():
    found = describe_handshake({"serverInfo": {"name": "x" * 10**6, "version": []}, "instructions": "y" * 10**6})
    assert (len(found.name), found.version) == (100, "")
    assert len(found.instructions) == 20_000
