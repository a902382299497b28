"""Which keys answer an ask, by a clock that stands still: none by accident."""

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


class Hand:
    """Presses keys at an ask; time passes only where it says so."""

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
        """As a keyboard repeats a key that is held down."""
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
def hand(monkeypatch):
    return Hand(monkeypatch)


@pytest.mark.req("PM-9")
def test_a_key_is_seen_at_once_and_answers_when_it_stands_alone(hand):
    hand.see()
    hand.answers.press("y")
    assert (hand.answers.pending_key, hand.given) == ("y", [])
    hand.wait(SINGLE_KEY_SECONDS)
    assert (hand.answers.pending_key, hand.given) == ("", ["y"])


@pytest.mark.req("PM-9")
def test_a_key_from_before_the_ask_was_seen_answers_nothing(hand):
    hand.answers.press("y")
    hand.answers.expect_answer()
    hand.answers.press("y")  # it was on its way while the ask was made
    hand.answers.mark_visible()
    hand.wait(TYPING_PAUSE_SECONDS)
    assert hand.given == []
    hand.answers.press("n")
    hand.wait(SINGLE_KEY_SECONDS)
    assert hand.given == ["n"]


@pytest.mark.req("PM-9")
def test_whoever_presses_again_and_again_is_heard(hand):
    hand.see()
    hand.answers.press("")
    while not hand.given:
        hand.answers.press("n")
        hand.wait(0.2)
        assert hand.now < 103
    assert hand.given == ["n"]


@pytest.mark.req("PM-9")
def test_a_key_held_since_before_the_ask_never_answers_it(hand):
    hand.answers.expect_answer()
    hand.answers.press("y")
    hand.answers.mark_visible()
    hand.hold("y", 5.0, first=0.03)
    hand.wait(SINGLE_KEY_SECONDS)
    assert hand.given == []


@pytest.mark.req("PM-9")
@pytest.mark.parametrize("first", [0.25, 0.5, 0.66])
def test_a_key_held_at_one_ask_does_not_answer_the_next(hand, first):
    hand.see()
    hand.answers.press("y")
    hand.wait(SINGLE_KEY_SECONDS)
    hand.see()
    hand.wait(first - SINGLE_KEY_SECONDS)
    hand.hold("y", 3.0, first=0.03)
    hand.wait(SINGLE_KEY_SECONDS)
    assert hand.given == ["y"]


@pytest.mark.req("PM-9")
def test_a_second_key_before_the_next_ask_is_there_is_not_taken_for_it(hand):
    hand.see()
    hand.answers.press("y")
    hand.wait(SINGLE_KEY_SECONDS)
    hand.answers.mark_visible()  # something else was drawn; the next ask is not there yet
    hand.answers.press("y")
    hand.see()
    hand.wait(SINGLE_KEY_SECONDS)
    assert hand.given == ["y"]


@pytest.mark.req("PM-9")
@pytest.mark.parametrize("keys", ["yn", "ny", ["y", ""], ["", "y"], "yy"])
def test_a_burst_of_keys_is_words(hand, keys):
    hand.see()
    for key in keys:
        hand.answers.press(key)
        hand.wait(0.05)
    hand.wait(SINGLE_KEY_SECONDS)
    assert hand.given == []
    hand.wait(TYPING_PAUSE_SECONDS)
    hand.answers.press("y")
    hand.wait(SINGLE_KEY_SECONDS)
    assert hand.given == ["y"]


@pytest.mark.req("PM-5", "PM-9")
def test_a_wrong_key_is_told_at_once_and_the_next_right_one_answers(hand):
    hand.see()
    hand.answers.press("")
    assert hand.answers.feedback == UNKNOWN_KEY_HINT
    hand.wait(0.15)
    hand.answers.press("y")
    assert hand.answers.feedback == "y"
    hand.wait(SINGLE_KEY_SECONDS)
    assert (hand.given, hand.answers.feedback) == (["y"], "")


@pytest.mark.req("PM-5", "PM-9")
@pytest.mark.parametrize("keys", ["yn", ["y", ""], ["", "y"]])
def test_whoever_types_words_at_an_ask_is_told_that_they_do_not_count(hand, keys):
    hand.see()
    for key in keys:
        hand.answers.press(key)
        hand.wait(0.05)
    assert hand.answers.feedback == TYPING_HINT
    hand.wait(0.5)
    hand.answers.press("")  # they go on typing
    hand.wait(0.9)
    hand.answers.press("y")
    assert (hand.answers.feedback, hand.answers.pending_key) == (TYPING_HINT, "")
    hand.wait(TYPING_PAUSE_SECONDS)
    hand.answers.press("y")
    assert hand.answers.feedback == "y"


@pytest.mark.req("PM-5")
def test_enter_at_an_ask_answers_nothing_and_takes_nothing_back(hand):
    hand.see()
    hand.answers.reject()
    assert hand.answers.feedback == UNKNOWN_KEY_HINT
    hand.answers.press("n")
    hand.answers.reject()
    hand.wait(SINGLE_KEY_SECONDS)
    assert hand.given == ["n"]


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
def test_each_key_leads_to_its_decision(keys, answer, lasts, hunks, feedback):
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
def test_a_key_is_answered_within_150_ms(terminal, models):
    """The best of several asks, by the clock, in a terminal: the machine may be busy, the client may not be slow."""
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
