"""The line that says what a run may do is what the policy would answer."""

import json

import pytest

from ostler.app.run_options import RunOptions
from ostler.app.run_permissions import describe_permissions
from ostler.knowledge.agent_definition import AgentDefinition
from ostler.knowledge.builtin_agents import builtin_agents
from ostler.settings.load import load

HELD = "run commands in the sandbox, where they change nothing"
WRITING = "run commands in the sandbox"


@pytest.mark.req("PM-4", "CL-8")
@pytest.mark.parametrize(
    ("flags", "config", "told"),
    [
        ({}, {}, f"may: read the workspace; {HELD}"),
        ({"write": True}, {}, f"may: read and change the workspace; {WRITING}"),
        ({"write": True, "yolo": True}, {}, f"may: read anywhere; change the workspace; {WRITING}"),
        ({"allow": ("bash:make *",)}, {}, f"may: read the workspace; {HELD}; --allow bash:make *"),
        ({"profile": "paranoid"}, {}, "may: nothing by itself"),
        ({"profile": "paranoid", "allow": ("read:*",)}, {}, "may: read the workspace; --allow read:*"),
        ({"trust": True}, {}, f"may: read the workspace; {HELD} · trusts this project's settings"),
        ({}, {"security": {"sandbox": "off"}}, "may: read the workspace"),
        ({}, {"permission": {"*": "deny"}}, "may: nothing by itself"),
        (
            {"profile": "god_mode"},
            {"security": {"sandbox": "off"}},
            "may: read and change the workspace; run commands, without a sandbox",
        ),
    ],
)
def test_what_a_run_may_do_is_told_in_one_line(tmp_path, flags, config, told):
    (tmp_path / ".ostler").mkdir()
    (tmp_path / ".ostler" / "config.json").write_text(json.dumps(config))
    settings = load(tmp_path / "work", {"HOME": str(tmp_path)})
    assert describe_permissions(settings, RunOptions(".", **flags), builtin_agents()) == told


@pytest.mark.req("PM-4", "CL-8")
@pytest.mark.parametrize(
    ("agent", "flags", "told"),
    [
        ("plan", {"write": True}, f"plan may: read the workspace; {HELD}"),
        ("plan", {"write": True, "yolo": True}, f"plan may: read anywhere; {HELD}"),
        ("plan", {"allow": ("write:*", "bash:make *")}, f"plan may: read the workspace; {HELD}; --allow bash:make *"),
        ("mute", {"write": True}, "mute may: nothing by itself"),
        ("reader", {"write": True}, "reader may: read the workspace"),
    ],
)
def test_the_line_knows_what_the_agent_leaves_of_it(tmp_path, agent, flags, told):
    reads = (("*", False), ("read", True))
    agents = {
        **builtin_agents(),
        "mute": AgentDefinition("mute", tools=((("*", False),),)),
        "reader": AgentDefinition("reader", tools=(reads,)),
    }
    settings = load(tmp_path / "work", {"HOME": str(tmp_path)})
    assert describe_permissions(settings, RunOptions(".", **flags), agents, agent) == told
