"""Approval of selected hunks: only these are applied, by every tool that shows a diff."""

import asyncio

import pytest

from ostler.core.events import PermissionAsked, PermissionDecided, ToolCalled, ToolStarted
from ostler.core.permission import Decision, Rule
from ostler.policy.verdict import Policy
from ostler.session.access import FixedAccess
from ostler.testing.fake_tool import FakeTool


class ChangingAccess(FixedAccess):
    """Access by the last of some policies."""

    def __init__(self, policies):
        self._policies = policies

    def policy(self):
        return self._policies[-1]


ASK = Policy(rules=(Rule("*", "*", "ask", "test"), Rule("read", "*", "allow", "test")))
LINES = [f"line {n}" for n in range(1, 31)]
BEFORE = "".join(f"{line}\n" for line in LINES)
AFTER = BEFORE.replace("line 2\n", "two\n").replace("line 15\n", "fifteen\n").replace("line 29\n", "")
ONLY_SECOND = BEFORE.replace("line 15\n", "fifteen\n")
EDITS = [
    {"old": "line 2\n", "new": "two\n"},
    {"old": "line 15\n", "new": "fifteen\n"},
    {"old": "line 29\n", "new": ""},
]
HUNKS = (
    "@@ -1,3 +1,3 @@\n line 1\n-line 2\n+two\n line 3\n"
    "@@ -14,3 +14,3 @@\n line 14\n-line 15\n+fifteen\n line 16\n"
    "@@ -28,3 +28,2 @@\n line 28\n-line 29\n line 30\n"
)
PATCH = f"--- a/f.txt\n+++ b/f.txt\n{HUNKS}"
CALLS = {
    "write": ("write", {"path": "f.txt", "content": AFTER}),
    "edit": ("edit", {"path": "f.txt", "edits": EDITS}),
    "patch": ("patch", {"patch": PATCH}),
    "multi-edit alias": (
        "MultiEdit",
        {"file_path": "f.txt", "edits": [{"old_string": edit["old"], "new_string": edit["new"]} for edit in EDITS]},
    ),
}


async def call_and_answer(harness, tool, arguments, decision, meanwhile=lambda: None):
    """Run a call, run `meanwhile` when approval is requested, then answer; return the result."""
    subscription = harness.session.subscribe()

    async def answer():
        async for envelope in subscription:
            if isinstance(envelope.event, PermissionAsked):
                meanwhile()
                harness.session.answer(envelope.event.ask_id, decision)

    answer_task = asyncio.create_task(answer())
    try:
        return await harness.call(tool, arguments)
    finally:
        answer_task.cancel()


def allow_hunks(*hunks, **more):
    return Decision("allow", by="person", hunks=hunks, **more)


@pytest.fixture
async def harness(make_harness):
    harness = make_harness(policy=ASK)
    (harness.root / "f.txt").write_text(BEFORE)
    await harness.ok("read", path="f.txt")
    return harness


@pytest.mark.req("PM-5")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.invariant("P9")
async def test_only_selected_hunks_are_applied_and_reported_to_the_model(harness, name):
    tool, arguments = CALLS[name]
    result = await call_and_answer(harness, tool, arguments, allow_hunks(2))
    assert result.status == "ok", result.for_model
    assert (harness.root / "f.txt").read_text() == ONLY_SECOND
    applied, _, omitted = result.for_model.partition("Not applied")
    assert "selected 1 of 3 hunks" in applied
    assert "+fifteen" in applied
    assert "+two" not in applied
    assert "+two" in omitted
    assert "-line 29" in omitted
    assert "fifteen" not in omitted
    assert [decided.decision.hunks for decided in harness.events(PermissionDecided)] == [(2,)]
    assert harness.events(ToolCalled)[-1].call.arguments["hunks"] == [2]
    assert (await harness.ok("read", path="f.txt")).status == "ok"


@pytest.mark.req("PM-5")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("newline", ["\r\n", "\n"])
async def test_encoding_and_line_endings_of_a_file_are_kept(make_harness, name, newline):
    harness = make_harness(policy=ASK)
    before = BEFORE.removesuffix("\n").replace("\n", newline).encode("utf-8-sig")
    (harness.root / "f.txt").write_bytes(before)
    await harness.ok("read", path="f.txt")
    tool, arguments = CALLS[name]
    if name == "write":
        arguments = {"path": "f.txt", "content": AFTER.removesuffix("\n").replace("\n", newline)}
    result = await call_and_answer(harness, tool, arguments, allow_hunks(2))
    assert result.status == "ok", result.for_model
    assert (harness.root / "f.txt").read_bytes() == before.replace(b"line 15", b"fifteen")


