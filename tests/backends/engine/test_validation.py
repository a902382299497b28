"""The check after edits: failures go back to the model a limited number of times; skipped checks are reported."""

import itertools

import pytest
from engine_harness import Model, Reply, script

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


class ScriptedTool(FakeTool):
    """A tool with prepared results; the last one is repeated."""

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
    return ScriptedTool("edit", ToolResult("", "ok", "done", Display(), {"path": path, "operation": operation}))


async def turn(
    harness,
    bash,
    *,
    lines=None,
    changing=None,
    find=lambda changed: ["make test"],
    changed_files=no_changed_files,
    **options,
):
    model = Model(script(*(lines or (Reply("", ("edit", {})), Reply("done")))))
    await harness.open(
        model, [changing or edit(), bash], checks=ValidationChecks(find, changed_files=changed_files), **options
    )
    return await harness.turn("go")


def scripted_changes(*changes):
    """Return the changed files of each call in order, then nothing."""
    remaining = list(changes)

    async def changed_files():
        return remaining.pop(0) if remaining else []

    return changed_files


async def test_failure_is_returned_until_the_check_passes(harness):
    bash = ScriptedTool("bash", ran(1, "one test failed"), ran(0))
    replies = (Reply("", ("edit", {})), Reply("done"), Reply("", ("edit", {"again": True})), Reply("fixed"))
    ended = await turn(harness, bash, lines=replies)
    (reminder,) = harness.events_of(Reminded)
    assert "make test" in reminder.text and "one test failed" in reminder.text
    assert (ended.reason, len(bash.runs), harness.events_of(Notice)) == ("done", 2, [])


async def test_no_check_without_edits(harness):
    bash = ScriptedTool("bash", ran(1))
    ended = await turn(harness, bash, changing=edit("unchanged"))
    assert (ended.reason, bash.runs) == ("done", [])


COMMAND = (Reply("", ("bash", {"command": "sed -i s/a/b/ a.py"})), Reply("done"))


@pytest.mark.parametrize(
    ("changed", "checked"),
    [(["a.py"], True), ([], False), (["src/__pycache__/a.pyc", "run.log", ".pytest_cache/x", "dist/a.js"], False)],
)
async def test_files_changed_by_commands_are_checked_except_build_output(harness, changed, checked):
    bash = ScriptedTool("bash", ran(0))
    await turn(harness, bash, lines=COMMAND, changed_files=scripted_changes(changed))
    assert len(bash.runs) == 1 + checked


async def test_repair_by_commands_is_checked_again(harness):
    bash = ScriptedTool("bash", ran(0), ran(1, "one test failed"), ran(0), ran(0))
    repair = Reply("", ("bash", {"command": "git apply x"}))
    ended = await turn(
        harness,
        bash,
        lines=(*COMMAND, repair, Reply("fixed")),
        changed_files=scripted_changes(["a.py"], ["left.py"], ["a.py"]),
    )
    assert (ended.reason, len(bash.runs), harness.events_of(Notice)) == ("done", 4, [])


async def test_text_edits_after_a_failure_do_not_fix_it(harness):
    def find(changed):
        return ["make test"] if "a.py" in changed else []

    lines = (Reply("", ("edit", {})), Reply("done"), Reply("", ("bash", {"command": "x"})), Reply("fixed"))
    bash = ScriptedTool("bash", ran(1))
    ended = await turn(harness, bash, lines=lines, find=find, changed_files=scripted_changes([], ["README.md"]))
    assert (ended.reason, ended.fault.code) == ("failed", "check_failed")


@pytest.mark.parametrize(
    "result", [ran(0, "Ran 0 tests in 0.000s\n\nOK"), ran(5, "no tests ran in 0.01s"), ran(0, "?   x [no test files]")]
)
async def test_check_without_tests_is_reported_once(harness, result):
    bash = ScriptedTool("bash", result)
    ended = await turn(harness, bash)
    assert (ended.reason, len(bash.runs), harness.events_of(Reminded)) == ("done", 1, [])
    assert "found no tests" in harness.events_of(Notice)[-1].text


