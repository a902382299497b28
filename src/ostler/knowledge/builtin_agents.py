"""The agents that are always there, and the rules that keep the reading ones from writing."""

from pathlib import Path

from ostler.core.permission import PolicyAction, Rule
from ostler.knowledge.agent_definition import AgentDefinition, AgentMode
from ostler.knowledge.tool_lists import ToolSwitches

_READ_TOOLS = ("read", "list", "glob", "grep", "stat", "git_*", "todoread", "todowrite", "skill", "external_directory")
_READ_ONLY_COMMANDS = ("ls *", "cat *", "grep *", "git status *", "git diff *", "git log *", "git show *")


def _make_rules(action: PolicyAction, *keys: str) -> tuple[Rule, ...]:
    return tuple(Rule(key, "*", action, "read-only agent") for key in keys)


# A command could write: unless it only looks, a person is asked, or the sandbox holds it (`Agent.read_only`).
_COMMAND_RULES = (
    *_make_rules("ask", "bash"),
    *(Rule("bash", pattern, "allow", "read-only agent") for pattern in _READ_ONLY_COMMANDS),
)
# What is not known to read only is taken to write: the tools of MCP servers too. A task's child may do no more.
NO_WRITE_RULES: tuple[Rule, ...] = (
    *_make_rules("deny", "*"),
    *_make_rules("allow", *_READ_TOOLS, "task"),
    *_COMMAND_RULES,
)
NO_TOOLS: ToolSwitches = (("*", False),)
READ_ONLY_RULES: tuple[Rule, ...] = (*_make_rules("deny", "*"), *_make_rules("allow", *_READ_TOOLS), *_COMMAND_RULES)


def builtin_agents() -> dict[str, AgentDefinition]:
    """By name; the hidden ones do the house's own work."""
    agents = (
        _make_agent("build", "primary", "Does the work: reads, changes, runs and checks."),
        _make_agent("plan", "primary", "Looks and plans, changes nothing.", NO_WRITE_RULES),
        _make_agent("general", "subagent", "Works out a part of a task by itself and reports."),
        _make_agent("explore", "subagent", "Searches the workspace and reports; only reads.", READ_ONLY_RULES),
        _make_agent("title", "subagent", "Names a session.", READ_ONLY_RULES, hidden=True),
        _make_agent("summary", "subagent", "Sums a session up.", READ_ONLY_RULES, hidden=True),
        _make_agent(
            "compaction", "subagent", "Shortens a history so that work can go on.", READ_ONLY_RULES, hidden=True
        ),
    )
    return {agent.name: agent for agent in agents}


def _make_agent(
    name: str, mode: AgentMode, description: str, restrictions: tuple[Rule, ...] = (), *, hidden: bool = False
) -> AgentDefinition:
    return AgentDefinition(
        name,
        mode,
        description,
        prompt=_read_prompt(name),
        restrictions=(restrictions,) if restrictions else (),
        read_only=bool(restrictions),
        tools=(NO_TOOLS,) if hidden else (),
        hidden=hidden,
    )


def _read_prompt(name: str) -> str:
    """Its own words, which follow the prompt for all; `build` needs none."""
    file = Path(__file__).with_name("prompts") / f"{name}.md"
    return "" if name == "build" else file.read_text(encoding="utf-8").strip()
