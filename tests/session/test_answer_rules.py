"""The rules that a lasting answer stores cover what its label names, and nothing else."""

import pytest

from ostler.core.permission import AnswerOption, Decision, Need, Permission
from ostler.session.answer_options import rules_of_decision, with_answers

PATTERNS = ["*", "src/*.py", "a?c", "dir\\file", "~/notes", "$HOME/notes"]


def kinds(permission):
    return {option.id: option.kind for option in permission.options}


@pytest.mark.req("PM-2", "PM-11")
@pytest.mark.parametrize("subject", PATTERNS)
@pytest.mark.parametrize("rule_pattern", [True, False], ids=["pattern equals subject", "no pattern"])
@pytest.mark.parametrize("key", ["write", "read", "bash"])
def test_subject_that_a_rule_would_read_as_a_pattern_is_only_allowed_once(key, subject, rule_pattern):
    need = Need(key, subject, rule_pattern=subject if rule_pattern else "")
    permission = with_answers(Permission("change", (need,)), once_only=False)
    assert kinds(permission).keys() & {"session", "always"} == set()
    assert {"once", "deny"} <= kinds(permission).keys()
    for scope in ("session", "project"):  # a client may send an answer that was not offered
        assert rules_of_decision(permission, Decision("allow", by="person", scope=scope, option_id="always")) == ()


@pytest.mark.req("PM-11")
def test_answer_of_an_agent_adds_no_rule_for_such_a_subject():
    own = (AnswerOption("ok", "Always", "allow_always"), AnswerOption("no", "No", "deny"))
    needs = (Need("write", "*"), Need("write", "notes.md"))
    permission = with_answers(Permission("change", needs, options=own), once_only=False)
    rules = rules_of_decision(permission, Decision("allow", by="person", scope="project", option_id="ok"))
    assert [(rule.key, rule.pattern) for rule in rules] == [("write", "notes.md")]


@pytest.mark.req("PM-11")
def test_pattern_that_the_tool_suggests_is_offered():
    need = Need("bash", "git log --all", rule_pattern="git log *")
    permission = with_answers(Permission("run", (need,)), once_only=False)
    assert list(kinds(permission)) == ["once", "session", "always", "deny"]
    assert permission.options[1].label == "Allow run git log * in this session"
