"""Prompts, streamed answers, approvals and keys of the full-screen client."""

import asyncio

import pytest
from tests.fake_services import FakeServices
from tests.frontends.tui.tui_user import call, full_screen, say

from ostler.core.events import Notice, TodosChanged
from ostler.core.permission import Decision
from ostler.core.sessions import Revert
from ostler.core.tools import Todo
from ostler.frontends.tui.screens.choice_screen import ChoiceScreen
from ostler.frontends.tui.status import panel_sections, status_cards
from ostler.frontends.tui.transcript.view import TranscriptView
from ostler.interaction import answer_keys, info_commands
from ostler.interaction.services import NamedItem
from ostler.journal.memory_journal import MemoryJournal
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ASK_ALL


@pytest.fixture
def quick_answers(monkeypatch):
    """Make the pauses of the answer keys short."""
    for name in ("TYPING_PAUSE_SECONDS", "REACTION_SECONDS", "ANSWER_PAUSE_SECONDS"):
        monkeypatch.setattr(answer_keys, name, 0.01)


@pytest.mark.req("TU-1")
async def test_prompt_is_sent_and_the_answer_is_shown(open_session):
    session = await open_session([say("Hello **there**.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")])
    async with full_screen(session) as user:
        await user.type("go")
        shown = await user.wait_for("1 │ 2")
    assert shown.index("> go") < shown.index("● Hello there.") < shown.index("1 │ 2")


@pytest.mark.req("TU-2", "PM-5", "PM-9")
async def test_key_answers_an_approval_request(open_session, quick_answers):
    tool = FakeTool("probe")
    session = await open_session([call("probe")], [tool], ASK_ALL)
    async with full_screen(session) as user:
        await user.type("go")
        dialog = await user.wait_for("Allow once")
        assert "? use probe" in dialog
        await asyncio.sleep(0.05)
        await user.press("y")
        await user.wait_for("Finished.")
        assert not user.dialog
    assert len(tool.runs) == 1


@pytest.mark.req("PM-11")
async def test_pending_key_is_shown_and_enter_confirms_it(open_session):
    tool = FakeTool("probe")
    session = await open_session([call("probe")], [tool], ASK_ALL)
    async with full_screen(session) as user:
        await user.type("go")
        await user.wait_for("Allow once")
        await user.press("y")
        await user.wait_for("y: Allow once")
        assert not tool.runs
        await user.press("enter")
        await user.wait_for("Finished.")
    assert len(tool.runs) == 1


@pytest.mark.req("PM-11")
async def test_held_key_does_not_answer_the_next_request(open_session):
    first, second = FakeTool("first"), FakeTool("second")
    session = await open_session([call("first", "second")], [first, second], ASK_ALL)
    async with full_screen(session) as user:
        await user.type("go")
        await user.wait_for("? use first")
        for _ in range(20):
            await user.press("y")
        assert not second.runs
        session.turn.cancel()
        await user.wait_for("✗ cancelled")


@pytest.mark.req("TU-2")
async def test_request_answered_elsewhere_closes_the_dialog(open_session):
    session = await open_session([call("probe")], [FakeTool("probe")], ASK_ALL)
    async with full_screen(session) as user:
        await user.type("go")
        await user.wait_for("Allow once")
        assert session.answer(next(iter(session.state.asks)), Decision("allow", by="person"))
        await user.wait_for("Finished.")
        await user.wait_until(lambda: not user.dialog)


@pytest.mark.req("PM-5")
async def test_denial_with_a_message_reaches_the_agent(open_session):
    session = await open_session([call("probe")], [FakeTool("probe")], ASK_ALL)
    async with full_screen(session) as user:
        await user.type("go")
        await user.wait_for("Allow once")
        user.app.chat.controller.answer("m")
        await user.wait_until(lambda: user.app.screen.query_one("#answer-text").display)
        await user.pilot.pause()
        await user.press(*"other", "enter")
        shown = await user.wait_for("Finished.")
    assert "other" in shown


@pytest.mark.req("TU-4")
async def test_new_line_key_and_enter(open_session):
    session = await open_session([say("Done.")])
    async with full_screen(session) as user:
        await user.press("a", "ctrl+j", "b", "enter")
        shown = await user.wait_for("Done.")
    assert "> a\n  b" in shown


