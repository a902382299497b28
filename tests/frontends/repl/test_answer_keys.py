"""Which key presses answer a dialog, tested with a fake clock."""

import random
import time

import pytest
from tests.frontends.repl.chat_helpers import at

from ostler.core.display import Display, DisplayDiff
from ostler.core.events import PermissionAsked
from ostler.core.permission import Permission
from ostler.frontends.repl.dialogs import DialogQueue
from ostler.interaction import answer_keys
from ostler.interaction.answer_keys import (
    ANSWER_PAUSE_SECONDS,
    CONFIRM_HINT,
    REACTION_SECONDS,
    STEP_PAUSE_SECONDS,
    TYPING_HINT,
    TYPING_PAUSE_SECONDS,
    UNKNOWN_KEY_HINT,
    WAIT_HINT,
    AnswerKeyFilter,
)
from ostler.rendering.style import Styler
from ostler.session.answer_options import with_answers
from ostler.testing.model_server import calls, text

LASTING = ("s", "a")
TWO = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+eins\n@@ -9 +9 @@\n-nine\n+neun\n"


class KeyPresser:
    """Presses keys with a fake clock; time passes only in `wait`."""

    def __init__(self, monkeypatch):
        self.now, self.given, self.returned, self._timers = 100.0, [], [], []
        monkeypatch.setattr(answer_keys.time, "monotonic", lambda: self.now)
        self.answers = AnswerKeyFilter(self.given.append, self.returned.append, self._later)

    def _later(self, seconds, call):
        timer = _Timer(self.now + seconds, call)
        self._timers.append(timer)
        return timer

    def see(self, **options):
        self.answers.expect_answer(LASTING, {"y": "Allow once"}, **options)
        self.answers.mark_visible()

    def see_idle(self):
        """Show a dialog to a user who looks at it for a moment."""
        self.see()
        self.wait(2 * REACTION_SECONDS)

    def press(self, *keys):
        for key in keys:
            self.answers.press(key if key in "ysanmh" else "", key)

    def type(self, text, seconds):
        """Type a text with this time between two keys; `seconds` may be a function."""
        for key in text:
            self.press(key)
            self.wait(seconds(key) if callable(seconds) else seconds)

    def wait(self, seconds):
        self.now += seconds
        due, self._timers = [t for t in self._timers if t.at <= self.now], [t for t in self._timers if t.at > self.now]
        for timer in due:
            if not timer.cancelled:
                timer.call()

    def hold(self, key, seconds, first=0.5, every=0.03):
        """Press a key repeatedly, as a keyboard does while it is held down."""
        self.press(key)
        self.wait(first)
        for _ in range(int((seconds - first) / every)):
            self.press(key)
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
def test_single_key_of_an_idle_user_is_shown_at_once_and_answers(keyboard):
    keyboard.see_idle()
    keyboard.press("y")
    keyboard.wait(ANSWER_PAUSE_SECONDS - 0.01)
    assert (keyboard.answers.feedback, keyboard.given) == ("y: Allow once …", [])
    keyboard.wait(ANSWER_PAUSE_SECONDS)
    assert (keyboard.answers.feedback, keyboard.given, keyboard.returned) == ("", ["y"], [])


@pytest.mark.req("PM-9")
def test_key_before_the_dialog_was_visible_is_ignored(keyboard):
    keyboard.press("y")
    keyboard.answers.expect_answer()
    keyboard.press("y")  # pressed while the dialog was being created
    keyboard.answers.mark_visible()
    keyboard.wait(TYPING_PAUSE_SECONDS)
    assert keyboard.given == []
    keyboard.press("n")
    keyboard.wait(10)
    assert keyboard.given == []
    keyboard.answers.confirm()
    assert (keyboard.given, keyboard.returned) == (["n"], ["y", "y"])


@pytest.mark.req("PM-9")
def test_key_held_before_the_dialog_is_ignored(keyboard):
    keyboard.answers.expect_answer()
    keyboard.press("y")
    keyboard.answers.mark_visible()
    keyboard.hold("y", 5.0, first=0.03)
    keyboard.wait(10)
    assert keyboard.given == []


@pytest.mark.req("PM-9")
@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("first", [0.61, 0.66, 0.9])
def test_held_key_does_not_answer_the_next_dialog(keyboard, first, quick):
    keyboard.see_idle()
    keyboard.press("y")
    keyboard.wait(ANSWER_PAUSE_SECONDS)
    keyboard.see(quick=quick)
    keyboard.wait(first - ANSWER_PAUSE_SECONDS)
    keyboard.hold("y", 3.0, first=0.03)
    keyboard.wait(10)
    assert keyboard.given == ["y"]


@pytest.mark.req("PM-9")
def test_key_before_the_next_dialog_is_ignored(keyboard):
    keyboard.see_idle()
    keyboard.press("y")
    keyboard.wait(ANSWER_PAUSE_SECONDS)
    keyboard.answers.mark_visible()  # something else was drawn; the next dialog is not open yet
    keyboard.press("y")
    keyboard.see()
    keyboard.wait(10)
    assert (keyboard.given, keyboard.returned) == (["y"], ["y"])


