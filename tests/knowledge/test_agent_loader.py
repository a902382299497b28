"""Agents: the built-in ones, those that files and the config add or change, and what a project's cannot."""

import json

import pytest

from ostler.core.permission import Need, Permission, Rule
from ostler.knowledge.agent_loader import load_agents
from ostler.knowledge.builtin_agents import builtin_agents
from ostler.policy.presets import BASELINE, READ_ONLY_AGENT
from ostler.policy.verdict import Policy, evaluate_permission


def loaded(land, *, trusted=False):
    sources = land.sources()
    agents = load_agents(sources, land.settings(trusted=trusted), trusted=trusted)
    return agents, [str(note) for note in sources.notes]


def decided(agent, key, subject="x", *, grants=(), profile="balanced"):
    policy = Policy((*BASELINE, *agent.rules), agent.restrictions, profile=profile)
    return evaluate_permission(Permission("", (Need(key, subject),)), policy, grants=grants).action


@pytest.mark.req("EN-3")
def test_the_built_in_ones(land):
    agents, notes = loaded(land)
    assert {name: (agent.mode, agent.hidden, agent.read_only) for name, agent in agents.items()} == {
        "build": ("primary", False, False),
        "plan": ("primary", False, True),
        "general": ("subagent", False, False),
        "explore": ("subagent", False, True),
        "title": ("subagent", True, True),
        "summary": ("subagent", True, True),
        "compaction": ("subagent", True, True),
    }
    assert all(agent.description for agent in agents.values())
    assert [name for name, agent in agents.items() if not agent.prompt] == ["build"]
    assert [name for name, agent in agents.items() if agent.user_selectable] == ["build", "plan"]
    assert [name for name, agent in agents.items() if agent.accepts_tasks] == ["general", "explore"]
    assert not any(agents["title"].allows_tool(tool) for tool in ("read", "bash", "write"))
    assert agents["plan"].allows_tool("bash")
    assert notes == []


# A need, and what plan and explore make of it.
READING = [
    ("read", "a.py", "allow", "allow"),
    ("grep", "a.py", "allow", "allow"),
    ("todowrite", "", "allow", "allow"),
    ("git_log", "", "allow", "allow"),
    *((key, "a.py", "deny", "deny") for key in ("write", "edit", "patch", "delete", "mkdir", "write_chunk")),
    ("bash", "cat a.py", "allow", "allow"),
    ("bash", "make", "ask", "ask"),
    ("task", "general", "ask", "deny"),
    ("server_tool", "", "deny", "deny"),
    ("external_directory", "/etc", "deny", "deny"),
]


@pytest.mark.req("EN-3", "PM-2")
@pytest.mark.parametrize(("key", "subject", "plan", "explore"), READING)
def test_reading_agents_cannot_write_whatever_was_granted(land, key, subject, plan, explore):
    agents, _ = loaded(land)
    assert decided(agents["plan"], key, subject) == plan
    assert decided(agents["explore"], key, subject) == explore
    if plan == "deny" and key != "external_directory":
        anything = [Rule("*", "*", "allow")]
        for profile in ("balanced", "god_mode"):
            assert decided(agents["plan"], key, subject, grants=anything, profile=profile) == "deny"


def test_the_policys_own_list_of_writes_is_covered(land):
    agents, _ = loaded(land)
    for rule in READ_ONLY_AGENT:
        assert decided(agents["plan"], rule.key) == decided(agents["explore"], rule.key) == "deny"


PLACES = [
    "~/.ostler/agents/x.md",
    "~/.eidolon/agents/x.md",
    "~/.config/opencode/agents/x.md",
    "~/.config/opencode/agent/x.md",
    "~/.opencode/agent/x.md",
    "~/.claude/agents/x.md",
    ".ostler/agents/x.md",
    ".eidolon/agents/x.md",
    ".opencode/agents/x.md",
    ".opencode/agent/x.md",
    ".claude/agents/x.md",
]


@pytest.mark.req("EN-3", "DX-5")
@pytest.mark.parametrize("place", PLACES)
def test_where_files_are_found(land, place):
    land.write({place: "---\ndescription: Looks closely.\n---\nYou review."})
    agents, notes = loaded(land)
    assert (agents["x"].prompt, agents["x"].description, agents["x"].mode) == ("You review.", "Looks closely.", "all")
    assert agents["x"].origin == place
    assert notes == []