@pytest.mark.req("PM-5")
async def test_hunks_are_numbered_across_files(harness):
    (harness.root / "gone.txt").write_text("gone\n")
    (harness.root / "old.txt").write_text("same\n")
    patch = (
        f"{PATCH}--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
        "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n"
        "diff --git a/old.txt b/moved.txt\nsimilarity index 100%\nrename from old.txt\nrename to moved.txt\n"
    )
    result = await call_and_answer(harness, "patch", {"patch": patch}, allow_hunks(1, 5, 6))
    assert result.status == "ok", result.for_model
    assert (harness.root / "f.txt").read_text() == BEFORE.replace("line 2\n", "two\n")
    assert (harness.root / "gone.txt").exists()
    assert (harness.root / "new.txt").read_text() == "new\n"
    assert (harness.root / "moved.txt").read_text() == "same\n"
    assert "3 of 6 hunks" in result.for_model
    assert "gone.txt (deleted)" in result.for_model.partition("Not applied")[2]


@pytest.mark.req("PM-5", "FS-6")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("other", [BEFORE.replace("line 9\n", "nine\n"), f"more\n{BEFORE}", BEFORE.replace("15", "51")])
async def test_concurrent_changes_are_not_overwritten(harness, name, other):
    tool, arguments = CALLS[name]
    result = await call_and_answer(
        harness, tool, arguments, allow_hunks(2), lambda: (harness.root / "f.txt").write_text(other)
    )
    assert (result.status, result.fault.code) == ("failed", "changed_on_disk")
    assert (harness.root / "f.txt").read_text() == other
    assert not [event for event in harness.events(ToolStarted) if event.tool != "read"]


@pytest.mark.req("PM-5")
async def test_empty_or_unknown_selection_changes_nothing(harness):
    for hunks in ((), (9,), (0,), (-1,)):
        result = await call_and_answer(harness, *CALLS["edit"], allow_hunks(*hunks))
        assert result.status == "failed", hunks
    assert (harness.root / "f.txt").read_text() == BEFORE


@pytest.mark.req("PM-5", "PM-6")
async def test_partial_approval_applies_only_once(harness):
    await call_and_answer(harness, *CALLS["edit"], allow_hunks(2, scope="project"))
    assert harness.session.standing_rules() == ()
    assert harness.events(PermissionDecided)[-1].decision.scope == "once"


@pytest.mark.req("PM-5")
async def test_tool_without_hunks_cannot_be_approved_in_part(make_harness):
    tool = FakeTool("odd")
    harness = make_harness([tool], policy=ASK)
    result = await call_and_answer(harness, "odd", {}, allow_hunks(1))
    assert result.status == "failed"
    assert not tool.runs
    assert not harness.events(PermissionAsked)[0].permission.by_hunk


@pytest.mark.req("PM-2")
@pytest.mark.invariant("P8")
async def test_rules_that_became_stricter_during_the_request_apply(make_harness):
    policies = [ASK]
    harness = make_harness(policy=ChangingAccess(policies))
    (harness.root / "f.txt").write_text(BEFORE)
    strict = Policy(rules=(Rule("*", "*", "deny", "read-only now"),))
    for decision in (allow_hunks(2), Decision("allow", by="person")):
        policies[:] = [ASK]
        result = await call_and_answer(harness, *CALLS["edit"], decision, lambda: policies.append(strict))
        assert result.status == "denied"
        assert harness.events(PermissionDecided)[-1].decision.answer == "deny"
    assert (harness.root / "f.txt").read_text() == BEFORE


@pytest.mark.req("PM-5")
async def test_interceptor_sees_the_selected_hunks_before_they_are_applied(make_harness):
    harness = make_harness(policy=ASK)
    (harness.root / "f.txt").write_text(BEFORE)
    seen_hunks = []

    class RejectingInterceptor:
        async def before(self, call, context):
            seen_hunks.append(call.arguments.get("hunks"))
            return "not this part" if call.arguments.get("hunks") else ""

        async def after(self, call, result, context):
            raise AssertionError("it was denied")

    harness.session._tools._interceptor = RejectingInterceptor()
    result = await call_and_answer(harness, *CALLS["edit"], allow_hunks(2))
    assert (result.status, seen_hunks) == ("denied", [None, [2]])
    assert (harness.root / "f.txt").read_text() == BEFORE


@pytest.mark.req("PM-5")
async def test_lf_content_written_to_a_crlf_file_shows_only_real_changes(harness):
    crlf = harness.file("c.txt", BEFORE.replace("\n", "\r\n"))
    await harness.ok("read", path="c.txt")
    await call_and_answer(harness, "write", {"path": "c.txt", "content": AFTER}, allow_hunks(2))
    (request,) = harness.events(PermissionAsked)
    (shown,) = request.permission.preview.blocks
    assert (shown.additions, shown.deletions) == (2, 3)
    assert crlf.read_bytes() == ONLY_SECOND.replace("\n", "\r\n").encode()
