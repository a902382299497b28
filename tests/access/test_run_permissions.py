"""The permission summary of a run agrees with the policy."""

import json

import pytest

from ostler.access.run_permissions import describe_permissions
from ostler.knowledge.agent_definition import AgentDefinition
from ostler.knowledge.builtin_agents import builtin_agents
from ostler.settings.load import load
from ostler.settings.run_options import RunOptions

READ_ONLY = "run commands in the sandbox, read-only"
WRITING = "run commands in the sandbox"


@pytest.mark.req("PM-4", "CL-8")
@pytest.mark.parametrize(
    ("flags", "config", "expected"),
    [
        ({}, {}, f"allowed: read the workspace; {READ_ONLY}"),
        ({"write": True}, {}, f"allowed: read and change the workspace; {WRITING}"),
        ({"write": True, "yolo": True}, {}, f"allowed: read anywhere; change the workspace; {WRITING}"),
        ({"allow": ("bash:make *",)}, {}, f"allowed: read the workspace; {READ_ONLY}; --allow bash:make *"),
        ({"profile": "paranoid"}, {}, "allowed: nothing (reads, changes and commands are denied)"),
        ({"profile": "paranoid", "allow": ("read:*",)}, {}, "allowed: read the workspace; --allow read:*"),
        ({"trust": True}, {}, f"allowed: read the workspace; {READ_ONLY} · project settings trusted"),
        ({}, {"security": {"sandbox": "off"}}, "allowed: read the workspace"),
        ({}, {"permission": {"*": "deny"}}, "allowed: nothing (reads, changes and commands are denied)"),
        (
            {"profile": "god_mode"},
            {"security": {"sandbox": "off"}},
            "allowed: read and change the workspace; run commands, without a sandbox",
        ),
    ],
)
def test_permission_summary(tmp_path, flags, config, expected):
    (tmp_path / ".ostler").mkdir()
    (tmp_path / ".ostler" / "config.json").write_text(json.dumps(config))
    settings = load(tmp_path / "work", {"HOME": str(tmp_path)})
    assert describe_permissions(settings, RunOptions(".", **flags), builtin_agents()) == expected


@pytest.mark.req("PM-4", "CL-8")
@pytest.mark.parametrize(
    ("agent", "flags", "expected"),
    [
        ("plan", {"write": True}, f"allowed for plan: read the workspace; {READ_ONLY}"),
        ("plan", {"write": True, "yolo": True}, f"allowed for plan: read anywhere; {READ_ONLY}"),
        (
            "plan",
            {"allow": ("write:*", "bash:make *")},
            f"allowed for plan: read the workspace; {READ_ONLY}; --allow bash:make *",
        ),
        ("mute", {"write": True}, "allowed for mute: nothing (reads, changes and commands are denied)"),
        ("reader", {"write": True}, "allowed for reader: read the workspace"),
    ],
)
def test_permission_summary_of_an_agent(tmp_path, agent, flags, expected):
    reads = (("*", False), ("read", True))
    agents = {
        **builtin_agents(),
        "mute": AgentDefinition("mute", tools=((("*", False),),)),
        "reader": AgentDefinition("reader", tools=(reads,)),
    }
    settings = load(tmp_path / "work", {"HOME": str(tmp_path)})
    assert describe_permissions(settings, RunOptions(".", **flags), agents, agent) == expected


def test_permissions_of_an_acp_agent_are_those_of_its_requests(tmp_path):
    settings = load(tmp_path, {"HOME": str(tmp_path)})
    summary = describe_permissions(settings, RunOptions(str(tmp_path)), builtin_agents(), external_agent="opencode")
    assert summary.startswith("allowed if opencode asks: read the workspace;")
