"""Asks and questions by themselves: which answers there are, what each settles, and what the agent is told."""

import pytest

from ostler.core.display import Display, DisplayDiff
from ostler.core.events import PermissionAsked, PermissionDecided, QuestionAsked
from ostler.core.permission import AnswerOption, Decision, Need, Permission, Question, QuestionReply
from ostler.frontends.repl.ask_dialog import AskDialog
from ostler.frontends.repl.dialogs import DialogQueue
from ostler.frontends.repl.question_dialog import QuestionDialog
from ostler.rendering.style import Styler
from ostler.session.permissions import DEFAULT_OPTIONS, ONCE_OPTIONS
from ostler.testing.model_server import calls

PLAIN = Styler(enabled=False)
DIFF = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+eins\n@@ -9 +9 @@\n-nine\n+neun\n"


def ask(diff="", once_only=False, options=None, cut=False):
    preview = Display("", (DisplayDiff("x", diff, truncated=cut),) if diff else ())
    options = options or (ONCE_OPTIONS if once_only else DEFAULT_OPTIONS)
    needs = (Need("write", "x", rule_pattern="x*"),)
    permission = Permission("write x", needs, preview, options, by_hunk=bool(diff) and not cut)
    return AskDialog(PermissionAsked("a", permission, once_only))


def keys(one):
    return [key for key, _ in one.menu().answers]


def answered(one, *lines):
    """The decision after the last line; none before it."""
    *before, last = lines
    assert [one.submit(line) for line in before] == [None] * len(before)
    return one.submit(last)


@pytest.mark.req("PM-5")
@pytest.mark.parametrize(
    ("line", "decision"),
    [
        ("y", Decision("allow", "person", "once", "once")),
        (" Y ", Decision("allow", "person", "once", "once")),
        ("s", Decision("allow", "person", "session", "session")),
        ("a", Decision("allow", "person", "project", "always")),
        ("n", Decision("deny", "person", "once", "deny")),
        ("", None),
        ("yes", None),
        ("h", None),
    ],
)
def test_one_key_decides(line, decision):
    assert ask().submit(line) == decision


@pytest.mark.req("PM-5")
def test_the_dangerous_class_has_only_once_and_deny():
    assert keys(ask(DIFF, once_only=True)) == ["y", "n"]
    wide = (*DEFAULT_OPTIONS, AnswerOption("more", "For ever", "allow_always"))
    assert keys(ask(once_only=True, options=wide)) == ["y", "n"]


@pytest.mark.req("PM-5")
def test_the_exact_rule_is_shown():
    assert any("rule for s and a: write: x*" in line for line in ask().lines(PLAIN, with_keys=True))


def test_options_of_one_kind_have_keys_of_their_own():
    two = (
        AnswerOption("1", "This once", "allow_once"),
        AnswerOption("2", "That once", "allow_once"),
        AnswerOption("3", "No", "deny"),
    )
    one = ask(options=two)
    assert keys(one) == ["y", "2", "n", "m"]
    assert one.submit("2").option_id == "2"


@pytest.mark.req("PM-5")
def test_a_message_goes_with_the_refusal():
    decision = answered(ask(), "m", "  use y instead ")
    assert (decision.answer, decision.feedback) == ("deny", "use y instead")


@pytest.mark.req("PM-5")
def test_some_hunks_are_allowed_by_their_numbers():
    one = ask(DIFF)
    assert keys(one)[-1] == "h"
    assert one.submit("h") is None
    assert "hunk 1 of 2: x, updated" in "\n".join(one.step_lines(PLAIN))
    assert one.submit("n") is None
    assert one.step_lines(PLAIN)[:3] == ["  → skipped", "", "  hunk 2 of 2: x, updated"]
    assert answered(one, "x", "y") == Decision("allow", "person", "once", "once", hunks=(2,))


