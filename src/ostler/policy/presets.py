"""Built-in rule lists: the baseline, and what each flag and read-only mode adds."""

from ostler.core.permission import Rule

# Named in full: a wildcard such as `git_*` would include the tools of an MCP server called git.
GIT_TOOLS = ("git_status", "git_diff", "git_log", "git_show", "git_blame")
READ_ONLY_TOOLS = ("read", "list", "glob", "grep", "stat", *GIT_TOOLS)
SESSION_TOOLS = ("todoread", "todowrite")


def allow_rules(origin: str, *keys: str) -> tuple[Rule, ...]:
    """Return a rule for each key that allows everything."""
    return tuple(Rule(key, "*", "allow", origin) for key in keys)


BASELINE: tuple[Rule, ...] = (
    Rule("*", "*", "ask", "built-in"),
    *allow_rules("built-in", *READ_ONLY_TOOLS, *SESSION_TOOLS),
    Rule("write", "*", "ask", "built-in"),
    Rule("patch", "*", "ask", "built-in"),
    Rule("delete", "*", "ask", "built-in"),
    Rule("skill", "*", "ask", "built-in"),
    Rule("task", "*", "ask", "built-in"),
    Rule("bash", "*", "ask", "built-in"),
    *(Rule("bash", f"{name} *", "allow", "built-in") for name in ("ls", "cat", "grep")),
    Rule("network", "*", "ask", "built-in"),
    Rule("external_directory", "*", "deny", "built-in"),
)

# --yolo overrides the built-in deny rule for paths outside the workspace, but not a deny rule of the user.
BASELINE_READING_ANYWHERE: tuple[Rule, ...] = (*BASELINE, Rule("external_directory", "*", "ask", "built-in"))

WRITE_FLAG: tuple[Rule, ...] = allow_rules("--write", "write", "edit", "patch", "mkdir", "write_chunk")
YOLO_FLAG: tuple[Rule, ...] = (
    *WRITE_FLAG,
    *allow_rules("--yolo", "external_directory"),
    Rule("bash", "outside the workspace: *", "allow", "--yolo"),
)
NON_INTERACTIVE: tuple[Rule, ...] = allow_rules("headless", "skill", "task")
READ_ONLY_AGENT: tuple[Rule, ...] = tuple(
    Rule(key, "*", "deny", "read-only agent") for key in ("write", "edit", "patch", "delete", "mkdir", "write_chunk")
)
