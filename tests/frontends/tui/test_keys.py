"""The keys as plain terminals send them, chords, the history, and what Enter and Ctrl-C do."""

import os
import re
import shlex
import signal

import pytest
from tests.frontends.repl.chat_helpers import at
from tests.frontends.tui.tui_user import full_screen, say
from textual import events

from ostler.frontends.tui import session_controller
from ostler.frontends.tui.key_parser import KeyParser
from ostler.frontends.tui.keys import ACTIONS, KeyTable
from ostler.frontends.tui.multiplexers import pass_through
from ostler.interaction.prompt_history import PromptHistory
from ostler.testing.model_server import text

FUNCTION_KEYS = ("OP", "OQ", "OR", "OS", "[15~", "[17~", "[18~", "[19~", "[20~", "[21~")
XTERM = {
    **{f"f{number}": f"\x1b{code}" for number, code in enumerate(FUNCTION_KEYS, 1)},
    **{"pageup": "\x1b[5~", "pagedown": "\x1b[6~", "shift+up": "\x1b[1;2A", "shift+down": "\x1b[1;2B"},
    **{"ctrl+up": "\x1b[1;5A", "ctrl+down": "\x1b[1;5B", "ctrl+home": "\x1b[1;5H", "ctrl+end": "\x1b[1;5F"},
    **{"shift+tab": "\x1b[Z", "alt+enter": "\x1b\r"},
}
"""What xterm sends without an extension; Alt and a letter is Esc and the letter, Ctrl and a letter its code."""


def sent_by_xterm(key):
    if key.startswith("alt+") and len(key) == 5:
        return f"\x1b{key[-1]}"
    return chr(ord(key[-1]) - ord("a") + 1) if key.startswith("ctrl+") and len(key) == 6 else XTERM[key]


def parsed(sent):
    """Return the keys, with the end of the input after them."""
    parser = KeyParser()
    return [event.key for data in (sent, "") for event in parser.feed(data)]


@pytest.mark.req("TU-1")
@pytest.mark.parametrize("action", [action for action in ACTIONS if action.keys], ids=lambda action: action.name)
def test_first_key_of_each_action_is_understood_from_a_plain_terminal(action):
    keys = KeyTable().keys(action.name)[0].split()
    assert [key for each in keys for key in parsed(sent_by_xterm(each))] == keys


@pytest.mark.parametrize(
    ("sent", "key"),
    [("\x1b[27;2;13~", "shift+enter"), ("\x1b[27;3;13~", "alt+enter"), ("\x1b[13;2u", "shift+enter"), ("\r", "enter")],
)
def test_new_line_keys_of_other_terminals_are_understood(sent, key):
    assert parsed(sent) == [key]


@pytest.mark.parametrize(
    "sent", ["\x1b[>0;276;0c", "\x1b[?1;2c", "\x1b[8;24;80t", "\x1b[5n", "\x1b[?2026;2$y", "\x1b[48;24;80;0;0t"]
)
def test_late_answer_of_the_terminal_is_not_typed(sent):
    assert [event for event in KeyParser().feed(sent) if isinstance(event, events.Key)] == []


@pytest.mark.req("TU-4", "PM-11")
@pytest.mark.parametrize("size", [1, 2, 3, 5, 4096])
def test_everything_in_a_paste_is_text(size):
    text = f"a\x1by\r\x1b[13u\x1b[200~{'x' * 40}\x1b[20\ny\r"
    sent, parser = f"k\x1b[200~{text}\x1b[201~l\x1b[200~\x1b[201~", KeyParser()
    found = list(parser.feed(sent[:7]))  # Textual's parser has a start that comes in pieces
    found += [event for at in range(7, len(sent), size) for event in parser.feed(sent[at : at + size])]
    keys = [event.key for event in found if isinstance(event, events.Key)]
    assert next(event.text for event in found if isinstance(event, events.Paste)) == text
    assert keys == ["k", "l"]


