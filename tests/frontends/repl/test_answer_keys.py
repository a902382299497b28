"""Which key presses answer a dialog, tested with a fake clock."""

import time

import pytest
from tests.frontends.repl.talk import at

from ostler.core.display import Display, DisplayDiff
from ostler.core.events import PermissionAsked
from ostler.core.permission import Permission
from ostler.frontends.repl import answer_keys
from ostler.frontends.repl.answer_keys import (
    SINGLE_KEY_SECONDS,
    TYPING_HINT,
    TYPING_PAUSE_SECONDS,
    UNKNOWN_KEY_HINT,
    AnswerKeyFilter,
)
from ostler.frontends.repl.dialogs import DialogQueue
from ostler.rendering.style import Styler
from ostler.session.permissions import DEFAULT_OPTIONS
from ostler.testing.model_server import calls, text

TWO = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+eins\n@@ -9 +9 @@\n-nine\n+neun\n"


class KeyPresser:
    """Presses keys with a fake clock; time passes only in `wait`."""

    def __init__(self, monkeypatch):
        self.now, self.given, self._timers = 100.0, [], []
        monkeypatch.setattr(answer_keys.time, "monotonic", lambda: self.now)
        self.answers = AnswerKeyFilter(self.given.append, self._later)

    def _later(self, seconds, call):
        timer = _Timer(self.now + seconds, call)
        self._timers.append(timer)
        return timer

    def see(self):
        self.answers.expect_answer()
        self.answers.mark_visible()

    def wait(self, seconds):
        self.now += seconds
        due, self._timers = [t for t in self._timers if t.at <= self.now], [t for t in self._timers if t.at > self.now]
        for timer in due:
            if not timer.cancelled:
                timer.call()

    def hold(self, key, seconds, first=0.5, every=0.03):
        """Press a key repeatedly, as a keyboard does while it is held down."""
        self.answers.press(key)
        self.wait(first)
        for _ in range(int((seconds - first) / every)):
            self.answers.press(key)
            self.wait(every)


class _Timer:
    def __init__(self, at, call):
        self.at, self.call, self.cancelled = at, call, False

    def cancel(self):
        self.cancelled = True


@pytest.fixture
def keyboard(monkeypatch):
    return KeyPresser(monkeypatch)


@pytest.mark.req("PM-9")
def test_single_key_is_shown_at_once_and_answers(keyboard):
    keyboard.see()
    keyboard.answers.press("y")
    assert (keyboard.answers.pending_key, keyboard.given) == ("y", [])
    keyboard.wait(SINGLE_KEY_SECONDS)
    assert (keyboard.answers.pending_key, keyboard.given) == ("", ["y"])


@pytest.mark.req("PM-9")
def test_key_before_the_dialog_was_visible_is_ignored(keyboard):
    keyboard.answers.press("y")
    keyboard.answers.expect_answer()
    keyboard.answers.press("y")  # pressed while the dialog was being created
    keyboard.answers.mark_visible()
    keyboard.wait(TYPING_PAUSE_SECONDS)
    assert keyboard.given == []
    keyboard.answers.press("n")
    keyboard.wait(SINGLE_KEY_SECONDS)
    assert keyboard.given == ["n"]


@pytest.mark.req("PM-9")
def test_repeated_key_press_is_accepted(keyboard):
    keyboard.see()
    keyboard.answers.press("")
    while not keyboard.given:
        keyboard.answers.press("n")
        keyboard.wait(0.2)
        assert keyboard.now < 103
    assert keyboard.given == ["n"]


@pytest.mark.req("PM-9")
def test_key_held_before_the_dialog_is_ignored(keyboard):
    keyboard.answers.expect_answer()
    keyboard.answers.press("y")
    keyboard.answers.mark_visible()
    keyboard.hold("y", 5.0, first=0.03)
    keyboard.wait(SINGLE_KEY_SECONDS)
    assert keyboard.given == []


@pytest.mark.req("PM-9")
@pytest.mark.parametrize("first", [0.25, 0.5, 0.66])
def test_held_key_does_not_answer_the_next_dialog(keyboard, first):
    keyboard.see()
    keyboard.answers.press("y")
    keyboard.wait(SINGLE_KEY_SECONDS)
    keyboard.see()
    keyboard.wait(first - SINGLE_KEY_SECONDS)
    keyboard.hold("y", 3.0, first=0.03)
    keyboard.wait(SINGLE_KEY_SECONDS)
    assert keyboard.given == ["y"]


@pytest.mark.req("PM-9")
def test_key_before_the_next_dialog_is_ignored(keyboard):
    keyboard.see()
    keyboard.answers.press("y")
    keyboard.wait(SINGLE_KEY_SECONDS)
    keyboard.answers.mark_visible()  # something else was drawn; the next dialog is not open yet
    keyboard.answers.press("y")
    keyboard.see()
    keyboard.wait(SINGLE_KEY_SECONDS)
    assert keyboard.given == ["y"]