@pytest.mark.req("EN-16")
async def test_steering_during_the_check_is_delivered_in_this_turn(harness):
    class Slow(ScriptedTool):
        async def run(self, params, context):
            await harness.session.apply(Steer(Prompt("p", (TextContent("and b.py too"),))))
            return await super().run(params, context)

    lines = (Reply("", ("edit", {})), Reply("done"), Reply("b.py too"))
    await turn(harness, Slow("bash", ran(0)), lines=lines)
    assert [event.prompt_id for event in harness.events_of(Delivered)] == ["p"]
    assert harness.events_of(MessageDone)[-1].message.text == "b.py too"


async def test_repair_attempts_are_limited(harness):
    bash = ScriptedTool("bash", ran(1))
    count = iter(range(100))
    model = Model(lambda request: Reply("", ("edit", {"n": n})) if (n := next(count)) % 2 == 0 else Reply(f"done {n}"))
    await harness.open(model, [edit(), bash], checks=ValidationChecks(lambda changed: ["make test"]))
    ended = await harness.turn("go")
    assert (ended.reason, ended.fault.code, len(bash.runs)) == ("failed", "check_failed", 4)
    assert "still fails after 3 repair attempts" in ended.fault.message


@pytest.mark.parametrize(
    ("replies", "messages"),
    [
        ((Reply("", ("edit", {})),), ["the turn ended before its edits were checked"]),
        (
            (Reply("", ("edit", {})), Reply("done"), Reply("", ("look", {}))),
            ["the check still failed when the turn ended"],
        ),
        ((Reply("", ("look", {})),), []),
    ],
)
async def test_limit_reports_unchecked_edits(harness, replies, messages):
    steps = itertools.count()
    model = Model(lambda request: replies[min(next(steps), len(replies) - 1)])
    look = ScriptedTool("look", ToolResult("", "ok", "seen", Display()))
    limits = TurnLimits(steps=len(replies) + 1)
    await harness.open(
        model,
        [edit(), look, ScriptedTool("bash", ran(1))],
        checks=ValidationChecks(lambda c: ["make test"]),
        limits=limits,
    )
    assert (await harness.turn("go")).reason == "limit"
    assert [notice.text for notice in harness.events_of(Notice)] == messages


@pytest.mark.parametrize("result", [ran(127, "make: not found"), ran(1, "No module named pytest")])
async def test_missing_check_program_is_reported_once(harness, result):
    bash = ScriptedTool("bash", result)
    ended = await turn(harness, bash)
    assert (ended.reason, len(bash.runs), harness.events_of(Reminded)) == ("done", 1, [])
    assert "could not run" in harness.events_of(Notice)[-1].text


async def test_denied_check_is_reported(harness):
    bash = ScriptedTool("bash", ran(0))
    ended = await turn(harness, bash, policy=DENIED)
    assert (ended.reason, bash.runs) == ("done", [])
    assert harness.events_of(ToolFinished)[-1].result.status == "denied"
    assert "could not run" in harness.events_of(Notice)[-1].text


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
def test_trust_allows_checks_but_overrides_no_denial(policy, action):
    permission = Permission("run make test", (Need("bash", "make test"),))
    assert evaluate_permission(permission, policy, origin="validation").action == action


@pytest.mark.parametrize("reason", ["timeout", "cancelled"])
@pytest.mark.parametrize("edits", [True, False])
async def test_stopped_turn_reports_unchecked_edits(harness, reason, edits):
    class Stopping(ScriptedTool):
        async def run(self, params, context):
            harness.session.turn.cancel(reason)
            return await super().run(params, context)

    calls = [Reply("", ("edit", {}))] if edits else []
    model = Model(script(*calls, Reply("", ("look", {})), Reply("never")))
    look = Stopping("look", ToolResult("", "ok", "seen"))
    await harness.open(
        model, [edit(), look, ScriptedTool("bash", ran(0))], checks=ValidationChecks(lambda changed: ["make test"])
    )
    ended = await harness.turn("go")
    assert ended.reason == reason
    messages = [notice.text for notice in harness.events_of(Notice)]
    assert messages == ["the turn ended before its edits were checked"] * edits
