"""Built-in agents, agents from files and the config, and the limits for projects."""

import json

import pytest

from ostler.core.permission import Need, Permission, Rule
from ostler.knowledge.agent_loader import load_agents
from ostler.knowledge.builtin_agents import builtin_agents
from ostler.policy.permission_rules import EDITING_TOOLS
from ostler.policy.presets import BASELINE
from ostler.policy.verdict import Policy, evaluate_permission


def load(folders, *, trusted=False):
    sources = folders.sources()
    agents = load_agents(sources, folders.settings(trusted=trusted), trusted=trusted)
    return agents, [str(note) for note in sources.notes]


def decide(agent, key, subject="x", *, grants=(), profile="balanced"):
    policy = Policy((*BASELINE, *agent.rules), agent.restrictions, profile=profile)
    return evaluate_permission(Permission("", (Need(key, subject),)), policy, grants=grants).action


@pytest.mark.req("EN-3")
def test_builtin_agents(folders):
    agents, notes = load(folders)
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


# A need, and the verdicts for plan and explore.
READ_ONLY_CASES = [
    ("read", "a.py", "allow", "allow"),
    ("grep", "a.py", "allow", "allow"),
    ("todowrite", "", "allow", "allow"),
    ("git_log", "", "allow", "allow"),
    *((key, "a.py", "deny", "deny") for key in ("write", "edit", "patch", "delete", "mkdir", "write_chunk")),
    ("bash", "cat a.py", "allow", "allow"),
    ("bash", "make", "ask", "ask"),
    ("task", "general", "allow", "deny"),
    ("server_tool", "", "deny", "deny"),
    ("external_directory", "/etc", "deny", "deny"),
]


@pytest.mark.req("EN-3", "PM-2")
@pytest.mark.parametrize(("key", "subject", "plan", "explore"), READ_ONLY_CASES)
def test_read_only_agents_cannot_write_even_with_grants(folders, key, subject, plan, explore):
    agents, _ = load(folders)
    assert decide(agents["plan"], key, subject) == plan
    assert decide(agents["explore"], key, subject) == explore
    if plan == "deny" and key != "external_directory":
        grants = [Rule("*", "*", "allow")]
        for profile in ("balanced", "god_mode"):
            assert decide(agents["plan"], key, subject, grants=grants, profile=profile) == "deny"


def test_write_tools_of_the_policy_are_denied(folders):
    agents, _ = load(folders)
    for key in (*EDITING_TOOLS, "delete"):
        assert decide(agents["plan"], key) == decide(agents["explore"], key) == "deny"


