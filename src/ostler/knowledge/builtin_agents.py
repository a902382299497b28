"""Defines the built-in agents and the rules that make some of them read-only."""

from ostler.core.package_data import read_text
from ostler.core.permission import PolicyAction, Rule
from ostler.core.tool_declarations import tool_names
from ostler.knowledge.agent_definition import AgentDefinition, AgentMode
from ostler.knowledge.tool_lists import ToolSwitches
from ostler.policy.presets import READ_ONLY_AGENT

_READ_TOOLS = (*tool_names(lambda tool: not tool.effects), "external_directory")
_READ_ONLY_COMMANDS = ("ls *", "cat *", "grep *", "git status *", "git diff *", "git log *", "git show *")


def _make_rules(action: PolicyAction, *keys: str) -> tuple[Rule, ...]:
    return tuple(Rule(key, "*", action, READ_ONLY_AGENT) for key in keys)


# A command could write, so it needs approval unless it is read-only or sandboxed (`AgentDefinition.read_only`).
_COMMAND_RULES = (
    *_make_rules("ask", "bash"),
    *(Rule("bash", pattern, "allow", READ_ONLY_AGENT) for pattern in _READ_ONLY_COMMANDS),
)
# Tools that are not known to be read-only may write, also those of MCP servers. Subagents inherit the restriction.
NO_WRITE_RULES: tuple[Rule, ...] = (
    *_make_rules("deny", "*"),
    *_make_rules("allow", *_READ_TOOLS, "task"),
    *_COMMAND_RULES,
)
NO_TOOLS: ToolSwitches = (("*", False),)
READ_ONLY_RULES: tuple[Rule, ...] = (*_make_rules("deny", "*"), *_make_rules("allow", *_READ_TOOLS), *_COMMAND_RULES)


def builtin_agents() -> dict[str, AgentDefinition]:
    """Return the built-in agents by name. The hidden ones are used internally."""
    agents = (
        _make_agent("build", "primary", "Reads, edits, runs and checks code."),
        _make_agent("plan", "primary", "Plans without changing anything.", NO_WRITE_RULES),
        _make_agent("general", "subagent", "Does part of a task and reports."),
        _make_agent("explore", "subagent", "Searches the workspace and reports; read-only.", READ_ONLY_RULES),
        _make_agent("title", "subagent", "Writes the title of a session.", READ_ONLY_RULES, hidden=True),
        _make_agent("summary", "subagent", "Summarises a session.", READ_ONLY_RULES, hidden=True),
        _make_agent(
            "compaction", "subagent", "Shortens the history to continue the work.", READ_ONLY_RULES, hidden=True
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
    """Return the agent's own prompt, which follows the general one; `build` has none."""
    return "" if name == "build" else read_text(f"knowledge/prompts/{name}.md")