@pytest.mark.req("TU-4")
@pytest.mark.parametrize("new_line", ["\x1b\r", "\n", "\\\r"], ids=["alt-enter", "ctrl-j", "backslash"])
def test_new_line_key_sends_nothing(terminal, models, new_line):
    with models.playing(text("Seen.")) as server:
        term = terminal("tui", *at(server))
        term.wait_for("ready")
        term.type(f"first{new_line}")
        term.wait_for("▌ first")
        term.type("second")
        term.wait_for("▌ second")
        assert not server.requests
        term.type("\r")
        term.wait_for("done in")
    assert b'"first\\nsecond"' in server.requests[0].body


@pytest.mark.req("TU-1")
def test_editor_opens_with_two_keys_and_ctrl_c_in_it_is_not_for_the_client(terminal, models, tmp_path):
    editor = tmp_path / "editor"
    traps = 'trap "" INT\ntrap "echo written > $1; exit 0" USR1\n'
    editor.write_text(f'#!/bin/sh\n{traps}echo "$$" > pid\nsleep 60 & wait\n')
    editor.chmod(0o755)
    with models.playing() as server:
        term = terminal("tui", *at(server), env={"EDITOR": shlex.quote(str(editor))})
        term.wait_for("ready")
        term.type("\x18\x05")
        pid = term.workspace / "pid"
        term.wait_for(lambda _: pid.exists() and pid.read_text().strip())
        term.type("\x03")
        term.wait_for("^C")
        os.kill(int(pid.read_text()), signal.SIGUSR1)
        term.wait_for("▌ written")


@pytest.mark.req("CL-7")
async def test_second_ctrl_c_quits_only_soon_after_the_first(open_session, monkeypatch):
    session = await open_session()
    async with full_screen(session) as user:
        await user.press("ctrl+c")
        assert user.app.chat.controller.warned
        monkeypatch.setattr(session_controller, "WARNED_SECONDS", 0.0)
        await user.press("ctrl+c")
        assert user.app.is_running and not user.app._is_leaving
        monkeypatch.undo()
        await user.press("ctrl+c")
        await user.wait_until(lambda: user.app._is_leaving)


@pytest.mark.req("TU-4")
async def test_earlier_prompt_is_searched_and_edited_again(open_session, tmp_path):
    history = PromptHistory(tmp_path / "history")
    for prompt in ("fix the parser", "explain the tests", "fix the docs"):
        history.add(prompt)
    session = await open_session([say("ok")])
    async with full_screen(session) as user:
        user.app.chat.prompt.earlier = history
        await user.press("ctrl+r", *"parser", "enter")
        await user.wait_until(lambda: user.app.chat.prompt.text == "fix the parser")


@pytest.mark.req("TU-4")
@pytest.mark.parametrize(
    ("typed", "after"), [("see @rea", "see @read.py"), ("/mod", "/models"), ("see @docs/", ""), ("see @read.py", "")]
)
async def test_enter_completes_an_unfinished_mention_instead_of_sending_it(open_session, monkeypatch, typed, after):
    async def files(query):
        return [path for path in ("read.py", "docs/", "docs/a.md") if path.startswith(query)]

    session = await open_session([say("ok")])
    async with full_screen(session) as user:
        monkeypatch.setattr(user.services, "files", files)
        await user.press(*typed)
        menu, word = user.app.chat.menu, typed.split()[-1].removeprefix("/")
        await user.wait_until(lambda: menu.is_open and menu._items[0].replace_length == len(word))
        await user.press("enter")
        await user.pilot.pause()
    assert user.app.chat.prompt.text.strip() == after


@pytest.mark.parametrize(
    ("custom", "problem"),
    [
        ({"foo": "f13"}, "no action 'foo'"),
        ({"steer": "enter"}, "Enter is a key of the input, so steer has its default"),
        ({"help": "f5, Shift+Hh"}, "there is no key 'shift+hh', so help has its default"),
        ({"help": "x"}, "X is a key of the input"),
        ({"help": "?"}, "is a key of the input"),
        ({"help": "alt+?, ctrl-/, ctrl+x ?, f13", "model": ""}, ""),
        ({"steer": "f5"}, "F5 is used for steer and sessions"),
        ({"editing": "vi", "editor": "ctrl+x e"}, ""),
    ],
)
def test_wrong_keys_of_the_settings_are_named(custom, problem):
    found = KeyTable(custom).problem
    assert problem in found and bool(problem) == bool(found)


