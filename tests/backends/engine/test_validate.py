"""The check before a turn with edits ends: fed back when it fails, bounded, and told when it could not run."""

import itertools

import pytest
from engine_play import Model, Said, script

from ostler.backends.engine.plugins.limits import TurnLimits
from ostler.backends.engine.plugins.validation import ValidationChecks, no_changed_files
from ostler.core.display import Display
from ostler.core.events import Delivered, MessageDone, Notice, Reminded, ToolFinished
from ostler.core.permission import Need, Permission, Rule
from ostler.core.prompt import Prompt, TextContent
from ostler.core.sessions import Steer
from ostler.core.tools import ToolResult
from ostler.policy.verdict import Policy, evaluate_permission
from ostler.testing.fake_tool import FakeTool

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


async def turn(
    harness, bash, *, lines=None, changing=None, find=lambda changed: ["make test"], news=no_changed_files, **how
):
    model = Model(script(*(lines or (Said("", ("edit", {})), Said("done")))))
    await harness.open(model, [changing or edit(), bash], checks=ValidationChecks(find, changed_files=news), **how)
    return await harness.turn("go")


def telling(*looks):
    """What each look at the workspace finds changed; nothing after the last."""
    left = list(looks)

    async def news():
        return left.pop(0) if left else []

    return news


async def test_a_failure_goes_back_and_the_turn_ends_once_it_passes(harness):
    bash = Answering("bash", ran(1, "one test failed"), ran(0))
    lines = (Said("", ("edit", {})), Said("done"), Said("", ("edit", {"again": True})), Said("mended"))
    ended = await turn(harness, bash, lines=lines)
    (told,) = harness.past(Reminded)
    assert "make test" in told.text and "one test failed" in told.text
    assert (ended.reason, len(bash.runs), harness.past(Notice)) == ("done", 2, [])


async def test_no_edit_no_check_and_no_second_one_without_another_edit(harness):
    bash = Answering("bash", ran(1))
    ended = await turn(harness, bash, changing=edit("unchanged"))
    assert (ended.reason, bash.runs) == ("done", [])


COMMAND = (Said("", ("bash", {"command": "sed -i s/a/b/ a.py"})), Said("done"))


@pytest.mark.parametrize(
    ("changed", "checked"),
    [(["a.py"], True), ([], False), (["src/__pycache__/a.pyc", "run.log", ".pytest_cache/x", "dist/a.js"], False)],
)
async def test_what_a_command_changed_is_checked_and_not_what_it_left_behind(harness, changed, checked):
    bash = Answering("bash", ran(0))
    await turn(harness, bash, lines=COMMAND, news=telling(changed))
    assert len(bash.runs) == 1 + checked


async def test_a_model_that_mends_by_commands_is_checked_again(harness):
    bash = Answering("bash", ran(0), ran(1, "one test failed"), ran(0), ran(0))
    again = Said("", ("bash", {"command": "git apply x"}))
    ended = await turn(
        harness, bash, lines=(*COMMAND, again, Said("mended")), news=telling(["a.py"], ["left.py"], ["a.py"])
    )
    assert (ended.reason, len(bash.runs), harness.past(Notice)) == ("done", 4, [])


async def test_edits_of_prose_after_a_failure_leave_it_failed(harness):
    def find(changed):
        return ["make test"] if "a.py" in changed else []

    lines = (Said("", ("edit", {})), Said("done"), Said("", ("bash", {"command": "x"})), Said("mended"))
    bash = Answering("bash", ran(1))
    await turn(harness, bash, lines=lines, find=find, news=telling([], ["README.md"]))
    assert "still fails" in harness.past(Notice)[-1].text


@pytest.mark.parametrize(
    "result", [ran(0, "Ran 0 tests in 0.000s\n\nOK"), ran(5, "no tests ran in 0.01s"), ran(0, "?   x [no test files]")]
)
async def test_a_check_without_tests_is_told_and_not_looped(harness, result):
    bash = Answering("bash", result)
    ended = await turn(harness, bash)
    assert (ended.reason, len(bash.runs), harness.past(Reminded)) == ("done", 1, [])
    assert "found no tests" in harness.past(Notice)[-1].text