@pytest.mark.req("PM-9")
@pytest.mark.parametrize("keys", ["yn", "ny", "yx", "xy", "yy"])
def test_burst_of_keys_is_ignored_and_returned(keyboard, keys):
    keyboard.see_idle()
    keyboard.type(keys, 0.05)
    assert (keyboard.answers.feedback, "".join(keyboard.returned)) == (TYPING_HINT, keys)
    keyboard.wait(TYPING_PAUSE_SECONDS)
    keyboard.press("y")
    keyboard.wait(10)
    assert keyboard.given == []
    keyboard.answers.confirm()
    assert keyboard.given == ["y"]


TEXTS = (
    "please also add a yaml sample and name a second module as you may see necessary",
    "maybe you say any yes and no as many have seen me say so",
    "y n a s m h y n a s m h yes",
    "now have a happy holiday, my name may stay",
)


@pytest.mark.req("PM-11")
@pytest.mark.parametrize("seed", range(40))
def test_typing_at_any_speed_never_answers_and_returns_every_character(keyboard, seed):
    """The request appears anywhere in the text; pauses between words are of any length, on either side of the space."""
    chance = random.Random(seed)
    for speed in (0.03, 0.08, 0.12, 0.18, 0.22, 0.26, 0.3, 0.35, 0.5, 0.7, 0.9, 1.2, 1.7):
        text = chance.choice(TEXTS)
        start = chance.randrange(1, len(text))

        def pause(key, speed=speed, chance=chance):
            return chance.choice((speed, speed, 0.5, 2.0, 5.0)) if key == " " else speed * chance.uniform(0.6, 1.1)

        keyboard.answers.note_keys_elsewhere(keyboard.now, has_text=True)
        keyboard.wait(chance.choice((speed, 3.0)) if text[start - 1] == " " else speed)
        keyboard.see()
        keyboard.type(text[start:-1], pause)
        keyboard.press(text[-1])
        keyboard.answers.confirm()  # Enter, to send the text
        keyboard.wait(10)
        assert keyboard.given == [], (speed, text[start:])
        assert "".join(keyboard.returned) == text[start:]
        keyboard.answers.reset()
        keyboard.answers.forget_text()
        keyboard.returned.clear()


@pytest.mark.req("PM-11")
@pytest.mark.parametrize("speed", [0.03, 0.12, 0.26, 0.3, 0.5, 0.9, 1.2, 1.7])
@pytest.mark.parametrize("text", TEXTS)
def test_typing_that_starts_after_a_sent_line_or_an_answer_never_answers(keyboard, text, speed):
    keyboard.answers.note_keys_elsewhere(keyboard.now, has_text=False)
    keyboard.wait(min(speed, 0.5))
    keyboard.see()
    keyboard.type(text[:-1], speed)
    keyboard.press(text[-1])
    keyboard.wait(10)
    assert (keyboard.given, "".join(keyboard.returned)) == ([], text)


@pytest.mark.req("PM-11")
@pytest.mark.parametrize("speed", [0.12, 0.3, 1.2, 1.7])
def test_typing_that_starts_when_the_request_appears_never_answers(keyboard, speed):
    keyboard.see()
    keyboard.wait(REACTION_SECONDS / 2)
    keyboard.type("you may say so", speed)
    assert (keyboard.given, "".join(keyboard.returned)) == ([], "you may say so")


@pytest.mark.req("PM-11")
@pytest.mark.parametrize("speed", [0.05, 0.12, 0.3, 0.55])
@pytest.mark.parametrize("text", ["you should also add a test", "no, not there", "yes", "hmm"])
@pytest.mark.parametrize("quick", [False, True])
def test_typing_of_a_user_who_was_idle_never_answers(keyboard, text, speed, quick):
    keyboard.see(quick=quick)
    keyboard.wait(10)
    keyboard.type(text, speed)
    keyboard.wait(10)
    assert (keyboard.given, "".join(keyboard.returned)) == ([], text)


@pytest.mark.req("PM-11")
@pytest.mark.parametrize("speed", [0.05, 0.7, 1.7, 1.9, 3.0, 30.0])
def test_letter_after_other_text_needs_enter(keyboard, speed):
    keyboard.see_idle()
    keyboard.type("xy", speed)
    keyboard.wait(60)
    assert keyboard.given == []


@pytest.mark.req("PM-11")
@pytest.mark.parametrize("pause", [0.0, 0.5, 1.7])
def test_letter_just_after_a_sent_line_needs_enter(keyboard, pause):
    keyboard.answers.note_keys_elsewhere(keyboard.now, has_text=False)
    keyboard.see()
    keyboard.wait(pause)
    keyboard.press("y")
    keyboard.wait(60)
    assert (keyboard.given, keyboard.answers.pending_key) == ([], "y")
    keyboard.answers.confirm()
    assert keyboard.given == ["y"]


