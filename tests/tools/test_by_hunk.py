"""A change of which only some hunks are allowed: just these are made, by every tool that shows a diff."""

import asyncio

import pytest

from ostler.core.events import PermissionAsked, PermissionDecided, ToolCalled, ToolStarted
from ostler.core.permission import Decision, Rule
from ostler.policy.verdict import Policy
from ostler.testing.fake_tool import FakeTool

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
    "multi-edit by another name": (
        "MultiEdit",
        {"file_path": "f.txt", "edits": [{"old_string": one["old"], "new_string": one["new"]} for one in EDITS]},
    ),
}


async def answered(room, tool, arguments, decision, meanwhile=lambda: None):
    """The result of a call whose ask is answered so, after what happened meanwhile."""
    reading = room.session.subscribe()

    async def answer():
        async for envelope in reading:
            if isinstance(envelope.event, PermissionAsked):
                meanwhile()
                room.session.answer(envelope.event.ask_id, decision)

    answering = asyncio.create_task(answer())
    try:
        return await room.call(tool, arguments)
    finally:
        answering.cancel()


def taking(*hunks, **more):
    return Decision("allow", by="person", hunks=hunks, **more)


@pytest.fixture
async def room(rooms):
    made = rooms(policy=ASK)
    (made.root / "f.txt").write_text(BEFORE)
    await made.ok("read", path="f.txt")
    return made


@pytest.mark.req("PM-5")
@pytest.mark.parametrize("name", CALLS)
async def test_only_the_hunks_that_were_taken_are_made_and_the_model_is_told_which(room, name):
    tool, arguments = CALLS[name]
    result = await answered(room, tool, arguments, taking(2))
    assert result.status == "ok", result.for_model
    assert (room.root / "f.txt").read_text() == ONLY_SECOND
    took, _, left = result.for_model.partition("Not applied")
    assert "selected 1 of 3 hunks" in took
    assert "+fifteen" in took
    assert "+two" not in took
    assert "+two" in left
    assert "-line 29" in left
    assert "fifteen" not in left
    assert [decided.decision.hunks for decided in room.events(PermissionDecided)] == [(2,)]
    assert room.events(ToolCalled)[-1].call.arguments["hunks"] == [2]
    assert (await room.ok("read", path="f.txt")).status == "ok"


@pytest.mark.req("PM-5")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("newline", ["\r\n", "\n"])
async def test_the_form_of_a_file_stays_as_it_is(rooms, name, newline):
    room = rooms(policy=ASK)
    before = BEFORE.removesuffix("\n").replace("\n", newline).encode("utf-8-sig")
    (room.root / "f.txt").write_bytes(before)
    await room.ok("read", path="f.txt")
    tool, arguments = CALLS[name]
    if name == "write":
        arguments = {"path": "f.txt", "content": AFTER.removesuffix("\n").replace("\n", newline)}
    result = await answered(room, tool, arguments, taking(2))
    assert result.status == "ok", result.for_model
    assert (room.root / "f.txt").read_bytes() == before.replace(b"line 15", b"fifteen")


@pytest.mark.req("PM-5")
async def test_hunks_of_several_files_are_counted_through(room):
    (room.root / "gone.txt").write_text("gone\n")
    (room.root / "old.txt").write_text("same\n")
    patch = (
        f"{PATCH}--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
        "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n"
        "diff --git a/old.txt b/moved.txt\nsimilarity index 100%\nrename from old.txt\nrename to moved.txt\n"
    )
    result = await answered(room, "patch", {"patch": patch}, taking(1, 5, 6))
    assert result.status == "ok", result.for_model
    assert (room.root / "f.txt").read_text() == BEFORE.replace("line 2\n", "two\n")
    assert (room.root / "gone.txt").exists()
    assert (room.root / "new.txt").read_text() == "new\n"
    assert (room.root / "moved.txt").read_text() == "same\n"
    assert "3 of 6 hunks" in result.for_model
    assert "gone.txt (deleted)" in result.for_model.partition("Not applied")[2]


@pytest.mark.req("PM-5", "FS-6")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("other", [BEFORE.replace("line 9\n", "nine\n"), f"more\n{BEFORE}", BEFORE.replace("15", "51")])
async def test_what_changed_meanwhile_is_not_written_over(room, name, other):
    tool, arguments = CALLS[name]
    result = await answered(room, tool, arguments, taking(2), lambda: (room.root / "f.txt").write_text(other))
    assert (result.status, result.fault.code) == ("failed", "changed_on_disk")
    assert (room.root / "f.txt").read_text() == other
    assert not [event for event in room.events(ToolStarted) if event.tool != "read"]


@pytest.mark.req("PM-5")
async def test_no_hunk_or_none_of_the_change_does_nothing(room):
    for hunks in ((), (9,), (0,), (-1,)):
        result = await answered(room, *CALLS["edit"], taking(*hunks))
        assert result.status == "failed", hunks
    assert (room.root / "f.txt").read_text() == BEFORE


@pytest.mark.req("PM-5", "PM-6")
async def test_a_part_is_allowed_only_this_once(room):
    await answered(room, *CALLS["edit"], taking(2, scope="project"))
    assert room.session.standing_rules() == ()
    assert room.events(PermissionDecided)[-1].decision.scope == "once"


@pytest.mark.req("PM-5")
async def test_what_shows_no_hunks_is_not_done_in_part(rooms):
    tool = FakeTool("odd")
    room = rooms([tool], policy=ASK)
    result = await answered(room, "odd", {}, taking(1))
    assert result.status == "failed"
    assert not tool.runs
    assert not room.events(PermissionAsked)[0].permission.by_hunk


@pytest.mark.req("PM-2")
async def test_rules_that_became_stricter_while_it_was_asked_hold(rooms):
    policies = [ASK]
    room = rooms(policy=lambda: policies[-1])
    (room.root / "f.txt").write_text(BEFORE)
    strict = Policy(rules=(Rule("*", "*", "deny", "now it is a plan"),))
    for decision in (taking(2), Decision("allow", by="person")):
        policies[:] = [ASK]
        result = await answered(room, *CALLS["edit"], decision, lambda: policies.append(strict))
        assert result.status == "denied"
        assert room.events(PermissionDecided)[-1].decision.answer == "deny"
    assert (room.root / "f.txt").read_text() == BEFORE


@pytest.mark.req("PM-5")
async def test_what_watches_calls_sees_the_part_before_it_is_made(rooms):
    room = rooms(policy=ASK)
    (room.root / "f.txt").write_text(BEFORE)
    seen = []

    class Watching:
        async def before(self, call, context):
            seen.append(call.arguments.get("hunks"))
            return "not this part" if call.arguments.get("hunks") else ""

        async def after(self, call, result, context):
            raise AssertionError("it was refused")

    room.session._tools._interceptor = Watching()
    result = await answered(room, *CALLS["edit"], taking(2))
    assert (result.status, seen) == ("denied", [None, [2]])
    assert (room.root / "f.txt").read_text() == BEFORE


@pytest.mark.req("PM-5")
async def test_line_feeds_written_over_a_file_of_other_line_ends_show_only_what_changes(room):
    crlf = room.file("c.txt", BEFORE.replace("\n", "\r\n"))
    await room.ok("read", path="c.txt")
    await answered(room, "write", {"path": "c.txt", "content": AFTER}, taking(2))
    (asked,) = room.events(PermissionAsked)
    (shown,) = asked.permission.preview.blocks
    assert (shown.additions, shown.deletions) == (2, 3)
    assert crlf.read_bytes() == ONLY_SECOND.replace("\n", "\r\n").encode()
