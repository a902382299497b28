"""Relative programs and paths in the user's settings start at the folder of the settings file."""

import pytest

from ostler.settings.user_paths import with_absolute_paths

CASES = {
    "hook": (
        {"hooks": {"before_tool": [{"command": ["./hooks/guard", "x"]}]}},
        {"hooks": {"before_tool": [{"command": ["/u/hooks/guard", "x"]}]}},
    ),
    "hook with a script": (
        {"hooks": {"turn_end": [{"command": ["python3", "hooks/guard.py"]}]}},
        {"hooks": {"turn_end": [{"command": ["python3", "/u/hooks/guard.py"]}]}},
    ),
    "home": ({"mcp": {"a": {"command": ["~/bin/a"]}}}, {"mcp": {"a": {"command": ["/h/bin/a"]}}}),
    "program on the PATH": ({"mcp": {"a": {"command": ["npx", "x"]}}}, {"mcp": {"a": {"command": ["npx", "x"]}}}),
    "agent": (
        {"agent_servers": {"a": {"command": "bin/agent", "args": ["acp"]}}},
        {"agent_servers": {"a": {"command": "/u/bin/agent", "args": ["acp"]}}},
    ),
    "agent script": (
        {"agent_servers": {"a": {"command": "node", "args": ["agent.js", "--x"]}}},
        {"agent_servers": {"a": {"command": "node", "args": ["/u/agent.js", "--x"]}}},
    ),
    "package": (
        {"agent_servers": {"a": {"command": "npx", "args": ["@zed/agent"]}}},
        {"agent_servers": {"a": {"command": "npx", "args": ["@zed/agent"]}}},
    ),
    "MCP server of an agent": (
        {"mcp_servers": [{"name": "a", "command": "./a"}]},
        {"mcp_servers": [{"name": "a", "command": "/u/a"}]},
    ),
    "check": (
        {"validation": {"checks": {"py": "./check.sh src/", "go": ["go test ./...", "tools/vet x"]}}},
        {"validation": {"checks": {"py": "/u/check.sh src/", "go": ["go test ./...", "/u/tools/vet x"]}}},
    ),
    "instructions": (
        {"instructions": ["a.md", "/b.md", "~/c.md", "https://d.example/x"]},
        {"instructions": ["a.md", "/b.md", "~/c.md", "https://d.example/x"]},
    ),
    "skills": ({"skills": {"paths": ["mine"]}}, {"skills": {"paths": ["/u/mine"]}}),
    "wrong types": (
        {
            "hooks": [1],
            "mcp": {"a": 3},
            "instructions": "x",
            "validation": None,
            "agent_servers": {"a": {"command": 1}},
        },
        {
            "hooks": [1],
            "mcp": {"a": 3},
            "instructions": "x",
            "validation": None,
            "agent_servers": {"a": {"command": 1}},
        },
    ),
}


@pytest.mark.req("PM-8")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_relative_paths_start_at_the_settings_folder(case, monkeypatch):
    monkeypatch.setenv("HOME", "/h")
    given, expected = CASES[case]
    assert with_absolute_paths(given, "/u") == expected
