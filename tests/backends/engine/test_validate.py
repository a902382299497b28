"""The check before a turn with edits ends: fed back when it fails, bounded, and told when it could not run."""

import pytest
from engine_play import Model, Said, script

from ostler.backends.engine.guests.validate import Checks
from ostler.policy.verdict import Policy, verdict
from ostler.testing.fake_tool import FakeTool
from ostler.vocabulary.display import Display
from ostler.vocabulary.events import Notice, Reminded, ToolFinished
from ostler.vocabulary.permission import Need, Permission, Rule
from ostler.vocabulary.tools import ToolResult

pytestmark = pytest.mark.req("EN-6")
DENIED = Policy(rules=(Rule("*", "*", "allow"), Rule("bash", "*", "deny", "mine")))


class Answering(FakeTool):
    """A tool whose results are written down beforehand; the last one again and again."""

    def __init__(self, name, *results):
        super().__init__(name)
        self._results = list(results)

    async def run(self, params, context):
        self.runs.append(params)
        return self._results.pop(0) if len(self._results) > 1 else self._results[0]


def ran(code, output=""):
    status = "ok" if code == 0 else "failed"
    return ToolResult("", status, output or f"[exit {code}]", Display(), {"exit_code": code})


def edit(operation="updated", path="a.py"):
    return Answering("edit", ToolResult("", "ok", "done", Display(), {"path": path, "operation": operation}))


async def turn(stage, bash, *, lines=None, changing=None, find=lambda changed: ["make test"], **how):
    model = Model(script(*(lines or (Said("", ("edit", {})), Said("done")))))
    await stage.open(model, [changing or edit(), bash], checks=Checks(find), **how)
    return await stage.turn("go")


async def test_a_failure_goes_back_and_the_turn_ends_once_it_passes(stage):
    bash = Answering("bash", ran(1, "one test failed"), ran(0))
    lines = (Said("", ("edit", {})), Said("done"), Said("", ("edit", {"again": True})), Said("mended"))
    ended = await turn(stage, bash, lines=lines)
    (told,) = stage.past(Reminded)
    assert "make test" in told.text and "one test failed" in told.text
    assert (ended.reason, len(bash.runs), stage.past(Notice)) == ("done", 2, [])


async def test_no_edit_no_check_and_no_second_one_without_another_edit(stage):
    bash = Answering("bash", ran(1))
    ended = await turn(stage, bash, changing=edit("unchanged"))
    assert (ended.reason, bash.runs) == ("done", [])


async def test_it_is_not_tried_for_ever(stage):
    bash = Answering("bash", ran(1))
    count = iter(range(100))
    model = Model(lambda request: Said("", ("edit", {"n": n})) if (n := next(count)) % 2 == 0 else Said(f"done {n}"))
    await stage.open(model, [edit(), bash], checks=Checks(lambda changed: ["make test"]))
    ended = await stage.turn("go")
    assert (ended.reason, len(bash.runs)) == ("done", 4)
    assert "still fails" in stage.past(Notice)[-1].text


@pytest.mark.parametrize("result", [ran(127, "make: not found"), ran(1, "No module named pytest")])
async def test_a_check_that_is_not_installed_is_told_and_not_repeated(stage, result):
    bash = Answering("bash", result)
    ended = await turn(stage, bash)
    assert (ended.reason, len(bash.runs), stage.past(Reminded)) == ("done", 1, [])
    assert "could not run" in stage.past(Notice)[-1].text


async def test_a_check_that_is_refused_is_told_at_the_end(stage):
    bash = Answering("bash", ran(0))
    ended = await turn(stage, bash, policy=DENIED)
    assert (ended.reason, bash.runs) == ("done", [])
    assert stage.past(ToolFinished)[-1].result.status == "denied"
    assert "could not run" in stage.past(Notice)[-1].text


@pytest.mark.parametrize(
    ("policy", "action"),
    [
        (Policy(checks_pass=True), "allow"),
        (Policy(), "ask"),
        (Policy(rules=DENIED.rules, checks_pass=True), "deny"),
        (Policy(narrow=((Rule("bash", "*", "deny"),),), checks_pass=True), "deny"),
    ],
)
@pytest.mark.req("PM-2")
def test_trust_lets_the_check_pass_and_lifts_no_refusal(policy, action):
    permission = Permission("run make test", (Need("bash", "make test"),))
    assert verdict(permission, policy, origin="validation").action == action
