"""Built-in rule lists: the baseline, and what each flag and read-only mode adds."""

from ostler.core.permission import Rule
from ostler.core.tool_declarations import ToolDeclaration, tool_names
from ostler.policy.permission_rules import EDITING_TOOLS

READ_ONLY_AGENT = "read-only agent"
_BUILT_IN_ORIGINS = ("built-in", READ_ONLY_AGENT)


def is_built_in(rule: Rule) -> bool:
    """Return whether a rule is one of Ostler's own, not of the user's settings, answers or agents."""
    return rule.origin in _BUILT_IN_ORIGINS


def _asks(tool: ToolDeclaration) -> bool:
    return tool.effects and tool.permission != "by-its-calls"


def allow_rules(origin: str, *keys: str) -> tuple[Rule, ...]:
    """Return a rule for each key that allows everything."""
    return tuple(Rule(key, "*", "allow", origin) for key in keys)


BASELINE: tuple[Rule, ...] = (
    Rule("*", "*", "ask", "built-in"),
    *allow_rules("built-in", *tool_names(lambda tool: not _asks(tool))),
    *(Rule(key, "*", "ask", "built-in") for key in (*tool_names(_asks), "delete", "network")),
    *(Rule("bash", f"{name} *", "allow", "built-in") for name in ("ls", "cat", "grep")),
    Rule("external_directory", "*", "deny", "built-in"),
)

# --yolo overrides the built-in deny rule for paths outside the workspace, but not a deny rule of the user.
BASELINE_READING_ANYWHERE: tuple[Rule, ...] = (*BASELINE, Rule("external_directory", "*", "ask", "built-in"))

WRITE_FLAG: tuple[Rule, ...] = allow_rules("--write", *EDITING_TOOLS)
YOLO_FLAG: tuple[Rule, ...] = (
    *WRITE_FLAG,
    *allow_rules("--yolo", "external_directory"),
    Rule("bash", "outside the workspace: *", "allow", "--yolo"),
)