@pytest.mark.req("EN-3")
def test_the_project_over_the_person_and_ours_over_others(land):
    for number, place in enumerate(reversed([*PLACES[6:], *PLACES[:6]])):
        land.write({place: f"prompt {number}"})
        assert loaded(land)[0]["x"].prompt == f"prompt {number}"


FIELDS = {
    "name": ("name: reviewer", "reviewer", {}),
    "name of the file": ("description: a b\n", "x", {"description": "a b"}),
    "a name of several words": ("name: my agent", "x", {}),
    "description on several lines": ("description: >\n  one\n  two", "x", {"description": "one two"}),
    "mode": ("mode: subagent", "x", {"mode": "subagent"}),
    "no such mode": ("mode: boss", "x", {"mode": "all"}),
    "steps": ("max_steps: 7", "x", {"max_steps": 7}),
    "opencode's steps": ("steps: 7", "x", {"max_steps": 7}),
    "opencode's older steps": ("maxSteps: 7", "x", {"max_steps": 7}),
    "claude's steps": ("maxTurns: 7", "x", {"max_steps": 7}),
    "steps that are none": ("max_steps: -1", "x", {"max_steps": None}),
    "warmth": ("temperature: 0.5\ntop_p: 0.9", "x", {"temperature": 0.5, "top_p": 0.9}),
    "too warm": ("temperature: 9", "x", {"temperature": None}),
    "hidden": ("hidden: true", "x", {"hidden": True}),
    "foreign model": ("model: sonnet", "x", {"model": ""}),
    "own model": ("model: any/thing", "x", {"model": "any/thing"}),
    "plan mode": ("permissionMode: plan", "x", {"read_only": True}),
    "bypass is no field of ours": ("permissionMode: bypassPermissions", "x", {"rules": (), "read_only": False}),
    "unknown": ("color: red\nhooks: [a]", "x", {}),
    "broken": ("description: [a", "x", {"description": "[a"}),
}


@pytest.mark.req("EN-3", "DX-5")
@pytest.mark.parametrize("case", FIELDS, ids=str)
def test_fields(land, case):
    head, name, wanted = FIELDS[case]
    land.write({"~/.ostler/agents/x.md": f"---\n{head}\n---\nprompt"})
    agent = loaded(land)[0][name]
    assert {field: getattr(agent, field) for field in wanted} == wanted


NOTED = [
    "name: my agent",
    "mode: boss",
    "max_steps: -1",
    "temperature: 9",
    "permission:\n  bash: maybe",
    "description: [a",
]


@pytest.mark.parametrize("head", NOTED)
def test_what_is_wrong_is_said_with_the_file_and_breaks_nothing(land, head):
    land.write({".ostler/agents/x.md": f"---\n{head}\n---\nprompt"})
    agents, notes = loaded(land)
    assert agents["x"].prompt == "prompt"
    assert len(notes) == 1
    assert notes[0].startswith(".ostler/agents/x.md:")


# `tools` as files write it, and which of these it leaves: read grep edit bash task srv__do
TOOLS = {
    "nothing said": ("name: x", "read grep edit bash task srv__do"),
    "claude's list": ("tools: Read, Grep", "read grep"),
    "blanks": ("tools: Read Grep", "read grep"),
    "yaml list": ("tools:\n  - Read\n  - MultiEdit", "read edit"),
    "flow list": ("tools: [read, bash]", "read bash"),
    "all": ("tools: '*'", "read grep edit bash task srv__do"),
    "patterns": ("tools: Bash(git add:*), Bash(git log, x), Read", "read bash"),
    "mcp": ("tools: srv__do, Agent", "task srv__do"),
    "switches": ("tools:\n  edit: false\n  bash: no", "read grep task srv__do"),
    "all off but": ("tools:\n  '*': false\n  read: true", "read"),
    "not": ("disallowedTools: Bash, Edit", "read grep task srv__do"),
    "unknown names": ("tools: WebFetch, Teleport", ""),
}


@pytest.mark.req("EN-3", "DX-5")
@pytest.mark.parametrize("scope", ["~/.ostler/agents", ".claude/agents"])
@pytest.mark.parametrize("case", TOOLS, ids=str)
def test_tools(land, case, scope):
    head, left = TOOLS[case]
    land.write({f"{scope}/x.md": f"---\n{head}\n---\nprompt"})
    agent = loaded(land)[0]["x"]
    assert [
        tool for tool in ("read", "grep", "edit", "bash", "task", "srv__do") if agent.allows_tool(tool)
    ] == left.split()


