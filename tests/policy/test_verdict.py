"""The evaluation of permissions, step by step."""

import msgspec
import pytest

from ostler.core.errors import UsageError
from ostler.core.permission import UNKNOWN_PROGRAM, Need, Permission, Rule
from ostler.policy.permission_rules import parse_flag, parse_rules
from ostler.policy.presets import BASELINE, BASELINE_READING_ANYWHERE, WRITE_FLAG, YOLO_FLAG
from ostler.policy.verdict import Policy, evaluate_permission, needs_to_approve


def evaluate(*needs, policy=Policy(), **context):
    return evaluate_permission(Permission("x", needs), policy, **context)


@pytest.mark.req("PM-1")
@pytest.mark.parametrize(
    ("need", "action"),
    [
        (Need("read", "a.py"), "allow"),
        (Need("list", "."), "allow"),
        (Need("glob", "*"), "allow"),
        (Need("grep", "."), "allow"),
        (Need("todowrite", ""), "allow"),
        (Need("git_status", ""), "allow"),
        (Need("write", "a.py"), "ask"),
        (Need("edit", "a.py"), "ask"),
        (Need("patch", "a.py"), "ask"),
        (Need("delete", "a.py"), "ask"),
        (Need("skill", "x"), "allow"),
        (Need("task", "x"), "allow"),
        (Need("bash", "make"), "ask"),
        (Need("bash", "ls -la"), "allow"),
        (Need("bash", "cat x"), "allow"),
        (Need("bash", "grep x y"), "allow"),
        (Need("external_directory", "/etc/passwd"), "deny"),
        (Need("from_an_mcp_server", "x"), "ask"),
    ],
)
def test_defaults(need, action):
    assert evaluate(need).action == action


@pytest.mark.req("PM-1")
@pytest.mark.invariant("P4")
def test_last_matching_rule_wins():
    rules = parse_rules({"bash": {"*": "deny", "git *": "allow", "git push *": "ask"}}, "global")
    policy = Policy(rules=(*BASELINE, *rules))
    assert evaluate(Need("bash", "git log"), policy=policy).action == "allow"
    assert evaluate(Need("bash", "git push origin"), policy=policy).action == "ask"
    assert evaluate(Need("bash", "make"), policy=policy).action == "deny"


@pytest.mark.req("PM-1")
@pytest.mark.parametrize("key", ["write", "edit", "patch"])
def test_edit_includes_write_edit_and_patch(key):
    policy = Policy(rules=(*BASELINE, *parse_rules({"edit": "deny"}, "global")))
    assert evaluate(Need(key, "a"), policy=policy).action == "deny"


@pytest.mark.req("PM-2")
@pytest.mark.invariant("P4")
def test_strictest_need_decides():
    assert evaluate(Need("read", "a"), Need("write", "b")).action == "ask"
    assert evaluate(Need("read", "a"), Need("external_directory", "/b"), Need("write", "b")).action == "deny"


@pytest.mark.req("PM-3")
@pytest.mark.parametrize(
    ("profile", "need", "action"),
    [
        ("paranoid", Need("read", "a"), "ask"),
        ("paranoid", Need("bash", "ls"), "ask"),
        ("balanced", Need("bash", "make test"), "allow"),
        ("balanced", Need("bash", "makefile"), "ask"),
        ("god_mode", Need("write", "a"), "allow"),
        ("god_mode", Need("external_directory", "/etc"), "deny"),
        ("god_mode", Need("bash", "rm x", "confirm", "deletes"), "ask"),
        ("god_mode", Need("bash", "rm -rf /", "deny", "destroys"), "deny"),
    ],
)
def test_profiles(profile, need, action):
    assert evaluate(need, policy=Policy(profile=profile, whitelist=("make",))).action == action


@pytest.mark.req("PM-4", "FS-3")
@pytest.mark.parametrize(
    ("flags", "need", "action"),
    [
        ((), Need("write", "a"), "deny"),
        (WRITE_FLAG, Need("write", "a"), "allow"),
        (WRITE_FLAG, Need("edit", "a"), "allow"),
        (WRITE_FLAG, Need("delete", "a"), "deny"),
        (WRITE_FLAG, Need("write", "/out", "deny", "writes never leave"), "deny"),
        (YOLO_FLAG, Need("write", "a"), "allow"),
        (YOLO_FLAG, Need("external_directory", "/etc/hosts"), "deny"),
        ((parse_flag("bash:make *"),), Need("bash", "make test"), "allow"),
        ((parse_flag("bash:make *"),), Need("bash", "make; rm x", "confirm", "deletes"), "deny"),
    ],
)
def test_flags_in_non_interactive_runs(flags, need, action):
    assert evaluate(need, policy=Policy(flags=flags, interactive=False)).action == action