@pytest.mark.req("TU-4")
async def test_slash_completion_is_offered_and_accepted(open_session):
    async with full_screen(await open_session()) as user:
        await user.press("/", "h", "e")
        await user.wait_until(lambda: user.app.chat.menu.is_open)
        await user.press("tab")
        await user.wait_until(lambda: user.app.chat.prompt.text.startswith("/help"))


@pytest.mark.req("TU-3", "CL-7")
async def test_theme_is_switched_by_command_and_remembered(open_session):
    remembered = []
    async with full_screen(await open_session(), remember_theme=remembered.append) as user:
        await user.type("/theme commodore-c64")
        await user.wait_until(lambda: user.app.theme == "commodore-c64")
    assert remembered == ["commodore-c64"]


@pytest.mark.req("TU-1")
async def test_palette_help_and_panel_open_with_their_keys(open_session):
    async with full_screen(await open_session()) as user:
        await user.press("f1")
        await user.wait_for("COMMANDS")
        await user.press("escape")
        await user.press("f2")
        await user.wait_until(lambda: type(user.app.screen).__name__ == "ChoiceScreen")
        await user.press("escape")
        await user.press("f4")
        await user.wait_until(lambda: any("EVENTS" in line for line in user.app.chat.query_one("#panel").lines))


@pytest.mark.req("TU-1")
@pytest.mark.invariant("R5")
async def test_text_of_the_model_is_never_markup(open_session):
    session = await open_session([say("[@click=app.quit]x[/] [bold]y[/bold] \x1b]52;c;ZXZpbA==\x07z")])
    async with full_screen(session) as user:
        await user.type("go")
        shown = await user.wait_for("[@click=app.quit]x[/] [bold]y[/bold]")
    assert not set(shown) & {"\x1b", "\x07"}


@pytest.mark.req("TU-10")
async def test_resize_keeps_the_line_being_read(open_session):
    text = "\n\n".join(f"Paragraph {n}: " + "word " * 60 for n in range(60))
    session = await open_session([say(text)])
    async with full_screen(session) as user:
        await user.type("go")
        await user.wait_for("Paragraph 59")
        for _ in range(6):
            await user.press("pageup")
        view = user.app.chat.view
        first = user.visible_text.split("\n")[0].strip() or user.visible_text.split("\n")[1].strip()
        start = " ".join(first.split()[:2])
        await user.pilot.resize_terminal(70, 30)
        await user.pilot.pause()
        assert start in "\n".join(user.visible_text.split("\n")[:3])
        assert not view.viewport.following


@pytest.mark.req("TU-2", "PM-5")
@pytest.mark.parametrize("size", [(120, 36), (80, 24), (50, 20), (40, 14)])
async def test_every_answer_is_visible_in_a_window_of_any_size(open_session, size):
    turn = call("probe", subject="a subject with many words " * 8)
    session = await open_session([turn], [FakeTool("probe")], ASK_ALL)
    async with full_screen(session, size=size) as user:
        await user.type("go")
        await user.wait_for("Deny")
        await user.pilot.pause()
        await user.press("end")  # in a low window, an answer that allows it is shown after all was seen
        await user.wait_for("Allow once")
        await user.pilot.pause()
        screen = user.app.screen
        answers, feedback = screen.query_one("#answers"), screen.query_one("#feedback")
        assert answers.region.height == len(answers.lines) > 0
        assert answers.region.bottom <= feedback.region.y < feedback.region.bottom <= size[1]
        assert screen.query_one("#request").region.y >= 1
        labels = " ".join("".join(answers.lines).split())
        for _, label in next(iter(user.app.chat.controller.requests._forms.values())).menu().answers:
            assert "".join(label.split())[:30] in "".join(labels.split())


@pytest.mark.req("TU-1")
async def test_end_of_the_transcript_stays_visible_above_the_dialog(open_session):
    session = await open_session([say("Last words."), call("probe")], [FakeTool("probe")], ASK_ALL)
    async with full_screen(session) as user:
        await user.type("one")
        await user.wait_for("Last words.")
        await user.type("two")
        await user.wait_for("Allow once")
        await user.pilot.pause()
        view, dialog = user.app.chat.view, user.app.screen.query_one("#request")
        shown = [view.render_line(y).text for y in range(dialog.region.y - view.region.y)]
        assert any("> two" in line for line in shown)


