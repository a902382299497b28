"""The way to a verdict, step by step, as a table."""

import msgspec
import pytest

from ostler.core.errors import UsageError
from ostler.core.permission import Need, Permission, Rule
from ostler.policy.permission_rules import parse_flag, parse_rules
from ostler.policy.presets import BASELINE, BASELINE_READING_ANYWHERE, READ_ONLY_AGENT, WRITE_FLAG, YOLO_FLAG
from ostler.policy.verdict import Policy, evaluate_permission, needs_to_approve


def asked(*needs, policy=Policy(), **context):
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
        (Need("skill", "x"), "ask"),
        (Need("task", "x"), "ask"),
        (Need("bash", "make"), "ask"),
        (Need("bash", "ls -la"), "allow"),
        (Need("bash", "cat x"), "allow"),
        (Need("bash", "grep x y"), "allow"),
        (Need("external_directory", "/etc/passwd"), "deny"),
        (Need("from_an_mcp_server", "x"), "ask"),
    ],
)
def test_defaults(need, action):
    assert asked(need).action == action


@pytest.mark.req("PM-1")
def test_the_last_rule_that_matches_wins():
    rules = parse_rules({"bash": {"*": "deny", "git *": "allow", "git push *": "ask"}}, "global")
    policy = Policy(rules=(*BASELINE, *rules))
    assert asked(Need("bash", "git log"), policy=policy).action == "allow"
    assert asked(Need("bash", "git push origin"), policy=policy).action == "ask"
    assert asked(Need("bash", "make"), policy=policy).action == "deny"


@pytest.mark.req("PM-1")
@pytest.mark.parametrize("key", ["write", "edit", "patch"])
def test_edit_covers_write_edit_and_patch(key):
    policy = Policy(rules=(*BASELINE, *parse_rules({"edit": "deny"}, "global")))
    assert asked(Need(key, "a"), policy=policy).action == "deny"


@pytest.mark.req("PM-2")
def test_over_several_needs_the_strictest_counts():
    assert asked(Need("read", "a"), Need("write", "b")).action == "ask"
    assert asked(Need("read", "a"), Need("external_directory", "/b"), Need("write", "b")).action == "deny"


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
    assert asked(need, policy=Policy(profile=profile, whitelist=("make",))).action == action


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
def test_flags_without_a_person(flags, need, action):
    assert asked(need, policy=Policy(flags=flags, interactive=False)).action == action


@pytest.mark.req("PM-3", "PM-4")
def test_paranoid_lets_pass_what_a_flag_names_and_nothing_for_the_sandbox():
    reads = Policy(profile="paranoid", flags=(parse_flag("read:*"),), interactive=False, allow_sandboxed=True)
    assert asked(Need("read", "a"), policy=reads).action == "allow"
    assert asked(Need("list", "a"), policy=reads).action == "deny"
    assert asked(Need("bash", "make", sandboxed=True), policy=reads).action == "deny"


@pytest.mark.req("FS-3")
def test_yolo_reads_anywhere_unless_a_person_wrote_otherwise():
    need, mine = Need("external_directory", "/etc/hosts"), Rule("external_directory", "/etc/*", "deny", "global")
    assert asked(need, policy=Policy(rules=BASELINE_READING_ANYWHERE, flags=YOLO_FLAG)).action == "allow"
    assert asked(need, policy=Policy(rules=(*BASELINE_READING_ANYWHERE, mine), flags=YOLO_FLAG)).action == "deny"


@pytest.mark.req("SH-3")
@pytest.mark.parametrize("origin", ["model", "person", "protocol", "validation"])
@pytest.mark.parametrize("profile", ["paranoid", "balanced", "god_mode"])
def test_the_dangerous_class_always_asks_and_only_once(origin, profile):
    everything = (Rule("*", "*", "allow", "config"),)
    policy = Policy(rules=everything, profile=profile, flags=everything, whitelist=("rm",))
    said = asked(Need("bash", "rm x", "confirm", "deletes"), policy=policy, origin=origin, grants=everything)
    assert (said.action, said.once_only) == ("ask", True)


