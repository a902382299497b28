"""The agents that are always there, and the rules that keep the reading ones from writing."""

from pathlib import Path

from ostler.knowledge.agent import Agent, Mode
from ostler.knowledge.tool_lists import Switches
from ostler.vocabulary.permission import Action, Rule

_READING = ("read", "list", "glob", "grep", "stat", "git_*", "todoread", "todowrite", "skill", "external_directory")
_LOOKING = ("ls *", "cat *", "grep *", "git status *", "git diff *", "git log *", "git show *")


def _rules(action: Action, *keys: str) -> tuple[Rule, ...]:
    return tuple(Rule(key, "*", action, "read-only agent") for key in keys)


# A command could write: unless it only looks, a person is asked, or the sandbox holds it (`Agent.read_only`).
_COMMANDS = (
    *_rules("ask", "bash"),
    *(Rule("bash", pattern, "allow", "read-only agent") for pattern in _LOOKING),
)
# What is not known to read only is taken to write: the tools of MCP servers too. A task's child may do no more.
NO_WRITES: tuple[Rule, ...] = (*_rules("deny", "*"), *_rules("allow", *_READING, "task"), *_COMMANDS)
NO_TOOLS: Switches = (("*", False),)
ONLY_READS: tuple[Rule, ...] = (*_rules("deny", "*"), *_rules("allow", *_READING), *_COMMANDS)


def builtin_agents() -> dict[str, Agent]:
    """By name; the hidden ones do the house's own work."""
    agents = (
        _agent("build", "primary", "Does the work: reads, changes, runs and checks."),
        _agent("plan", "primary", "Looks and plans, changes nothing.", NO_WRITES),
        _agent("general", "subagent", "Works out a part of a task by itself and reports."),
        _agent("explore", "subagent", "Searches the workspace and reports; only reads.", ONLY_READS),
        _agent("title", "subagent", "Names a session.", ONLY_READS, hidden=True),
        _agent("summary", "subagent", "Sums a session up.", ONLY_READS, hidden=True),
        _agent("compaction", "subagent", "Shortens a history so that work can go on.", ONLY_READS, hidden=True),
    )
    return {agent.name: agent for agent in agents}


def _agent(name: str, mode: Mode, description: str, narrow: tuple[Rule, ...] = (), *, hidden: bool = False) -> Agent:
    return Agent(
        name,
        mode,
        description,
        prompt=_prompt(name),
        narrow=(narrow,) if narrow else (),
        read_only=bool(narrow),
        tools=(NO_TOOLS,) if hidden else (),
        hidden=hidden,
    )


def _prompt(name: str) -> str:
    """Its own words, which follow the prompt for all; `build` needs none."""
    file = Path(__file__).with_name("prompts") / f"{name}.md"
    return "" if name == "build" else file.read_text(encoding="utf-8").strip()