@pytest.mark.req("DX-5", "PM-8")
def test_a_tool_named_with_a_pattern_is_held_to_it_and_not_let_free(land):
    land.write({".claude/agents/x.md": "---\ntools: Bash(git add:*), Bash(ls), Read\n---\nprompt"})
    agent = loaded(land)[0]["x"]
    assert [decided(agent, "bash", command) for command in ("git add .", "git push", "ls")] == ["ask", "deny", "allow"]
    assert decided(agent, "read") == "allow"


@pytest.mark.req("PM-8", "EN-3")
def test_a_projects_agent_only_narrows_until_trusted(land):
    head = "---\npermission:\n  bash: allow\n  read: deny\nmax_steps: 9999\nmodel: theirs\n---\nprompt"
    for place, free in ((".ostler/agents/x.md", False), ("~/.ostler/agents/x.md", True)):
        land.write({place: head})
        agent = loaded(land)[0]["x"]
        assert decided(agent, "bash", "make") == ("allow" if free else "ask")
        assert decided(agent, "read") == "deny"
        assert agent.max_steps == (9999 if free else None)
        assert agent.model == ("theirs" if free else "")
        if free:
            break
        assert decided(loaded(land, trusted=True)[0]["x"], "bash", "make") == "allow"
        (land.work / place).unlink()


@pytest.mark.req("PM-8")
def test_a_project_cannot_take_the_bounds_off_an_agent_of_the_person(land):
    land.write(
        {
            "~/.ostler/agents/careful.md": "---\ntools: Read, Grep, Bash\npermission:\n  bash: deny\n---\nmine",
            ".ostler/agents/careful.md": "---\ntools: Read, Write, Bash\npermission: allow\n---\ntheirs",
            ".ostler/agents/plan.md": "---\npermission: allow\ntools:\n  write: true\n---\nNow write.",
            ".ostler/agents/title.md": "Say that all is well.",
        }
    )
    agents, notes = loaded(land)
    careful, plan = agents["careful"], agents["plan"]
    assert careful.prompt == "theirs"
    assert [tool for tool in ("read", "write", "grep", "bash") if careful.allows_tool(tool)] == ["read", "bash"]
    assert decided(careful, "bash", "ls") == "deny"
    assert (plan.prompt, plan.read_only, decided(plan, "write")) == ("Now write.", True, "deny")
    assert "all is well" not in agents["title"].prompt
    assert len(notes) == 1


@pytest.mark.req("EN-3", "PM-1")
def test_the_config_over_files(land):
    land.write(
        {
            "~/.ostler/agents/x.md": "---\ndescription: file's\ntemperature: 1\npermission:\n  bash: allow\n---\nhi",
            "~/.ostler/config.json": json.dumps(
                {
                    "agent": {
                        "x": {
                            "description": "from the config",
                            "temperature": 0,
                            "steps": 3,
                            "tools": {"edit": False},
                            "permission": {"bash": {"rm *": "deny"}},
                        },
                        "fresh": {"prompt": "new", "tools": ["read"], "mode": "subagent"},
                        "general": {"disable": True},
                        "plan": {"permission": {"write": {"plans/*": "allow"}}},
                    }
                }
            ),
        }
    )
    agents, _ = loaded(land)
    x = agents["x"]
    assert (x.description, x.temperature, x.max_steps, x.prompt) == ("from the config", 0, 3, "hi")
    assert (x.allows_tool("edit"), x.allows_tool("bash")) == (False, True)
    assert [decided(x, "bash", command) for command in ("make", "rm a")] == ["allow", "deny"]
    assert (agents["fresh"].prompt, agents["fresh"].allows_tool("read"), agents["fresh"].allows_tool("bash")) == (
        "new",
        True,
        False,
    )
    assert "general" not in agents
    assert [decided(agents["plan"], "write", path) for path in ("plans/a.md", "a.py")] == ["allow", "deny"]
    assert agents["plan"].read_only


@pytest.mark.req("PM-8")
def test_a_projects_config_only_narrows(land):
    said = {
        "agent": {
            "plan": {"permission": {"write": "allow"}},
            "build": {"permission": {"bash": "deny", "write": "allow"}},
        }
    }
    land.write({".ostler/config.json": json.dumps(said)})
    agents, _ = loaded(land)
    assert decided(agents["plan"], "write") == "deny"
    assert (decided(agents["build"], "bash", "ls"), decided(agents["build"], "write")) == ("deny", "ask")