LOCATIONS = [
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
@pytest.mark.parametrize("location", LOCATIONS)
def test_agent_files_are_found(folders, location):
    folders.write({location: "---\ndescription: Looks closely.\n---\nYou review."})
    agents, notes = load(folders)
    assert (agents["x"].prompt, agents["x"].description, agents["x"].mode) == ("You review.", "Looks closely.", "all")
    assert agents["x"].origin == location
    assert notes == []


@pytest.mark.req("EN-3")
def test_precedence_of_agent_files(folders):
    for number, location in enumerate(reversed([*LOCATIONS[6:], *LOCATIONS[:6]])):
        folders.write({location: f"prompt {number}"})
        assert load(folders)[0]["x"].prompt == f"prompt {number}"


FIELDS = {
    "name": ("name: reviewer", "reviewer", {}),
    "name of the file": ("description: a b\n", "x", {"description": "a b"}),
    "a name of several words": ("name: my agent", "x", {}),
    "description on several lines": ("description: >\n  one\n  two", "x", {"description": "one two"}),
    "mode": ("mode: subagent", "x", {"mode": "subagent"}),
    "unknown mode": ("mode: boss", "x", {"mode": "all"}),
    "steps": ("max_steps: 7", "x", {"max_steps": 7}),
    "opencode's steps": ("steps: 7", "x", {"max_steps": 7}),
    "opencode's older steps": ("maxSteps: 7", "x", {"max_steps": 7}),
    "claude's steps": ("maxTurns: 7", "x", {"max_steps": 7}),
    "invalid steps": ("max_steps: -1", "x", {"max_steps": None}),
    "sampling": ("temperature: 0.5\ntop_p: 0.9", "x", {"temperature": 0.5, "top_p": 0.9}),
    "invalid temperature": ("temperature: 9", "x", {"temperature": None}),
    "hidden": ("hidden: true", "x", {"hidden": True}),
    "foreign model": ("model: sonnet", "x", {"model": ""}),
    "own model": ("model: any/thing", "x", {"model": "any/thing"}),
    "plan mode": ("permissionMode: plan", "x", {"read_only": True}),
    "bypass is ignored": ("permissionMode: bypassPermissions", "x", {"rules": (), "read_only": False}),
    "unknown": ("color: red\nhooks: [a]", "x", {}),
    "broken": ("description: [a", "x", {"description": "[a"}),
}


@pytest.mark.req("EN-3", "DX-5")
@pytest.mark.parametrize("case", FIELDS, ids=str)
def test_fields(folders, case):
    head, name, expected = FIELDS[case]
    folders.write({"~/.ostler/agents/x.md": f"---\n{head}\n---\nprompt"})
    agent = load(folders)[0][name]
    assert {field: getattr(agent, field) for field in expected} == expected


INVALID_FIELDS = [
    "name: my agent",
    "mode: boss",
    "max_steps: -1",
    "temperature: 9",
    "permission:\n  bash: maybe",
    "description: [a",
]


@pytest.mark.parametrize("head", INVALID_FIELDS)
def test_invalid_field_adds_a_note_with_the_file(folders, head):
    folders.write({".ostler/agents/x.md": f"---\n{head}\n---\nprompt"})
    agents, notes = load(folders)
    assert agents["x"].prompt == "prompt"
    assert len(notes) == 1
    assert notes[0].startswith(".ostler/agents/x.md:")


# `tools` as written in files, and which of these tools it allows: read grep edit bash task srv__do
TOOLS = {
    "not set": ("name: x", "read grep edit bash task srv__do"),
    "claude's list": ("tools: Read, Grep", "read grep"),
    "blanks": ("tools: Read Grep", "read grep"),
    "yaml list": ("tools:\n  - Read\n  - MultiEdit", "read edit"),
    "flow list": ("tools: [read, bash]", "read bash"),
    "all": ("tools: '*'", "read grep edit bash task srv__do"),
    "patterns": ("tools: Bash(git add:*), Bash(git log, x), Read", "read bash"),
    "mcp": ("tools: srv__do, Agent", "task srv__do"),
    "switches": ("tools:\n  edit: false\n  bash: no", "read grep task srv__do"),
    "all off except one": ("tools:\n  '*': false\n  read: true", "read"),
    "disallowed": ("disallowedTools: Bash, Edit", "read grep task srv__do"),
    "unknown names": ("tools: WebFetch, Teleport", ""),
}


@pytest.mark.req("EN-3", "DX-5")
@pytest.mark.parametrize("scope", ["~/.ostler/agents", ".claude/agents"])
@pytest.mark.parametrize("case", TOOLS, ids=str)
def test_tools(folders, case, scope):
    head, allowed = TOOLS[case]
    folders.write({f"{scope}/x.md": f"---\n{head}\n---\nprompt"})
    agent = load(folders)[0]["x"]
    assert [
        tool for tool in ("read", "grep", "edit", "bash", "task", "srv__do") if agent.allows_tool(tool)
    ] == allowed.split()


@pytest.mark.req("DX-5", "PM-8")
def test_tool_with_pattern_is_restricted_to_it(folders):
    folders.write({".claude/agents/x.md": "---\ntools: Bash(git add:*), Bash(ls), Read\n---\nprompt"})
    agent = load(folders)[0]["x"]
    assert [decide(agent, "bash", command) for command in ("git add .", "git push", "ls")] == ["ask", "deny", "allow"]
    assert decide(agent, "read") == "allow"


@pytest.mark.req("PM-8", "EN-3")
def test_project_agent_can_only_restrict_until_trusted(folders):
    head = "---\npermission:\n  bash: allow\n  read: deny\nmax_steps: 9999\nmodel: theirs\n---\nprompt"
    for location, may_extend in ((".ostler/agents/x.md", False), ("~/.ostler/agents/x.md", True)):
        folders.write({location: head})
        agent = load(folders)[0]["x"]
        assert decide(agent, "bash", "make") == ("allow" if may_extend else "ask")
        assert decide(agent, "read") == "deny"
        assert agent.max_steps == (9999 if may_extend else None)
        assert agent.model == ("theirs" if may_extend else "")
        if may_extend:
            break
        assert decide(load(folders, trusted=True)[0]["x"], "bash", "make") == "allow"
        (folders.work / location).unlink()


@pytest.mark.req("PM-8")
def test_project_cannot_extend_an_agent_of_the_user(folders):
    folders.write(
        {
            "~/.ostler/agents/careful.md": "---\ntools: Read, Grep, Bash\npermission:\n  bash: deny\n---\nmine",
            ".ostler/agents/careful.md": "---\ntools: Read, Write, Bash\npermission: allow\n---\ntheirs",
            ".ostler/agents/plan.md": "---\npermission: allow\ntools:\n  write: true\n---\nNow write.",
            ".ostler/agents/title.md": "Say that all is well.",
        }
    )
    agents, notes = load(folders)
    careful, plan = agents["careful"], agents["plan"]
    assert careful.prompt == "theirs"
    assert [tool for tool in ("read", "write", "grep", "bash") if careful.allows_tool(tool)] == ["read", "bash"]
    assert decide(careful, "bash", "ls") == "deny"
    assert (plan.prompt, plan.read_only, decide(plan, "write")) == ("Now write.", True, "deny")
    assert "all is well" not in agents["title"].prompt
    assert len(notes) == 1


@pytest.mark.req("EN-3", "PM-1")
def test_config_overrides_files(folders):
    folders.write(
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
                        "new": {"prompt": "new", "tools": ["read"], "mode": "subagent"},
                        "general": {"disable": True},
                        "plan": {"permission": {"write": {"plans/*": "allow"}}},
                    }
                }
            ),
        }
    )
    agents, _ = load(folders)
    x = agents["x"]
    assert (x.description, x.temperature, x.max_steps, x.prompt) == ("from the config", 0, 3, "hi")
    assert (x.allows_tool("edit"), x.allows_tool("bash")) == (False, True)
    assert [decide(x, "bash", command) for command in ("make", "rm a")] == ["allow", "deny"]
    assert (agents["new"].prompt, agents["new"].allows_tool("read"), agents["new"].allows_tool("bash")) == (
        "new",
        True,
        False,
    )
    assert "general" not in agents
    assert [decide(agents["plan"], "write", path) for path in ("plans/a.md", "a.py")] == ["allow", "deny"]
    assert agents["plan"].read_only