STRANGER = Need("bash", "acme lint x", "stranger", "acme is a program Ostler does not know", rule_pattern="acme *")


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
        (Policy(restrictions=((Rule("bash", "acme *", "allow", "a stranger's repository"),),)), {}, "ask"),
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
def test_a_stranger_is_asked_about_until_somebody_vouches_for_it_by_name(policy, context, action):
    said = asked(STRANGER, policy=policy, **context)
    assert (said.action, said.once_only) == (action, False)


@pytest.mark.req("PM-4")
def test_a_stranger_that_the_sandbox_holds_is_as_good_as_known():
    held = msgspec.structs.replace(STRANGER, sandboxed=True)
    assert asked(held, policy=Policy(interactive=False, allow_sandboxed=True)).action == "allow"
    assert asked(held, policy=Policy(rules=(Rule("bash", "*", "allow"),))).action == "allow"
    assert asked(STRANGER, policy=Policy(interactive=False, allow_sandboxed=True)).action == "deny"


def test_what_would_allow_a_stranger_is_told():
    said = asked(STRANGER, policy=Policy(interactive=False))
    assert "--allow 'bash:acme *' would allow it" in said.reason


@pytest.mark.req("SH-4", "PM-2")
def test_nobody_home_turns_ask_into_deny_and_says_so():
    said = asked(Need("write", "a"), policy=Policy(interactive=False))
    assert said.action == "deny"
    assert "nobody" in said.reason


@pytest.mark.req("PM-2")
def test_a_person_who_typed_it_consented():
    assert asked(Need("bash", "make"), origin="person").action == "allow"
    assert asked(Need("bash", "rm -rf /", "deny", "destroys"), origin="person").action == "deny"


def test_narrowing_never_widens():
    assert asked(Need("write", "a"), restrictions=(Rule("write", "*", "allow", "child"),)).action == "ask"
    assert asked(Need("write", "a"), restrictions=READ_ONLY_AGENT).action == "deny"
    assert (
        asked(Need("read", "a"), policy=Policy(restrictions=((Rule("read", "*", "ask", "project"),),))).action == "ask"
    )


@pytest.mark.req("PM-2")
def test_every_step_is_told():
    said = asked(Need("write", "a"))
    assert [step.name for step in said.steps] == ["rules", "profile and flags", "who asks", "guards", "nobody home"]
    assert 'rule write "*" ask (built-in)' in said.steps[0].reason


@pytest.mark.parametrize("value", ["yes", 1, None, ["allow"], "Allow"])
def test_an_action_that_is_none_is_named(value):
    with pytest.raises(UsageError, match=r"permission\.bash"):
        parse_rules({"bash": value}, "config.json")


def test_a_flag_without_a_permission_is_an_error():
    with pytest.raises(UsageError, match="names no permission"):
        parse_flag(":x")


@pytest.mark.req("PM-4")
@pytest.mark.parametrize(
    ("flag", "meant"),
    [("bsh:git *", "bash"), ("Bash(git *)", "bash"), ("shell", "bash"), ("wirte", "write"), ("apply_patch:*", "patch")],
)
def test_a_flag_for_a_tool_that_is_none_names_the_nearest(flag, meant):
    with pytest.raises(UsageError, match="there is no tool") as raised:
        parse_flag(flag)
    assert f"did you mean {meant}?" in str(raised.value)


@pytest.mark.req("PM-4")
@pytest.mark.parametrize(
    "key", ["bash", "*", "git_*", "edit", "delete", "external_directory", "mcp__x__y", "server__do"]
)
def test_a_flag_for_what_there_is_passes(key):
    assert parse_flag(f"{key}:a*") == Rule(key, "a*", "allow", "--allow")


def test_a_flag_for_something_unheard_of_lists_what_there_is():
    with pytest.raises(UsageError, match="there is: read, write"):
        parse_flag("quux")


@pytest.mark.req("PM-2", "PM-5")
def test_only_what_the_policy_does_not_allow_by_itself_wants_an_answer():
    looks, builds, gone = Need("bash", "ls src"), Need("bash", "make"), Need("external_directory", "/etc/passwd")
    permission = Permission("x", (looks, builds, gone))
    assert needs_to_approve(permission, Policy()) == (builds, gone)
    assert needs_to_approve(permission, Policy(), grants=(Rule("bash", "make *", "allow"),)) == (gone,)