@pytest.mark.req("EN-16")
async def test_words_that_arrive_while_the_check_runs_are_heard_in_this_turn(harness):
    class Slow(Answering):
        async def run(self, params, context):
            await harness.session.apply(Steer(Prompt("p", (TextContent("and b.py too"),))))
            return await super().run(params, context)

    lines = (Said("", ("edit", {})), Said("done"), Said("b.py too"))
    await turn(harness, Slow("bash", ran(0)), lines=lines)
    assert [event.prompt_id for event in harness.past(Delivered)] == ["p"]
    assert harness.past(MessageDone)[-1].message.text == "b.py too"


async def test_it_is_not_tried_for_ever(harness):
    bash = Answering("bash", ran(1))
    count = iter(range(100))
    model = Model(lambda request: Said("", ("edit", {"n": n})) if (n := next(count)) % 2 == 0 else Said(f"done {n}"))
    await harness.open(model, [edit(), bash], checks=ValidationChecks(lambda changed: ["make test"]))
    ended = await harness.turn("go")
    assert (ended.reason, len(bash.runs)) == ("done", 4)
    assert "still fails" in harness.past(Notice)[-1].text


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((Said("", ("edit", {})),), ["the turn ended before its edits were checked"]),
        (
            (Said("", ("edit", {})), Said("done"), Said("", ("look", {}))),
            ["the check still failed when the turn ended"],
        ),
        ((Said("", ("look", {})),), []),
    ],
)
async def test_a_turn_that_ends_at_a_limit_says_what_was_not_checked(harness, lines, told):
    steps = itertools.count()
    model = Model(lambda request: lines[min(next(steps), len(lines) - 1)])
    look = Answering("look", ToolResult("", "ok", "seen", Display()))
    limits = TurnLimits(steps=len(lines) + 1)
    await harness.open(
        model,
        [edit(), look, Answering("bash", ran(1))],
        checks=ValidationChecks(lambda c: ["make test"]),
        limits=limits,
    )
    assert (await harness.turn("go")).reason == "limit"
    assert [notice.text for notice in harness.past(Notice)] == told


@pytest.mark.parametrize("result", [ran(127, "make: not found"), ran(1, "No module named pytest")])
async def test_a_check_that_is_not_installed_is_told_and_not_repeated(harness, result):
    bash = Answering("bash", result)
    ended = await turn(harness, bash)
    assert (ended.reason, len(bash.runs), harness.past(Reminded)) == ("done", 1, [])
    assert "could not run" in harness.past(Notice)[-1].text


async def test_a_check_that_is_refused_is_told_at_the_end(harness):
    bash = Answering("bash", ran(0))
    ended = await turn(harness, bash, policy=DENIED)
    assert (ended.reason, bash.runs) == ("done", [])
    assert harness.past(ToolFinished)[-1].result.status == "denied"
    assert "could not run" in harness.past(Notice)[-1].text


@pytest.mark.parametrize(
    ("policy", "action"),
    [
        (Policy(allow_checks=True), "allow"),
        (Policy(), "ask"),
        (Policy(rules=DENIED.rules, allow_checks=True), "deny"),
        (Policy(restrictions=((Rule("bash", "*", "deny"),),), allow_checks=True), "deny"),
    ],
)
@pytest.mark.req("PM-2")
def test_trust_lets_the_check_pass_and_lifts_no_refusal(policy, action):
    permission = Permission("run make test", (Need("bash", "make test"),))
    assert evaluate_permission(permission, policy, origin="validation").action == action


@pytest.mark.parametrize("reason", ["timeout", "cancelled"])
@pytest.mark.parametrize("edits", [True, False])
async def test_a_turn_that_is_stopped_says_that_its_edits_are_unchecked(harness, reason, edits):
    class Stopping(Answering):
        async def run(self, params, context):
            harness.session.turn.cancel(reason)
            return await super().run(params, context)

    calls = [Said("", ("edit", {}))] if edits else []
    model = Model(script(*calls, Said("", ("look", {})), Said("never")))
    look = Stopping("look", ToolResult("", "ok", "seen"))
    await harness.open(
        model, [edit(), look, Answering("bash", ran(0))], checks=ValidationChecks(lambda changed: ["make test"])
    )
    ended = await harness.turn("go")
    assert ended.reason == reason
    told = [notice.text for notice in harness.past(Notice)]
    assert told == ["the turn ended before its edits were checked"] * edits