@pytest.mark.req("PM-8")
def test_project_config_can_only_restrict(folders):
    config = {
        "agent": {
            "plan": {"permission": {"write": "allow"}},
            "build": {"permission": {"bash": "deny", "write": "allow"}},
        }
    }
    folders.write({".ostler/config.json": json.dumps(config)})
    agents, _ = load(folders)
    assert decide(agents["plan"], "write") == "deny"
    assert (decide(agents["build"], "bash", "ls"), decide(agents["build"], "write")) == ("deny", "ask")


@pytest.mark.req("EN-3", "PM-8")
@pytest.mark.parametrize("name", ["plan", "explore"])
def test_disabling_and_enabling_an_agent_keeps_its_restrictions(folders, name):
    folders.write(
        {
            f".claude/agents/{name}.md": "---\ndisable: true\n---\n",
            f".ostler/agents/{name}.md": "---\nmode: all\npermission: allow\n---\nNow write.",
        }
    )
    agent = load(folders)[0][name]
    assert (agent.prompt, agent.read_only, decide(agent, "write")) == ("Now write.", True, "deny")


@pytest.mark.req("EN-3", "PM-8")
def test_default_agent_cannot_be_disabled(folders):
    folders.write(
        {
            "~/.ostler/agents/build.md": "---\npermission:\n  bash: deny\n---\n",
            ".ostler/agents/build.md": "---\ndisable: true\n---\n",
            ".ostler/config.json": json.dumps({"agent": {"build": {"disable": True}}}),
        }
    )
    agents, notes = load(folders)
    assert decide(agents["build"], "bash", "make") == "deny"
    assert any("cannot be disabled" in note for note in notes)