@pytest.mark.req("PM-3", "PM-4")
def test_paranoid_allows_flags_but_not_the_sandbox():
    reads = Policy(profile="paranoid", flags=(parse_flag("read:*"),), interactive=False, allow_sandboxed=True)
    assert evaluate(Need("read", "a"), policy=reads).action == "allow"
    assert evaluate(Need("list", "a"), policy=reads).action == "deny"
    assert evaluate(Need("bash", "make", sandboxed=True), policy=reads).action == "deny"


@pytest.mark.req("FS-3")
def test_yolo_reads_anywhere_unless_a_user_rule_denies_it():
    need, user_rule = Need("external_directory", "/etc/hosts"), Rule("external_directory", "/etc/*", "deny", "global")
    assert evaluate(need, policy=Policy(rules=BASELINE_READING_ANYWHERE, flags=YOLO_FLAG)).action == "allow"
    assert (
        evaluate(need, policy=Policy(rules=(*BASELINE_READING_ANYWHERE, user_rule), flags=YOLO_FLAG)).action == "deny"
    )


@pytest.mark.req("SH-3")
@pytest.mark.parametrize("origin", ["model", "person", "protocol", "validation"])
@pytest.mark.parametrize("profile", ["paranoid", "balanced", "god_mode"])
@pytest.mark.invariant("P6")
def test_dangerous_needs_always_ask_once_only(origin, profile):
    everything = (Rule("*", "*", "allow", "config"),)
    policy = Policy(rules=everything, profile=profile, flags=everything, whitelist=("rm",))
    verdict = evaluate(Need("bash", "rm x", "confirm", "deletes"), policy=policy, origin=origin, grants=everything)
    assert (verdict.action, verdict.once_only) == ("ask", True)


UNKNOWN = Need("bash", "acme lint x", UNKNOWN_PROGRAM, "acme is an unknown program", rule_pattern="acme *")


@pytest.mark.req("SH-3", "PM-2", "PM-3")
@pytest.mark.parametrize(
    ("policy", "context", "action"),
    [
        (Policy(), {}, "ask"),
        (Policy(rules=(Rule("*", "*", "allow"),)), {}, "ask"),
        (Policy(rules=(Rule("bash", "*", "allow"),)), {}, "ask"),
        (Policy(rules=(Rule("bash", "a* *", "allow"),)), {}, "ask"),
        (Policy(rules=(Rule("bash", "acme *", "allow"),)), {}, "allow"),
        (Policy(rules=(Rule("bash", "acme lint *", "allow"),)), {}, "allow"),
        (Policy(rules=(Rule("bash", "acme fix *", "allow"), Rule("bash", "*", "allow"))), {}, "ask"),
        (Policy(rules=(Rule("bash", "acme *", "allow"), Rule("bash", "acme lint *", "deny"))), {}, "deny"),
        (Policy(restrictions=((Rule("bash", "acme *", "allow", "someone else's repository"),),)), {}, "ask"),
        (Policy(flags=(parse_flag("bash:acme *"),), interactive=False), {}, "allow"),
        (Policy(flags=(parse_flag("bash"),), interactive=False), {}, "deny"),
        (Policy(), {"grants": (Rule("bash", "acme *", "allow", "your answer: project"),)}, "allow"),
        (Policy(whitelist=("acme",)), {}, "allow"),
        (Policy(profile="god_mode"), {}, "allow"),
        (Policy(profile="paranoid"), {}, "ask"),
        (Policy(), {"origin": "person"}, "allow"),
        (Policy(allow_unknown_programs=True, rules=(Rule("*", "*", "allow"),)), {}, "allow"),
    ],
)
def test_unknown_program_needs_approval_until_it_is_named(policy, context, action):
    verdict = evaluate(UNKNOWN, policy=policy, **context)
    assert (verdict.action, verdict.once_only) == (action, False)