@pytest.mark.req("PM-5")
def test_all_hunks_are_a_yes_and_none_a_no():
    assert answered(ask(DIFF), "h", "y", "y") == Decision("allow", "person", "once", "once")
    refused = answered(ask(DIFF), "h", "n", "n")
    assert (refused.answer, refused.feedback) == ("deny", "No hunk was accepted.")


def test_hunks_are_not_offered_where_there_is_one_or_not_all_is_seen():
    assert "h" not in keys(ask(DIFF.partition("@@ -9")[0]))
    assert "h" not in keys(ask(DIFF, cut=True))


class PagedConsole:
    numbers_menu = False

    def __init__(self, page_size=(0, 0)):
        self.page_size = page_size
        self.shown = []

    def show(self, lines):
        self.shown += lines

    def set_menu(self, menu):
        self.menu = menu


def paged(lines, page=(40, 10)):
    """A change of so many lines in an ask, on a screen of that size."""
    console, settled = PagedConsole(page), []
    asking = DialogQueue(console, PLAIN, lambda *answer: settled.append(answer) or True)
    diff = "--- /dev/null\n+++ b/x\n" + f"@@ -0,0 +1,{lines} @@\n" + "".join(f"+line {n}\n" for n in range(lines))
    asking.on_event(
        PermissionAsked("a", Permission("write x", (), Display("", (DisplayDiff("x", diff),)), DEFAULT_OPTIONS))
    )
    return console, asking, settled