@pytest.mark.parametrize("text", ["", "---\nname: y\n---\n", b"\0\0\0\0", "---\ndisable: true\n---\nprompt"])
def test_files_that_are_not_agents_are_ignored(folders, text):
    folders.write({".ostler/agents/x.md": text})
    assert set(load(folders)[0]) & {"x", "y"} == set()


def test_file_without_prompt_changes_a_builtin_agent(folders):
    folders.write({"~/.ostler/agents/plan.md": "---\ntemperature: 0.1\n---\n"})
    plan = load(folders)[0]["plan"]
    assert plan.temperature == 0.1
    assert "change nothing" in plan.prompt


@pytest.mark.req("FS-2")
def test_symlinks_outside_and_loops_are_ignored(folders):
    agents = folders.work / ".ostler" / "agents"
    agents.mkdir(parents=True)
    (agents / "x.md").symlink_to(folders.outside / "secret.md")
    (agents / "door").symlink_to(folders.outside)
    (agents / "loop").symlink_to(".")
    (agents / "y.md").symlink_to("y.md")
    (agents / "good.md").write_text("prompt")
    found, _ = load(folders)
    assert "good" in found
    assert not any("SECRET" in agent.prompt for agent in found.values())


@pytest.mark.req("EN-8")
def test_huge_prompt_is_truncated(folders):
    folders.write({".ostler/agents/x.md": "word " * 100_000})
    prompt = load(folders)[0]["x"].prompt
    assert len(prompt) < 40_000
    assert "truncated: .ostler/agents/x.md" in prompt


@pytest.mark.parametrize("name", ["*", "a b", "a\nb", "", "x" * 65, "--allow", "../x"])
def test_invalid_names_are_ignored(folders, name):
    folders.write({".ostler/config.json": json.dumps({"agent": {name: {"prompt": "x"}}})})
    agents, notes = load(folders)
    assert name not in agents
    assert len(notes) == 1


def test_nested_folder_is_part_of_the_name(folders):
    folders.write({".opencode/agent/team/a.md": "prompt", ".claude/agents/team/b.md": "---\nname: b\n---\nprompt"})
    assert {"team/a", "b"} <= set(load(folders)[0])


@pytest.mark.req("EN-3", "PM-2", "MC-3")
@pytest.mark.parametrize("key", ["write", "delete", "files_write", "github_create_issue", "network", "anything"])
def test_plan_denies_tools_not_known_to_be_read_only(key):
    """This holds for all rules, profiles and flags, because a server's tool could do anything."""
    agent = builtin_agents()["plan"]
    everything = (Rule("*", "*", "allow", "test"),)
    policy = Policy((*everything, *agent.rules), agent.restrictions, profile="god_mode", flags=everything)
    assert evaluate_permission(Permission("", (Need(key, "x"),)), policy).action == "deny"
    for reading in ("read", "grep", "task", "skill", "todowrite"):
        assert evaluate_permission(Permission("", (Need(reading, "x"),)), policy).action == "allow"


WRITES = "---\nmode: all\npermission: allow\ntools:\n  write: true\nmax_steps: 9999\n---\nNow write."
DISABLES = "---\ndisable: true\n---\n"