@pytest.mark.req("TU-4")
async def test_terminal_cursor_is_at_the_caret_after_typing_and_resizing(open_session):
    async with full_screen(await open_session()) as user:
        prompt = user.app.chat.prompt
        await user.press(*"ab", "ctrl+j", "c")
        await user.pilot.pause()
        assert user.app.cursor_position == prompt.cursor_screen_offset
        await user.pilot.resize_terminal(60, 20)
        await user.pilot.pause()
        assert user.app.cursor_position == prompt.cursor_screen_offset
        assert user.app.cursor_position.y == prompt.region.bottom - 1


@pytest.mark.req("TU-1")
async def test_log_shows_the_newest_events(open_session):
    async with full_screen(await open_session([say("Done.")])) as user:
        await user.press("f7")
        await user.type("go")
        await user.wait_for("Done.")
        await user.wait_until(lambda: any("turn done" in line for line in user.app.chat.query_one("#log").lines))


@pytest.mark.req("TU-3")
async def test_themes_are_shown_while_choosing_and_escape_restores_the_first(open_session):
    remembered = []
    async with full_screen(await open_session(), remember_theme=remembered.append) as user:
        before = user.app.theme
        await user.type("/theme")
        await user.wait_until(lambda: type(user.app.screen).__name__ == "ChoiceScreen")
        await user.press("down")
        await user.wait_until(lambda: user.app.theme != before)
        await user.press("escape")
        await user.wait_until(lambda: user.app.theme == before)
        assert remembered == []


@pytest.mark.req("TU-10")
async def test_call_of_a_stored_turn_is_shown_once_and_with_its_tasks(open_session):
    journal = MemoryJournal("s")

    async def write_tasks(arguments, context):
        context.persist(TodosChanged((Todo("1", "Read the code", "completed"),)))
        return "1 of 1 done"

    session = await open_session(
        [call("todowrite")], [FakeTool("todowrite", write_tasks, runs_in="session")], journal=journal
    )
    async with full_screen(session) as user:
        await user.type("go")
        live = await user.wait_for("Finished.")
        user.app.chat.view.model.load(session.records(), len(session.records()))
        stored = user.transcript
    assert live.count("Read the code") == stored.count("Read the code") == 0
    assert stored.count("1 of 1 done") == 1


@pytest.mark.req("TU-1")
async def test_search_says_which_match_is_shown(open_session):
    async with full_screen(await open_session([say("A needle.", "a"), say("A needle.", "b")])) as user:
        for _ in range(2):
            await user.type("go")
            await user.wait_until(lambda: not user.app.chat.controller.turns.busy)
        await user.wait_until(lambda: user.transcript.count("A needle.") == 2)
        await user.press("ctrl+f", *"needle", "enter")
        await user.wait_until(lambda: "match 1 of 2" in user.app.chat._note)
        await user.press("enter")
        await user.wait_until(lambda: "match 2 of 2" in user.app.chat._note)


@pytest.mark.req("TU-1")
async def test_search_unfolds_what_it_finds(open_session):
    async with full_screen(await open_session([say("Read.")])) as user:
        await user.type("\n".join(f"line {number}" for number in range(100)))
        await user.wait_for("Read.")
        assert "more lines" in user.transcript and "line 50" not in user.transcript
        await user.press("ctrl+f", *"line", "space", *"50", "enter")
        await user.wait_until(lambda: "line 50" in user.visible_text)


@pytest.mark.req("TU-1")
async def test_session_card_shows_the_start_of_the_first_prompt(open_session):
    async with full_screen(await open_session([say("Read.")])) as user:
        cards = {card.label: card.value for card in status_cards(user.app.chat.controller, "x")}
        assert cards["SESSION"] == "new session"
        await user.type("read the code")
        await user.wait_for("Read.")
        cards = {card.label: card.value for card in status_cards(user.app.chat.controller, "x")}
        assert cards["SESSION"] == "read the code"


