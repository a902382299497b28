"""Decisions about permissions: what the user is asked, and the rules created from the answer."""

import asyncio

import pytest

from ostler.core.events import PermissionAsked, RuleAdded
from ostler.core.permission import Decision, Need, Permission, Rule
from ostler.policy.verdict import Policy
from ostler.rendering.asks import render_ask
from ostler.rendering.style import Styler
from ostler.session.permissions import NoStandingRules, PermissionDecider

READ_ONLY = Need("bash", "ls src", rule_pattern="ls *")  # the baseline allows it
BUILD = Need("bash", "make test", rule_pattern="make test *")


@pytest.mark.req("PM-5", "PM-6")
@pytest.mark.parametrize("scope", ["session", "project"])
async def test_standing_rules_cover_only_what_was_asked(scope):
    events = []
    decider = PermissionDecider(lambda: Policy(), NoStandingRules(), events.append, lambda kind: kind)
    decision = asyncio.create_task(
        decider.decide(Permission("ls src && make test", (READ_ONLY, BUILD)), "model", (), ())
    )
    while not events:
        await asyncio.sleep(0)
    (request,) = [event for event in events if isinstance(event, PermissionAsked)]
    assert request.permission.needs == (BUILD,)
    decider.pending.answer(request.ask_id, Decision("allow", by="person", scope=scope))
    assert (await decision).answer == "allow"
    assert [event.rule.pattern for event in events if isinstance(event, RuleAdded)] == ["make test *"]


@pytest.mark.req("PM-5")
@pytest.mark.parametrize("origin", ["model", "validation"])
async def test_request_of_the_validation_names_ostler_and_not_the_model(origin):
    events = []
    decider = PermissionDecider(lambda: Policy(), NoStandingRules(), events.append, lambda kind: kind)
    decision = asyncio.create_task(decider.decide(Permission("run make test", (BUILD,)), origin, (), ()))
    while not events:
        await asyncio.sleep(0)
    shown = "\n".join(render_ask(events[0], Styler(enabled=False)))
    assert ("asked by: Ostler, to check the edits" in shown) == (origin == "validation")
    assert "model" not in shown
    decider.pending.answer(events[0].ask_id, Decision("deny", by="person"))
    await decision


@pytest.mark.req("PM-2")
@pytest.mark.invariant("P5", "P10")
@pytest.mark.parametrize("action", ["ask", "deny"])
async def test_earlier_approval_counts_only_if_the_rules_do_not_deny_the_call_by_now(action):
    events = []
    policy = Policy(rules=(Rule("write", "*", action, "now"),))
    decider = PermissionDecider(lambda: policy, NoStandingRules(), events.append, lambda kind: kind)
    permission = Permission("write a.txt", (Need("write", "a.txt"),), is_approved=True)
    decision = await decider.decide(permission, "protocol", (), ())
    assert decision.answer == ("allow" if action == "ask" else "deny")
    assert not [event for event in events if isinstance(event, PermissionAsked)]


@pytest.mark.invariant("P10")
async def test_dangerous_call_is_asked_about_again_after_an_earlier_approval():
    events = []
    decider = PermissionDecider(lambda: Policy(), NoStandingRules(), events.append, lambda kind: kind)
    permission = Permission("x", (Need("write", ".git/config", "confirm"),), is_approved=True)
    decision = asyncio.create_task(decider.decide(permission, "protocol", (), ()))
    while not events:
        await asyncio.sleep(0)
    assert decider.pending.answer("ask", Decision("deny", by="person"))
    assert (await decision).answer == "deny"
