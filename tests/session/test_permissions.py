"""From a permission to a decision: what a person is asked, and what their answer lasts for."""

import asyncio

import pytest

from ostler.core.events import PermissionAsked, RuleAdded
from ostler.core.permission import Decision, Need, Permission
from ostler.policy.verdict import Policy
from ostler.session.permissions import NoStandingRules, PermissionDecider

LOOKS = Need("bash", "ls src", rule_pattern="ls *")  # the baseline allows it
BUILDS = Need("bash", "make test", rule_pattern="make test *")


@pytest.mark.req("PM-5", "PM-6")
@pytest.mark.parametrize("lasts", ["session", "project"])
async def test_a_lasting_answer_makes_rules_for_nothing_but_what_was_asked(lasts):
    events = []
    judge = PermissionDecider(Policy(), NoStandingRules(), events.append, lambda kind: kind)
    deciding = asyncio.create_task(judge.decide(Permission("ls src && make test", (LOOKS, BUILDS)), "model", (), ()))
    while not events:
        await asyncio.sleep(0)
    (asked,) = [event for event in events if isinstance(event, PermissionAsked)]
    assert asked.permission.needs == (BUILDS,)
    judge.pending.answer(asked.ask_id, Decision("allow", by="person", scope=lasts))
    assert (await deciding).answer == "allow"
    assert [event.rule.pattern for event in events if isinstance(event, RuleAdded)] == ["make test *"]