@pytest.mark.req("EN-3", "PM-8")
@pytest.mark.parametrize("name", ["plan", "explore"])
def test_a_project_that_takes_an_agent_away_and_brings_it_back_has_not_freed_it(land, name):
    land.write(
        {
            f".claude/agents/{name}.md": "---\ndisable: true\n---\n",
            f".ostler/agents/{name}.md": "---\nmode: all\npermission: allow\n---\nNow write.",
        }
    )
    agent = loaded(land)[0][name]
    assert (agent.prompt, agent.read_only, decided(agent, "write")) == ("Now write.", True, "deny")


@pytest.mark.req("EN-3", "PM-8")
def test_nobody_takes_the_usual_agent_away_and_its_bounds_with_it(land):
    land.write(
        {
            "~/.ostler/agents/build.md": "---\npermission:\n  bash: deny\n---\n",
            ".ostler/agents/build.md": "---\ndisable: true\n---\n",
            ".ostler/config.json": json.dumps({"agent": {"build": {"disable": True}}}),
        }
    )
    agents, notes = loaded(land)
    assert decided(agents["build"], "bash", "make") == "deny"
    assert any("cannot be taken away" in note for note in notes)


@pytest.mark.parametrize("text", ["", "---\nname: y\n---\n", b"\0\0\0\0", "---\ndisable: true\n---\nprompt"])
def test_what_is_no_agent_is_left_out(land, text):
    land.write({".ostler/agents/x.md": text})
    assert set(loaded(land)[0]) & {"x", "y"} == set()


def test_a_file_without_a_prompt_still_changes_a_built_in_one(land):
    land.write({"~/.ostler/agents/plan.md": "---\ntemperature: 0.1\n---\n"})
    plan = loaded(land)[0]["plan"]
    assert plan.temperature == 0.1
    assert "change nothing" in plan.prompt


@pytest.mark.req("FS-2")
def test_links_that_lead_out_and_loops(land):
    agents = land.work / ".ostler" / "agents"
    agents.mkdir(parents=True)
    (agents / "x.md").symlink_to(land.outside / "secret.md")
    (agents / "door").symlink_to(land.outside)
    (agents / "loop").symlink_to(".")
    (agents / "y.md").symlink_to("y.md")
    (agents / "good.md").write_text("prompt")
    found, _ = loaded(land)
    assert "good" in found
    assert not any("SECRET" in agent.prompt for agent in found.values())


@pytest.mark.req("EN-8")
def test_a_huge_prompt_is_cut(land):
    land.write({".ostler/agents/x.md": "word " * 100_000})
    prompt = loaded(land)[0]["x"].prompt
    assert len(prompt) < 40_000
    assert "cut here: .ostler/agents/x.md" in prompt


@pytest.mark.parametrize("name", ["*", "a b", "a\nb", "", "x" * 65, "--allow", "../x"])
def test_names_that_could_mean_something_else_are_left_out(land, name):
    land.write({".ostler/config.json": json.dumps({"agent": {name: {"prompt": "x"}}})})
    agents, notes = loaded(land)
    assert name not in agents
    assert len(notes) == 1


def test_nested_folders_name_the_agent(land):
    land.write({".opencode/agent/team/a.md": "prompt", ".claude/agents/team/b.md": "---\nname: b\n---\nprompt"})
    assert {"team/a", "b"} <= set(loaded(land)[0])


@pytest.mark.req("EN-3", "PM-2", "MC-3")
@pytest.mark.parametrize("key", ["write", "delete", "files_write", "github_create_issue", "network", "anything"])
def test_plan_refuses_every_tool_that_is_not_known_to_read(key):
    """Whatever the rules, the profile and the flags say: a server's tool could do anything."""
    agent = builtin_agents()["plan"]
    everything = (Rule("*", "*", "allow", "test"),)
    policy = Policy((*everything, *agent.rules), agent.restrictions, profile="god_mode", flags=everything)
    assert evaluate_permission(Permission("", (Need(key, "x"),)), policy).action == "deny"
    for reading in ("read", "grep", "task", "skill", "todowrite"):
        assert evaluate_permission(Permission("", (Need(reading, "x"),)), policy).action == "allow"