@pytest.mark.req("PM-4")
def test_unknown_program_in_the_sandbox_is_allowed():
    sandboxed_need = msgspec.structs.replace(UNKNOWN, sandboxed=True)
    assert evaluate(sandboxed_need, policy=Policy(interactive=False, allow_sandboxed=True)).action == "allow"
    assert evaluate(sandboxed_need, policy=Policy(rules=(Rule("bash", "*", "allow"),))).action == "allow"
    assert evaluate(UNKNOWN, policy=Policy(interactive=False, allow_sandboxed=True)).action == "deny"


def test_reason_names_the_flag_that_allows_an_unknown_program():
    verdict = evaluate(UNKNOWN, policy=Policy(interactive=False))
    assert "add --allow 'bash:acme *' to allow it" in verdict.reason


@pytest.mark.req("SH-4", "PM-2")
@pytest.mark.invariant("P7")
def test_non_interactive_run_denies_and_says_why():
    verdict = evaluate(Need("write", "a"), policy=Policy(interactive=False))
    assert verdict.action == "deny"
    assert "non-interactive" in verdict.reason


@pytest.mark.req("PM-2")
def test_call_typed_by_the_user_is_allowed():
    assert evaluate(Need("bash", "make"), origin="person").action == "allow"
    assert evaluate(Need("bash", "rm -rf /", "deny", "destroys"), origin="person").action == "deny"


@pytest.mark.invariant("P3")
def test_restrictions_never_extend_permissions():
    assert evaluate(Need("write", "a"), restrictions=((Rule("write", "*", "allow", "child"),),)).action == "ask"
    assert evaluate(Need("write", "a"), restrictions=((Rule("write", "*", "deny", "parent"),),)).action == "deny"
    assert (
        evaluate(Need("read", "a"), policy=Policy(restrictions=((Rule("read", "*", "ask", "project"),),))).action
        == "ask"
    )


@pytest.mark.req("PM-2")
def test_every_step_is_listed():
    verdict = evaluate(Need("write", "a"))
    assert [step.name for step in verdict.steps] == [
        "rules",
        "profile and flags",
        "origin of the call",
        "danger check",
        "non-interactive",
    ]
    assert 'rule write "*" ask (built-in)' in verdict.steps[0].reason


@pytest.mark.parametrize("value", ["yes", 1, None, ["allow"], "Allow"])
def test_invalid_action_is_reported_with_its_key(value):
    with pytest.raises(UsageError, match=r"permission\.bash"):
        parse_rules({"bash": value}, "config.json")


def test_flag_without_a_permission_is_an_error():
    with pytest.raises(UsageError, match="does not name a permission"):
        parse_flag(":x")


@pytest.mark.req("PM-4")
@pytest.mark.parametrize(
    ("flag", "suggestion"),
    [("bsh:git *", "bash"), ("Bash(git *)", "bash"), ("shell", "bash"), ("wirte", "write"), ("apply_patch:*", "patch")],
)
def test_flag_for_an_unknown_tool_suggests_a_name(flag, suggestion):
    with pytest.raises(UsageError, match="there is no tool") as raised:
        parse_flag(flag)
    assert f"did you mean {suggestion}?" in str(raised.value)


@pytest.mark.req("PM-4")
@pytest.mark.parametrize(
    "key", ["bash", "*", "git_*", "edit", "delete", "external_directory", "mcp__x__y", "server__do"]
)
def test_flag_for_a_known_key_is_accepted(key):
    assert parse_flag(f"{key}:a*") == Rule(key, "a*", "allow", "--allow")


def test_flag_without_a_similar_name_lists_all_names():
    with pytest.raises(UsageError, match=r"known names: (\w+, )*git_blame, .*, read, "):
        parse_flag("quux")


@pytest.mark.req("PM-2", "PM-5")
def test_only_needs_that_are_not_allowed_need_approval():
    read_only, build, outside = Need("bash", "ls src"), Need("bash", "make"), Need("external_directory", "/etc/passwd")
    permission = Permission("x", (read_only, build, outside))
    assert needs_to_approve(permission, Policy()) == (build, outside)
    assert needs_to_approve(permission, Policy(), grants=(Rule("bash", "make *", "allow"),)) == (outside,)