@pytest.mark.req("PM-9")
@pytest.mark.parametrize("keys", ["yn", "ny", ["y", ""], ["", "y"], "yy"])
def test_burst_of_keys_is_ignored(keyboard, keys):
    keyboard.see()
    for key in keys:
        keyboard.answers.press(key)
        keyboard.wait(0.05)
    keyboard.wait(SINGLE_KEY_SECONDS)
    assert keyboard.given == []
    keyboard.wait(TYPING_PAUSE_SECONDS)
    keyboard.answers.press("y")
    keyboard.wait(SINGLE_KEY_SECONDS)
    assert keyboard.given == ["y"]


@pytest.mark.req("PM-5", "PM-9")
def test_wrong_key_shows_a_hint_and_the_next_key_answers(keyboard):
    keyboard.see()
    keyboard.answers.press("")
    assert keyboard.answers.feedback == UNKNOWN_KEY_HINT
    keyboard.wait(0.15)
    keyboard.answers.press("y")
    assert keyboard.answers.feedback == "y"
    keyboard.wait(SINGLE_KEY_SECONDS)
    assert (keyboard.given, keyboard.answers.feedback) == (["y"], "")


@pytest.mark.req("PM-5", "PM-9")
@pytest.mark.parametrize("keys", ["yn", ["y", ""], ["", "y"]])
def test_typing_at_a_dialog_shows_a_hint(keyboard, keys):
    keyboard.see()
    for key in keys:
        keyboard.answers.press(key)
        keyboard.wait(0.05)
    assert keyboard.answers.feedback == TYPING_HINT
    keyboard.wait(0.5)
    keyboard.answers.press("")  # still typing
    keyboard.wait(0.9)
    keyboard.answers.press("y")
    assert (keyboard.answers.feedback, keyboard.answers.pending_key) == (TYPING_HINT, "")
    keyboard.wait(TYPING_PAUSE_SECONDS)
    keyboard.answers.press("y")
    assert keyboard.answers.feedback == "y"


@pytest.mark.req("PM-5")
def test_enter_is_not_an_answer_and_keeps_the_pending_key(keyboard):
    keyboard.see()
    keyboard.answers.reject()
    assert keyboard.answers.feedback == UNKNOWN_KEY_HINT
    keyboard.answers.press("n")
    keyboard.answers.reject()
    keyboard.wait(SINGLE_KEY_SECONDS)
    assert keyboard.given == ["n"]


class FakeConsole:
    numbers_menu = False
    page_size = (0, 0)

    def show(self, lines):
        pass

    def set_menu(self, menu):
        self.menu = menu


@pytest.mark.req("PM-9", "PM-5")
@pytest.mark.parametrize(
    ("keys", "answer", "lasts", "hunks", "feedback"),
    [
        ("y", "allow", "once", None, ""),
        ("s", "allow", "session", None, ""),
        ("a", "allow", "project", None, ""),
        ("n", "deny", "once", None, ""),
        (["m", "not so"], "deny", "once", None, "not so"),
        ("hny", "allow", "once", (2,), ""),
        ("hyy", "allow", "once", None, ""),
        ("hnn", "deny", "once", None, "No hunk was accepted."),
    ],
)
def test_decision_of_each_key(keys, answer, lasts, hunks, feedback):
    settled, console = [], FakeConsole()
    asking = DialogQueue(console, Styler(enabled=False), lambda *given: settled.append(given) or True)
    preview = Display("", (DisplayDiff("x", TWO),))
    asking.on_event(PermissionAsked("a", Permission("edit x", (), preview, DEFAULT_OPTIONS, by_hunk=True)))
    for key in keys:
        assert not settled
        assert not console.menu.answers or key in dict(console.menu.answers)
        asking.answer(key)
    ((ask_id, decision),) = settled
    assert (ask_id, decision.answer, decision.scope) == ("a", answer, lasts)
    assert (decision.hunks, decision.feedback) == (hunks, feedback)


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.req("PM-9")
def test_key_is_handled_within_150_ms(terminal, models):
    """The fastest of several dialogs in a terminal counts, because the machine may be busy."""
    times = []
    asks = [calls([("write", {"path": f"{n}.txt", "content": "x\n"})]) for n in range(7)]
    with models.playing(*asks, text("all done")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("write\r")
        for n in range(7):
            term.wait_for(lambda text, n=n: f"? write {n}.txt" in text and "allow? [y/s/a/n/m]" in text)
            began = time.perf_counter()
            term.type("y")
            term.wait_for(lambda text, n=n: text.count("→ allow") == n + 1)
            times.append(time.perf_counter() - began)
        term.wait_for("all done")
    assert min(times) <= 0.15