@pytest.mark.req("TU-1")
async def test_wrong_key_of_the_settings_has_no_effect(open_session):
    async with full_screen(await open_session([say("Hello.")]), keys={"help": "enter,h", "palette": "alt+."}) as user:
        await user.press("h", "enter")
        await user.wait_for("> h")
        await user.press("alt+full_stop")
        await user.wait_for("Commands and actions")


@pytest.mark.req("TU-4")
async def test_typed_text_is_for_the_input_if_nothing_has_the_focus(open_session):
    async with full_screen(await open_session([])) as user:
        user.app.chat.set_focus(None)
        await user.press("h", "i")
        assert user.app.chat.prompt.text == "hi"


@pytest.mark.parametrize(
    ("env", "wrapped"),
    [
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "screen.tmux-256color", "TMUX": "x", "STY": "y"}, "\x1bP\x1b]52"),
        ({"TERM": "screen", "TMUX": "x", "STY": "y"}, "\x1bP\x1b]52"),
        ({"TERM": "tmux-256color", "TMUX": "x", "STY": "y"}, "\x1bPtmux;"),
        ({"TERM": "screen-256color", "TMUX": "x"}, "\x1bPtmux;"),
    ],
)
def test_sequence_is_wrapped_for_the_innermost_multiplexer(env, wrapped):
    sent = pass_through("\x1b]52;c;eA==\x07", env)
    assert wrapped in sent if wrapped else sent == "\x1b]52;c;eA==\x07"


@pytest.mark.req("TU-1")
@pytest.mark.parametrize(
    ("opens", "closes"), [("f1", "x"), ("f2", "escape"), ("f2", "enter"), ("f3", "escape"), ("f5", "escape")]
)
async def test_key_that_closes_a_dialog_may_be_held_down(open_session, opens, closes):
    async with full_screen(await open_session([]), arcade="invaders") as user:
        await user.press(opens)
        await user.wait_until(lambda: user.app.screen is not user.app.chat)
        for _ in range(5):
            user.app.post_message(events.Key(closes, closes if len(closes) == 1 else None))
        await user.press("escape")
        await user.wait_until(lambda: user.app.screen is user.app.chat)


@pytest.mark.req("TU-1")
async def test_text_typed_right_after_the_search_key_is_searched(open_session):
    async with full_screen(await open_session([])) as user:
        for key in ("ctrl+f", "a", "b"):
            user.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await user.wait_until(lambda: user.app.chat.query_one("#search").value == "ab")
        assert user.app.chat.prompt.text == ""


@pytest.mark.req("TU-4")
@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("abc\x7f\x7fxy", "axy"),
        ("ac\x1b[Db", "abc"),
        ("hello world\x17there", "hello there"),
        ("bc\x1b[Ha\x1b[Fd", "abcd"),
        ("one\x15two", "two"),
    ],
)
def test_keys_that_arrive_together_act_in_their_order(terminal, models, typed, text):
    """A slow connection delivers several keys at once."""
    with models.playing() as server:
        term = terminal("tui", *at(server))
        term.wait_for("ready")
        term.type(typed)
        term.wait_for(lambda shown: f"▌ {text}\n" in shown)
        term.type("\x06")
        term.wait_for("search the transcript")
        if "\x17" not in typed:
            term.type(typed)
            term.wait_for(lambda shown: re.search(rf"^ {text} *$", shown, re.MULTILINE))


@pytest.mark.req("TU-4")
def test_action_that_arrives_together_with_text_comes_after_it(terminal, models):
    with models.playing() as server:
        term = terminal("tui", *at(server))
        term.wait_for("ready")
        term.type("first\x13second")  # Ctrl-S puts the text aside
        term.wait_for(lambda shown: "▌ second\n" in shown)
        term.type("\x15\x13")
        term.wait_for(lambda shown: "▌ first\n" in shown)