@pytest.mark.req("PM-8", "EN-3")
@pytest.mark.parametrize("trusted", [False, True], ids=["untrusted", "trusted"])
@pytest.mark.parametrize("name", ["plan", "explore", "careful"])
@pytest.mark.parametrize(
    "project",
    [
        {".ostler/agents/{}.md": DISABLES},
        {".claude/agents/{}.md": DISABLES},
        {".opencode/agent/{}.md": DISABLES, ".ostler/agents/{}.md": WRITES},
        {".eidolon/agents/{}.md": WRITES},
        {".ostler/agents/other.md": WRITES.replace("mode", "name: {}\nmode")},
        {".ostler/config.json": '{{"agent": {{"{}": {{"permission": "allow", "tools": {{"write": true}}}}}}}}'},
        {".ostler/config.json": '{{"agent": {{"{}": {{"disable": false, "tools": ["write"]}}}}}}'},
        {
            ".ostler/agents/{}.md": DISABLES,
            ".ostler/config.json": '{{"agent": {{"{}": {{"permission": "allow", "prompt": "x", "hidden": false}}}}}}',
        },
    ],
    ids=str,
)
def test_no_file_of_a_project_lifts_a_restriction(folders, project, name, trusted):
    folders.write(
        {
            "~/.ostler/agents/careful.md": "---\npermission:\n  '*': deny\n  read: allow\n---\nmine",
            "~/.ostler/config.json": json.dumps(
                {
                    "agent": {
                        "plan": {"temperature": 0.1, "tools": {"write": False}},
                        "explore": {"temperature": 0.1, "max_steps": 5},
                        "careful": {"temperature": 0.1, "permission": {"write": "deny"}},
                    }
                }
            ),
            **{path.format(name): text.format(name) for path, text in project.items()},
        }
    )
    agents = load_agents(folders.sources(), folders.settings(trusted=trusted), trusted=trusted)
    agent = agents[name]
    assert (decide(agent, "write", profile="god_mode"), agent.temperature) == ("deny", 0.1)
    assert agent.read_only is (name != "careful")
    assert not (name == "plan" and agent.allows_tool("write")) and not (name == "explore" and agent.max_steps != 5)


@pytest.mark.req("PM-8")
@pytest.mark.parametrize("trusted", [False, True], ids=["untrusted", "trusted"])
def test_project_cannot_enable_what_the_user_disabled(folders, trusted):
    folders.write(
        {
            "~/.ostler/agents/general.md": DISABLES,
            "~/.ostler/config.json": json.dumps({"agent": {"explore": {"disable": True}}}),
            ".ostler/agents/general.md": WRITES,
            ".ostler/agents/explore.md": WRITES,
            ".ostler/config.json": json.dumps({"agent": {"explore": {"disable": False}, "general": {"prompt": "x"}}}),
        }
    )
    agents = load_agents(folders.sources(), folders.settings(trusted=trusted), trusted=trusted)
    assert not {"general", "explore"} & set(agents)


@pytest.mark.req("PM-8")
def test_project_agent_with_the_name_of_another_in_upper_case_changes_that_one(folders):
    folders.write(
        {".ostler/agents/Plan.md": WRITES, ".ostler/config.json": json.dumps({"agent": {"PLAN": {"prompt": "x"}}})}
    )
    agents, notes = load(folders, trusted=True)
    assert not {"Plan", "PLAN"} & set(agents)
    assert (agents["plan"].read_only, decide(agents["plan"], "write"), len(notes)) == (True, "deny", 1)


@pytest.mark.req("PM-8")
def test_trusted_project_may_allow_more_for_an_agent_without_restrictions(folders):
    folders.write({".ostler/config.json": json.dumps({"agent": {"build": {"permission": {"bash": "allow"}}}})})
    agents = load_agents(folders.sources(), folders.settings(trusted=True), trusted=True)
    assert decide(agents["build"], "bash", "make") == "allow"