@pytest.mark.req("PM-9")
def test_letter_just_after_another_answer_answers_after_a_longer_pause(keyboard):
    keyboard.see_idle()
    keyboard.press("y")
    keyboard.wait(ANSWER_PAUSE_SECONDS)
    keyboard.see()
    keyboard.wait(0.5)
    keyboard.press("n")
    assert keyboard.answers.feedback == f"n {WAIT_HINT}"
    keyboard.wait(TYPING_PAUSE_SECONDS)
    assert keyboard.given == ["y", "n"]


@pytest.mark.req("PM-11")
@pytest.mark.parametrize("pause", [TYPING_PAUSE_SECONDS, 60])
def test_deliberate_key_and_enter_answer_after_typing(keyboard, pause):
    keyboard.answers.note_keys_elsewhere(keyboard.now, has_text=True)
    keyboard.see()
    keyboard.type("as y", 0.3)
    keyboard.wait(pause)
    keyboard.press("y")
    assert keyboard.answers.feedback == f"y: Allow once … {CONFIRM_HINT}"
    keyboard.answers.confirm()
    assert (keyboard.given, "".join(keyboard.returned)) == (["y"], "as y")


@pytest.mark.req("PM-11")
@pytest.mark.parametrize("key", "ysanmh")
def test_key_and_enter_answer(keyboard, key):
    for has_text in (False, True):
        keyboard.answers.note_keys_elsewhere(keyboard.now, has_text=has_text)
        keyboard.see()
        keyboard.wait(TYPING_PAUSE_SECONDS)
        keyboard.press(key)
        keyboard.answers.confirm()
    assert (keyboard.given, keyboard.returned) == ([key, key], [])


@pytest.mark.req("PM-11")
@pytest.mark.parametrize("key", LASTING)
def test_lasting_answer_always_needs_enter(keyboard, key):
    keyboard.see_idle()
    keyboard.press(key)
    keyboard.wait(100)
    assert (keyboard.given, keyboard.answers.feedback) == ([], f"{key} {CONFIRM_HINT}")
    keyboard.answers.confirm()
    assert keyboard.given == [key]


@pytest.mark.req("PM-11")
def test_other_key_replaces_a_lasting_answer_after_a_pause(keyboard):
    keyboard.see_idle()
    keyboard.press("a")
    keyboard.wait(TYPING_PAUSE_SECONDS)
    keyboard.press("n")
    keyboard.answers.confirm()
    assert keyboard.given == ["n"]


@pytest.mark.req("PM-11")
def test_backspace_cancels_the_key(keyboard):
    keyboard.see_idle()
    keyboard.press("a")
    assert keyboard.answers.delete_key()
    keyboard.answers.confirm()
    assert (keyboard.given, keyboard.returned) == ([], [])


@pytest.mark.req("PM-11")
def test_pending_key_of_a_closed_dialog_is_returned_and_does_not_answer_the_next(keyboard):
    keyboard.see_idle()
    keyboard.press("y")
    keyboard.answers.reset()
    keyboard.see()
    keyboard.wait(10)
    keyboard.answers.confirm()
    assert (keyboard.given, keyboard.returned) == ([], ["y"])


@pytest.mark.req("PM-9")
def test_steps_of_a_dialog_are_answered_in_quick_succession(keyboard):
    keyboard.see_idle()
    for key in "hyn":
        keyboard.press(key)
        keyboard.wait(ANSWER_PAUSE_SECONDS if key == "h" else STEP_PAUSE_SECONDS)
        keyboard.see(quick=True)
        keyboard.wait(0.1)
    assert keyboard.given == ["h", "y", "n"]


@pytest.mark.req("PM-5")
def test_enter_alone_is_not_an_answer(keyboard):
    keyboard.see_idle()
    keyboard.answers.confirm()
    assert (keyboard.given, keyboard.answers.feedback) == ([], UNKNOWN_KEY_HINT)


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
    asking.on_event(
        PermissionAsked("a", with_answers(Permission("edit x", (), preview, by_hunk=True), once_only=False))
    )
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
def test_effect_of_a_key_is_shown_within_150_ms(terminal, models):
    """The fastest of several dialogs in a terminal counts, because the machine may be busy."""
    times = []
    asks = [calls([("write", {"path": f"{n}.txt", "content": "x\n"})]) for n in range(7)]
    with models.playing(*asks, text("all done")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("write\r")
        for n in range(7):
            term.wait_for(lambda text, n=n: f"? write {n}.txt" in text and "allow? [y/s/e/a/n/m]" in text)
            time.sleep(TYPING_PAUSE_SECONDS)  # the user reads the request
            began = time.perf_counter()
            term.type("y")
            term.wait_for(lambda text: "allow? [y/s/e/a/n/m] y: " in text)
            times.append(time.perf_counter() - began)
            term.wait_for(lambda text, n=n: text.count("→ allow") == n + 1)
        term.wait_for("all done")
    assert min(times) <= 0.15
