"""The dialog for requests: its steps, what must be seen before an answer, and small windows."""

import asyncio

import pytest
from tests.frontends.tui.scenes import Asking, ask
from tests.frontends.tui.tui_user import full_screen

from ostler.core.display import Display, DisplayDiff
from ostler.core.permission import Need, Permission, Question
from ostler.frontends.tui.widgets.scroll_rows import ScrollRows
from ostler.interaction import answer_keys
from ostler.testing.session_fixture import ASK_ALL

HUNK = "@@ -{0},2 +{0},2 @@\n def f{0}():\n-    return 1\n+    return {0}\n"
HUNKS = "--- a/x.py\n+++ b/x.py\n" + "".join(HUNK.format(number) for number in (1, 20, 40, 60))
LONG = "--- a/x.py\n+++ b/x.py\n@@ -1,60 +1,60 @@\n" + "".join(f"-old {n}\n+new {n}\n" for n in range(60))


@pytest.fixture
def quick_answers(monkeypatch):
    """Make the pauses of the answer keys short."""
    for name in ("TYPING_PAUSE_SECONDS", "REACTION_SECONDS", "ANSWER_PAUSE_SECONDS", "STEP_PAUSE_SECONDS"):
        monkeypatch.setattr(answer_keys, name, 0.01)


def edit(diff):
    parts = (DisplayDiff("x.py", diff, "updated", 4, 4),)
    return Asking("edit", Permission("edit x.py", (Need("edit", "x.py"),), Display("", parts)))


async def asked(user):
    await user.type("go")
    await user.wait_for("? edit x.py")
    await user.wait_until(lambda: user.app.screen.query_one("#answers").region.height)
    await user.pilot.pause()


async def press(user, key):
    """Press a key that answers, after a pause."""
    await user.wait_until(lambda: user.app.screen.keys._visible)
    await user.pilot.pause(0.02)
    await user.press(key)


@pytest.mark.req("PM-5", "TU-2")
@pytest.mark.parametrize("by", ["keys", "mouse"])
async def test_each_hunk_is_chosen_in_turn(open_session, quick_answers, monkeypatch, by):
    monkeypatch.setattr("ostler.frontends.tui.screens.request_screen.CLICK_DELAY_SECONDS", 0.0)
    tool = edit(HUNKS)
    session = await open_session([ask("edit")], [tool], ASK_ALL)
    async with full_screen(session, size=(100, 40)) as user:
        await asked(user)
        await press(user, "h")
        for number, key in enumerate("ynyn", 1):
            await user.wait_for(f"hunk {number} of 4")
            if by == "keys":
                await press(user, key)
                continue
            await user.pilot.pause(0.02)
            await user.pilot.click("#answers", offset=(8, "yn".index(key)))
        await user.wait_until(lambda: tool.runs)
    assert tool.runs[0]["hunks"] == [1, 3]


@pytest.mark.req("PM-5", "PM-11")
async def test_only_an_answer_that_allows_something_needs_all_to_be_seen(open_session, quick_answers):
    tool = edit(HUNKS.replace("40", "\n".join(["40", *(f" line {n}" for n in range(70))]), 1))
    session = await open_session([ask("edit")], [tool], ASK_ALL)
    async with full_screen(session, size=(100, 30)) as user:
        await asked(user)
        await press(user, "y")
        assert "scroll to the end" in user.dialog
        await press(user, "h")
        await user.wait_for("hunk 1 of 4")
        assert not tool.runs


@pytest.mark.req("PM-11")
async def test_text_keeps_the_letters_of_answers_that_cannot_be_given_yet(open_session):
    tool = edit(LONG)
    session = await open_session([ask("edit")], [tool], ASK_ALL)
    async with full_screen(session, size=(100, 30)) as user:
        await asked(user)
        await user.wait_until(lambda: user.app.screen.keys._visible)
        await user.press(*"yes as ever", "enter")
        user.app.chat.controller.interrupt()
        await user.wait_until(lambda: not user.dialog)
        await user.wait_until(lambda: user.app.chat.prompt.text == "yes as ever")
    assert not tool.runs


@pytest.mark.req("PM-5", "PM-11")
async def test_key_before_the_end_was_seen_is_no_answer_and_no_text(open_session, quick_answers):
    tool = edit(LONG)
    session = await open_session([ask("edit")], [tool], ASK_ALL)
    async with full_screen(session, size=(100, 30)) as user:
        await asked(user)
        await press(user, "y")
        assert "scroll to the end" in user.dialog
        await user.press("enter", "end")
        await press(user, "y")
        await user.wait_until(lambda: tool.runs)
        await user.wait_until(lambda: not user.dialog)
        assert user.app.chat.prompt.text == ""


@pytest.mark.req("TU-2")
@pytest.mark.parametrize("scroll", ["end", "wheel"])
async def test_long_request_has_most_of_a_low_window_until_its_end_was_seen(open_session, scroll):
    session = await open_session([ask("edit")], [edit(LONG)], ASK_ALL)
    async with full_screen(session, size=(50, 20)) as user:
        await asked(user)
        body = user.app.screen.query_one(ScrollRows)
        assert body.size.height >= 14
        assert "Deny" in user.dialog
        assert "Allow once" not in user.dialog
        assert "more rows" in user.dialog
        if scroll == "end":
            await user.press("end")
        else:
            for _ in range(50):
                body.scroll_rows(3)
        await user.wait_for("Allow once")
        await user.wait_until(lambda: not body.rows_below)
        answers = user.app.screen.query_one("#answers")
        assert answers.region.height == len(answers.lines)
        assert "more rows" not in user.dialog


@pytest.mark.req("PM-5", "TU-2")
async def test_escape_goes_one_step_back(open_session, quick_answers):
    tool = edit(HUNKS)
    session = await open_session([ask("edit")], [tool], ASK_ALL)
    async with full_screen(session, size=(100, 40)) as user:
        await asked(user)
        await press(user, "m")
        await user.wait_for("message to the agent:")
        await user.press(*"look", "escape")
        await user.wait_for("Allow once")
        await press(user, "h")
        await user.wait_for("hunk 1 of 4")
        await press(user, "n")
        await user.wait_for("hunk 2 of 4")
        await user.press("escape")
        await user.wait_for("hunk 1 of 4")
        assert "Esc goes back" in user.dialog
        await user.press("escape")
        await user.wait_for("Allow once")
        assert session.turn
        await user.press("escape")
        await user.wait_for("✗ cancelled")
        await user.wait_until(lambda: user.app.chat.prompt.text == "look")


@pytest.mark.req("TU-2")
async def test_text_of_an_answer_stays_when_another_request_arrives(open_session):
    async def two_questions(context, _):
        schema = {"type": "object", "properties": {"name": {"type": "string"}, "place": {"type": "string"}}}
        first = asyncio.ensure_future(context.ask(Question("one", "Who?", schema)))
        await second_may_come.wait()
        second = asyncio.ensure_future(context.ask(Question("two", "What?", schema)))
        await asyncio.gather(first, second)

    second_may_come = asyncio.Event()
    session = await open_session([two_questions], [], ASK_ALL)
    async with full_screen(session) as user:
        await user.type("go")
        await user.wait_for("Who?")
        await user.pilot.pause()
        await user.press(*"Ada")
        second_may_come.set()
        await user.wait_until(lambda: len(user.app.chat.controller.requests) == 2)
        await user.pilot.pause()
        assert user.app.screen.query_one("#answer-text").value == "Ada"
        session.turn.cancel()
        await user.wait_for("✗ cancelled")
