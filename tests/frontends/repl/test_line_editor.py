"""Unit tests of the line editor console: answer keys, typed text and history."""

import os
import pty

import pytest

from ostler.frontends.repl import line_editor
from ostler.frontends.repl.console import IDLE_MENU, LineEntered
from ostler.frontends.repl.line_editor import LineEditorConsole
from ostler.interaction import answer_keys
from ostler.interaction.answer_menu import AnswerMenu

ASK = AnswerMenu("allow? ", (("y", "Allow"), ("n", "Deny")))


def expect_seen(console, menu):
    """Open a menu and mark it as visible."""
    console.set_menu(menu)
    console.answer_keys.mark_visible()


@pytest.fixture
def console(monkeypatch):
    master, slave = pty.openpty()
    clock = [100.0]
    for module in (answer_keys, line_editor):
        monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    with open(slave, "w", encoding="utf-8") as out:
        made = LineEditorConsole(out, None)
        made.clock = clock
        yield made
    os.close(master)


def typed(console, text):
    console._on_key(None)
    console._session.default_buffer.insert_text(text)


@pytest.mark.req("PM-11")
async def test_text_typed_at_a_dialog_is_added_to_the_draft_at_its_cursor(console):
    typed(console, "half a for me")
    console._session.default_buffer.cursor_position -= len(" for me")
    console.clock[0] += 0.2
    expect_seen(console, ASK)
    for key in " yes":
        console.clock[0] += 0.3
        console.answer_keys.press(key if key in "yn" else "", key)
    console.delete_answer()
    console.answer_keys.confirm()
    console.answer_keys.add_text("t")
    assert console._events.empty()
    console.set_menu(IDLE_MENU)
    assert console._session.default_buffer.text == "half a yet for me"
    assert console._session.default_buffer.document.text_before_cursor == "half a yet"


@pytest.mark.req("PM-11")
async def test_text_typed_at_a_question_that_closed_is_not_an_answer_to_the_next_request(console):
    console.set_menu(AnswerMenu("tell: "))
    typed(console, "an")
    expect_seen(console, ASK)
    console.clock[0] += 0.3
    console.answer_keys.press("y", "y")
    console.answer_keys.confirm()
    assert console._events.empty()
    console.set_menu(None)
    assert console._session.default_buffer.text == "any"


@pytest.mark.req("PM-11")
async def test_enter_just_after_a_dialog_does_not_send_the_draft(console):
    typed(console, "half a")
    expect_seen(console, ASK)
    console.set_menu(None)
    console.send()
    assert (console._events.empty(), console._session.default_buffer.text) == (True, "half a")
    console.clock[0] += 1
    console.send()
    assert console._events.get_nowait() == LineEntered("half a")


@pytest.mark.req("PM-9")
async def test_key_at_an_empty_prompt_answers(console):
    expect_seen(console, ASK)
    console.clock[0] += 1
    console.answer_keys.press("y", "y")
    assert console.answer_keys.feedback == "y: Allow …"
    console.answer_keys.confirm()
    assert console._events.get_nowait() == LineEntered("y")


async def test_typed_text_is_restored_after_the_last_dialog(console):
    typed(console, "half a")
    console.set_menu(ASK)
    assert console._session.default_buffer.text == ""
    console.set_menu(AnswerMenu("tell: "))
    typed(console, "no")
    console.send()
    console.set_menu(ASK)
    console.set_menu(None)
    assert console._session.default_buffer.text == "half a"
    assert console._events.get_nowait() == LineEntered("no")


@pytest.mark.req("CL-1")
async def test_answers_are_not_in_the_history(console):
    console.set_menu(AnswerMenu("tell: "))
    typed(console, "my secret reason")
    console.send()
    console.set_menu(IDLE_MENU)
    typed(console, "a prompt")
    console.send()
    assert list(console._session.history.get_strings()) == ["a prompt"]


@pytest.mark.req("MD-3")
async def test_sensitive_text_is_not_in_the_history(console):
    console.is_sensitive = lambda text: "sk-planted" in text
    for text in ("take sk-planted-0123", "a prompt"):
        typed(console, text)
        console.send()
    assert list(console._session.history.get_strings()) == ["a prompt"]


@pytest.mark.req("CL-4")
async def test_files_are_scanned_before_the_first_mention(console):
    class Completing:
        looked = ""

        async def completions(self, text, *, explicit):
            self.looked = text
            return ()

    completing = Completing()
    console.set_completion(completing)
    await console._file_scan
    assert completing.looked == "@"


@pytest.mark.req("CL-6")
async def test_prompt_is_redrawn_in_the_same_write_as_output(console, monkeypatch):
    app, output, writes = console._session.app, console._output, []
    monkeypatch.setattr("prompt_toolkit.output.vt100.flush_stdout", lambda out, data: writes.append(data))

    def redraw():
        output.write_raw("PROMPT")
        output.flush()

    monkeypatch.setattr(app, "_is_running", True)
    monkeypatch.setattr(app, "_redraw", redraw)
    console.show(["said"])
    console.set_menu(None)
    assert len(writes) == 1 and writes[0].endswith("said\nPROMPT"), writes
    output.write_raw("on its own")
    output.flush()
    assert writes[1:] == ["on its own"]