@pytest.mark.req("TU-1")
async def test_queued_prompts_are_shown_and_the_last_one_is_taken_back(open_session):
    held = asyncio.Event()

    async def hold(context, _):
        await held.wait()

    async with full_screen(await open_session([hold, say("One.")])) as user:
        await user.type("go")
        await user.wait_for("> go")
        for text in ("first", "second"):
            await user.type(text)
        await user.type("/new")
        await user.wait_for("something is running; press Esc")
        turns = user.app.chat.controller.turns
        await user.wait_until(lambda: turns.queued_texts == ("first", "second"))
        assert "› second" in "\n".join(panel_sections(user.app.chat.controller, 40, 20))
        await user.press("alt+q")
        assert (user.app.chat.prompt.text, turns.queued_texts) == ("second", ("first",))
        held.set()
        await user.wait_for("One.")


@pytest.mark.req("TU-1")
async def test_input_is_visible_in_a_very_low_window(open_session):
    async with full_screen(await open_session(), size=(20, 3)) as user:
        await user.pilot.pause()
        region = user.app.chat.prompt.region
        assert (region.height, region.bottom <= 3) == (1, True)


@pytest.mark.req("TU-1")
async def test_palette_runs_an_action_and_a_command(open_session):
    async with full_screen(await open_session()) as user:
        for words, shown in (("show or hide the panel", "#side"), ("/todo", "")):
            await user.press("f2")
            await user.wait_until(lambda: type(user.app.screen).__name__ == "ChoiceScreen")
            await user.press(*("space" if letter == " " else letter for letter in words), "enter")
            if shown:
                await user.wait_until(lambda shown=shown: bool(user.app.chat.query_one(shown).display))
        await user.wait_until(lambda: "> /todo" in user.transcript)


@pytest.mark.req("TU-3")
async def test_models_to_choose_are_those_of_the_settings_and_the_endpoint(open_session):
    services = FakeServices()
    services.known_profiles = [NamedItem("fast", "a small model")]
    async with full_screen(await open_session([]), services=services) as user:
        await user.app.chat.action_do("model")
        await user.wait_for("Switch the model")
        items = user.app.screen.query_one("#choices").items
    assert [item.value for item in items] == ["fast", "one", "two"]


@pytest.mark.req("TU-3", "TU-7")
async def test_keys_work_while_the_list_of_models_is_asked_for(open_session, monkeypatch):
    answered, services = asyncio.Event(), FakeServices()

    async def answer_late():
        await answered.wait()
        return ["other"]

    monkeypatch.setattr(services, "models", answer_late)
    monkeypatch.setattr(info_commands, "LIST_SECONDS", 60.0)
    async with full_screen(await open_session([say("Hello.")]), services=services) as user:
        await user.press("f2", *"model", "enter")
        await user.wait_until(lambda: user.app.screen is user.app.chat)
        await user.press(*"text")
        await user.wait_until(lambda: user.app.chat.prompt.text == "text")
        answered.set()
        await user.wait_until(lambda: isinstance(user.app.screen, ChoiceScreen))


@pytest.mark.req("TU-1", "TU-10")
async def test_what_was_selected_or_found_may_be_reverted(open_session):
    session = await open_session([say("One."), say("Two."), say("Three.")])
    async with full_screen(session) as user:
        for number, word in enumerate(("One", "Two", "Three"), 1):
            await user.type(f"prompt {number}")
            await user.wait_for(f"{word}.")
        view = user.app.chat.view
        await user.press("ctrl+up")
        await user.press("ctrl+f", *"prompt", "enter")
        await user.wait_until(lambda: "match 1 of 3" in user.app.chat._note)
        view.model.load(session.records(), 2)
        view._on_model_change()
        for key in ("alt+c", "alt+o", "enter", "enter"):
            await user.press(key)
        await user.wait_until(lambda: "not found" in user.app.chat._note or "match 1 of 1" in user.app.chat._note)
        view.post_message(TranscriptView.Clicked(5))
        await user.press("escape")
        await user.type("more")
        await user.wait_for("> more")


@pytest.mark.req("EN-13", "TU-10")
async def test_event_right_after_a_revert_is_shown_once(open_session):
    session = await open_session([say("A reply.")])
    async with full_screen(session) as user:
        await user.type("go")
        await user.wait_until(lambda: "done in" in user.app.chat.controller.news)
        await session.apply(Revert(session.opened_after_seq))
        session.emit(Notice("warning", "That was reverted."))
        await user.wait_for("That was reverted.")
        session.emit(Notice("info", "The last event."))
        shown = await user.wait_for("The last event.")
    assert shown.count("That was reverted.") == 1