@pytest.mark.req("PM-5")
def test_a_long_diff_is_shown_whole_in_screenfuls_before_it_can_be_answered():
    console, asking, settled = paged(95)
    pages = 1
    while "allow?" not in console.menu.prompt:
        before = len(console.shown)
        asking.answer("y")
        assert (settled, len(console.shown)) == ([], before), "what was not seen yet is not answered"
        asking.answer(" ")
        assert 0 < len(console.shown) - before <= 10
        pages += 1
    assert pages == -(-len(console.shown) // 10)
    assert [line for line in console.shown if "+line" in line] == [f"  +line {n}" for n in range(95)]
    asking.answer("y")
    assert settled[0][1].answer == "allow"


@pytest.mark.req("PM-5")
def test_the_rest_of_a_long_diff_at_once_or_only_its_end():
    console, asking, _ = paged(95)
    asking.answer("e")
    assert "+line 94" in "\n".join(console.shown)
    assert "allow?" in console.menu.prompt
    console, asking, _ = paged(95)
    asking.answer("q")
    shown = "\n".join(console.shown)
    assert "lines not shown" in shown
    assert "+line 50" not in shown
    assert "[y] Allow once" in shown
    assert "allow?" in console.menu.prompt


def test_wide_lines_are_counted_as_the_rows_they_take():
    console, _, _ = paged(95, page=(4, 10))
    assert 0 < len(console.shown) < 10


def test_what_fits_or_is_read_by_machines_is_not_paged():
    for page in ((40, 200), (0, 0)):
        console, _, _ = paged(95, page)
        assert "allow?" in console.menu.prompt


def test_the_rest_of_an_ask_that_was_settled_elsewhere_is_forgotten():
    _, asking, settled = paged(95)
    permission = Permission("write x", options=DEFAULT_OPTIONS)
    asking.on_event(PermissionDecided("a", permission, Decision("allow", by="person")))
    asking.on_event(PermissionAsked("b", permission))
    asking.answer("n")
    assert [ask_id for ask_id, _ in settled] == ["b"]


def test_a_key_too_many_settles_nothing_twice():
    settled = []
    asking = DialogQueue(PagedConsole(), PLAIN, lambda *answer: settled.append(answer) or True)
    asking.on_event(PermissionAsked("a", Permission("one", options=DEFAULT_OPTIONS)))
    for key in "yyn":
        asking.answer(key)
    assert [(ask_id, decision.answer) for ask_id, decision in settled] == [("a", "allow")]


def inquiry(schema=None):
    return QuestionDialog(QuestionAsked(Question("q", "Which?\nReally?", schema)))


def form(**properties):
    return {"type": "object", "properties": properties}


@pytest.mark.req("PM-5")
@pytest.mark.parametrize(
    ("schema", "lines", "reply"),
    [
        (None, ["blue"], QuestionReply("accept", {"text": "blue"})),
        (None, [""], QuestionReply("decline")),
        (form(n={"type": "integer"}), ["x", "1.5", "true", "7"], QuestionReply("accept", {"n": 7})),
        (form(n={"type": "number"}), ["1.5"], QuestionReply("accept", {"n": 1.5})),
        (form(sure={"type": "boolean"}), ["perhaps", "Y"], QuestionReply("accept", {"sure": True})),
        (form(sure={"type": "boolean"}), ["no"], QuestionReply("accept", {"sure": False})),
        (form(c={"enum": ["red", "blue"]}), ["green", "2"], QuestionReply("accept", {"c": "blue"})),
        (form(c={"enum": ["red", "blue"]}), ["red"], QuestionReply("accept", {"c": "red"})),
        (form(c={"enum": [1, 2], "enumNames": ["One", "Two"]}), ["Two"], QuestionReply("accept", {"c": 2})),
        (form(c={"oneOf": [{"const": "r", "title": "Red"}]}), ["1"], QuestionReply("accept", {"c": "r"})),
        (form(a={"default": 5}, b={}), ["", "x"], QuestionReply("accept", {"a": 5, "b": "x"})),
        ({**form(a={}, b={}), "required": ["a"]}, ["x", ""], QuestionReply("accept", {"a": "x"})),
        ({**form(a={}, b={}), "required": ["b"]}, ["x", ""], QuestionReply("decline")),
        ({"properties": {"a": "no schema"}, "required": "a"}, ["x"], QuestionReply("accept", {"a": "x"})),
    ],
)
def test_a_question_is_answered_piece_by_piece_as_its_schema_wants(schema, lines, reply):
    one = inquiry(schema)
    for line in lines:
        assert one.menu().prompt.strip()
        one.step_lines(PLAIN)
        last = one.submit(line)
    assert last == reply


@pytest.mark.parametrize(("line", "action"), [("y", "accept"), ("n", "decline"), ("", "decline")])
def test_an_address_is_shown_with_who_asks_and_taken_or_not(line, action):
    asked = Question("q", "Log in", {"properties": {"x": {}}}, "https://example.com/\x1b[8m?a", "files (MCP)")
    one = QuestionDialog(QuestionAsked(asked))
    shown = "\n".join(one.lines(PLAIN, with_keys=True))
    assert "? files (MCP) asks: Log in\n  https://example.com/" in shown
    assert "\x1b" not in shown
    assert "open this URL [y/n]" in one.menu().prompt
    assert one.submit(line) == QuestionReply(action)


def test_what_a_question_shows_obeys_nobody():
    one = inquiry(form(c={"title": "Pick\x1b[2J", "description": "of\x1b]0;x\x07", "enum": ["a\x1b[31m"]}))
    shown = "\n".join([*one.lines(PLAIN, with_keys=True), one.menu().prompt])
    assert "? Which?\n  Really?" in shown
    assert not set(shown) & {"\x1b", "\x07"}


@pytest.mark.req("PM-5")
def test_a_burst_of_keys_is_no_answer(terminal, models, ostler):
    with models.playing(calls([("write", {"path": "x.txt", "content": "x\n"})])) as server:
        term = terminal("chat", "--base-url", server.base_url, "--model", "scripted")
        term.ready()
        term.type("write x\r")
        term.wait_for("Always allow in this project")
        term.type("please add a yes")
        term.type("\x03")
        term.wait_for("cancelled")
    assert "→ allow" not in term.text
    assert not (ostler.workspace / "x.txt").exists()
