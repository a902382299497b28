"""Command lines that only look at files, and what the policy makes of them."""

import pytest

from ostler.core.permission import Need, Permission, Rule
from ostler.policy.presets import BASELINE
from ostler.policy.shell.looking import only_looks
from ostler.policy.verdict import Policy, evaluate_permission

pytestmark = pytest.mark.req("PM-11")


@pytest.mark.parametrize(
    "line",
    [
        "git status",
        "git --no-pager log --oneline -5 | head",
        "git -C src diff --stat 2>/dev/null",
        "git branch -vv",
        "git branch --list 'x*'",
        "git tag",
        "git stash list",
        "git config --get user.name",
        "rg -n foo src | wc -l",
        "find . -name '*.py' -newer x",
        "sed -n 1,5p a.txt",
        "sed -n '/def x/,/return/p' a.py",
        "sed 's/a/b/g' a.txt",
        "cat a | sort -u | uniq -c",
        "cd src && ls -la",
        'for f in *.py; do wc -l "$f"; done',
        "head -3 $(git ls-files)",
        "[ -e x ] && cat x",
        "cat <<EOF\nx\nEOF",
    ],
)
def test_command_only_looks(line):
    assert only_looks(line)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "x=1",
        "git",
        "git commit -m x",
        "git branch new",
        "git branch -d old",
        "git tag v1",
        "git stash",
        "git stash pop",
        "git remote add x y",
        "git remote show origin",
        "git reflog expire --all",
        "git config user.name x",
        "git diff --output=x",
        "git grep -Ovim x",
        "git -c core.pager=x log",
        "GIT_DIR=x git status",
        "git status > out",
        "git status >> out 2>&1",
        "cat a | tee b",
        "sort -o a b",
        "sort -uo a b",
        "uniq a b",
        "tree -o x",
        "find . -delete",
        "find . -exec touch {} +",
        "find . -fprint x",
        "sed -i s/a/b/ x",
        "sed -n 'w out' x",
        "sed 's/a/b/w out' x",
        "sed 1e x",
        "sed -f program x",
        "rg x | xargs touch",
        "rg --pre ./x y",
        "env git status",
        "awk '{print > \"x\"}' a",
        "sh -c 'git status'",
        "./git status",
        "$x status",
        "git $x",
        "python x.py",
        "make",
        "pytest",
        "npm test",
        "rm x",
        "ls; touch x",
        "ls $(touch x)",
        "git status 'unfinished",
    ],
)
def test_command_may_do_more(line):
    assert not only_looks(line)


def action(need, **policy):
    return evaluate_permission(Permission("", (need,)), Policy(**policy)).action


def test_only_the_sandbox_lets_a_looking_command_pass():
    need = Need("bash", "git status", sandboxed=True, read_only=True)
    assert action(need) == "allow"
    assert action(Need("bash", "git status", read_only=True)) == "ask"
    assert action(Need("bash", "git status", sandboxed=True)) == "ask"


@pytest.mark.req("PM-2", "SH-3")
def test_rules_profiles_and_the_danger_check_still_apply():
    need = Need("bash", "git status", sandboxed=True, read_only=True)
    assert action(need, rules=(*BASELINE, Rule("bash", "git *", "deny"))) == "deny"
    assert action(need, profile="paranoid") == "ask"
    assert action(Need("bash", "x", "confirm", "deletes", sandboxed=True, read_only=True)) == "ask"
