"""From a permission to a decision: what a person is asked, and what their answer lasts for."""

import asyncio

import pytest

from ostler.policy.verdict import Policy
from ostler.session.judge import Judge, NoGrants
from ostler.vocabulary.events import PermissionAsked, RuleAdded
from ostler.vocabulary.permission import Decision, Need, Permission

LOOKS = Need("bash", "ls src", always="ls *")  # the baseline allows it
BUILDS = Need("bash", "make test", always="make test *")


@pytest.mark.req("PM-5", "PM-6")
@pytest.mark.parametrize("lasts", ["session", "project"])
async def test_a_lasting_answer_makes_rules_for_nothing_but_what_was_asked(lasts):
    events = []
    judge = Judge(Policy(), NoGrants(), events.append, lambda kind: kind)
    deciding = asyncio.create_task(judge.decide(Permission("ls src && make test", (LOOKS, BUILDS)), "model", (), ()))
    while not events:
        await asyncio.sleep(0)
    (asked,) = [event for event in events if isinstance(event, PermissionAsked)]
    assert asked.permission.needs == (BUILDS,)
    judge.asks.settle(asked.ask_id, Decision("allow", by="person", lasts=lasts))
    assert (await deciding).answer == "allow"
    assert [event.rule.pattern for event in events if isinstance(event, RuleAdded)] == ["make test *"]
