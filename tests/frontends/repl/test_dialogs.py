"""Approval requests and questions: their answers and the resulting decisions."""

import pytest

from ostler.core.display import Display, DisplayDiff
from ostler.core.events import PermissionAsked, PermissionDecided, QuestionAsked
from ostler.core.permission import (
    AnswerOption,
    Decision,
    Need,
    Permission,
    Question,
    QuestionReply,
    is_confirmed,
    make_confirmation,
)
from ostler.frontends.repl.dialogs import DialogQueue, form_lines, step_lines
from ostler.interaction.approval_form import ApprovalForm
from ostler.interaction.question_form import QuestionForm
from ostler.rendering.style import Styler
from ostler.session.answer_options import with_answers
from ostler.testing.model_server import calls

PLAIN = Styler(enabled=False)
DIFF = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+eins\n@@ -9 +9 @@\n-nine\n+neun\n"


def ask(diff="", once_only=False, options=(), cut=False, needs=(Need("probe", "x", rule_pattern="x*"),)):
    preview = Display("", (DisplayDiff("x", diff, truncated=cut),) if diff else ())
    permission = Permission("write x", needs, preview, options, by_hunk=bool(diff) and not cut)
    return ApprovalForm(PermissionAsked("a", with_answers(permission, once_only=once_only), once_only))


def answerable(permission):
    return with_answers(permission, once_only=False)


def keys(one):
    return [key for key, _ in one.menu().answers]


def answered(one, *lines):
    """Submit lines and return the decision after the last; the others must not decide."""
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
def test_single_key_decides(line, decision):
    assert ask().submit(line) == decision


@pytest.mark.req("PM-5")
def test_dangerous_request_has_only_allow_once_and_deny():
    assert keys(ask(DIFF, once_only=True)) == ["y", "n"]
    wide = (*ask().event.permission.options, AnswerOption("more", "For ever", "allow_always"))
    assert keys(ask(once_only=True, options=wide)) == ["y", "n"]


@pytest.mark.req("PM-5")
def test_lasting_answers_name_their_rule():
    shown = form_lines(ask(), PLAIN, with_keys=True)
    assert "  [s] Allow probe x* in this session, then Enter" in shown
    assert "  [a] Always allow probe x* in this project, then Enter" in shown


@pytest.mark.req("PM-5", "PM-11")
def test_rules_are_listed_if_they_are_too_long_and_named_in_the_answers_of_an_agent():
    long = ask(needs=tuple(Need("bash", f"tool{number} {'x' * 40}") for number in range(3)))
    shown = form_lines(long, PLAIN, with_keys=True)
    assert "  [s] Allow the 3 listed rules in this session, then Enter" in shown
    assert f"  rule of the lasting answers: bash: tool2 {'x' * 40}" in shown
    own = ask(options=(AnswerOption("1", "Trust me", "allow_always"), AnswerOption("2", "No", "deny")))
    assert '  [a] Always allow probe x* in this project ("Trust me"), then Enter' in form_lines(
        own, PLAIN, with_keys=True
    )


@pytest.mark.req("PM-11")
def test_rule_cannot_imitate_an_answer():
    shown = form_lines(ask(needs=(Need("bash", "x\n  [y] Deny"),)), PLAIN, with_keys=True)
    assert not any(line.startswith("  [y] Deny") for line in shown)


@pytest.mark.req("PM-11")
def test_edit_can_be_allowed_for_its_folder_and_for_the_workspace():
    one = ask(needs=(Need("write", "src/a.py", rule_pattern="src/a.py"),))
    assert keys(one) == ["y", "s", "f", "e", "a", "n", "m"]
    shown = form_lines(one, PLAIN, with_keys=True)
    assert "  [f] Allow edits in src/ in this session, then Enter" in shown
    assert "  [e] Allow all edits in this workspace, in this session, then Enter" in shown
    assert one.menu().confirmed_keys == ("s", "f", "e", "a")
    assert one.submit("e") == Decision("allow", "person", "session", "edits")
    assert one.submit("f") == Decision("allow", "person", "session", "folder")


def test_options_of_the_same_kind_have_different_keys():
    two = (
        AnswerOption("1", "This once", "allow_once"),
        AnswerOption("2", "That once", "allow_once"),
        AnswerOption("3", "No", "deny"),
    )
    one = ask(options=two)
    assert keys(one) == ["y", "2", "n", "m"]
    assert one.submit("2").option_id == "2"


@pytest.mark.req("PM-5")
def test_denial_with_a_message():
    decision = answered(ask(), "m", "  use y instead ")
    assert (decision.answer, decision.feedback) == ("deny", "use y instead")


@pytest.mark.req("PM-5")
def test_some_hunks_are_allowed():
    one = ask(DIFF)
    assert keys(one)[-1] == "h"
    assert one.submit("h") is None
    assert "hunk 1 of 2: x, would be updated" in "\n".join(step_lines(one, PLAIN))
    assert one.submit("n") is None
    assert step_lines(one, PLAIN)[:3] == ["  → skipped", "", "  hunk 2 of 2: x, would be updated"]
    assert answered(one, "x", "y") == Decision("allow", "person", "once", "once", hunks=(2,))


@pytest.mark.req("PM-5")
def test_all_hunks_allow_and_no_hunk_denies():
    assert answered(ask(DIFF), "h", "y", "y") == Decision("allow", "person", "once", "once")
    refused = answered(ask(DIFF), "h", "n", "n")
    assert (refused.answer, refused.feedback) == ("deny", "No hunk was accepted.")


def test_hunks_are_not_offered_for_one_hunk_or_a_truncated_diff():
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
    """Open an approval request with a diff of this many lines on a screen of this size."""
    console, answers_given = PagedConsole(page), []
    dialogs = DialogQueue(console, PLAIN, lambda *answer: answers_given.append(answer) or True)
    diff = "--- /dev/null\n+++ b/x\n" + f"@@ -0,0 +1,{lines} @@\n" + "".join(f"+line {n}\n" for n in range(lines))
    dialogs.on_event(
        PermissionAsked("a", answerable(Permission("write x", (), Display("", (DisplayDiff("x", diff),)))))
    )
    return console, dialogs, answers_given


@pytest.mark.req("PM-5")
def test_long_diff_is_paged_before_it_can_be_answered():
    console, dialogs, answers_given = paged(95)
    pages = 1
    while "allow?" not in console.menu.prompt:
        before = len(console.shown)
        dialogs.answer("y")
        assert (answers_given, len(console.shown)) == ([], before), (
            "a request that is not completely visible cannot be answered"
        )
        dialogs.answer(" ")
        assert 0 < len(console.shown) - before <= 10
        pages += 1
    assert pages == -(-len(console.shown) // 10)
    assert [line for line in console.shown if "+line" in line] == [f"  +line {n}" for n in range(95)]
    dialogs.answer("y")
    assert answers_given[0][1].answer == "allow"


@pytest.mark.req("PM-5")
def test_show_all_or_skip_to_the_end_of_a_long_diff():
    console, dialogs, _ = paged(95)
    dialogs.answer("e")
    assert "+line 94" in "\n".join(console.shown)
    assert "allow?" in console.menu.prompt
    console, dialogs, _ = paged(95)
    dialogs.answer("q")
    shown = "\n".join(console.shown)
    assert "lines not shown" in shown
    assert "+line 50" not in shown
    assert "[y] Allow once" in shown
    assert "allow?" in console.menu.prompt


def test_wrapped_lines_are_counted_as_rows():
    console, _, _ = paged(95, page=(4, 10))
    assert 0 < len(console.shown) < 10


def test_short_output_and_pipes_are_not_paged():
    for page in ((40, 200), (0, 0)):
        console, _, _ = paged(95, page)
        assert "allow?" in console.menu.prompt


def test_rest_of_a_request_answered_elsewhere_is_discarded():
    _, dialogs, answers_given = paged(95)
    permission = answerable(Permission("write x"))
    dialogs.on_event(PermissionDecided("a", permission, Decision("allow", by="person")))
    dialogs.on_event(PermissionAsked("b", permission))
    dialogs.answer("n")
    assert [ask_id for ask_id, _ in answers_given] == ["b"]


def test_request_is_answered_only_once():
    answers_given = []
    dialogs = DialogQueue(PagedConsole(), PLAIN, lambda *answer: answers_given.append(answer) or True)
    dialogs.on_event(PermissionAsked("a", answerable(Permission("one"))))
    for key in "yyn":
        dialogs.answer(key)
    assert [(ask_id, decision.answer) for ask_id, decision in answers_given] == [("a", "allow")]


def question_dialog(schema=None):
    return QuestionForm(QuestionAsked(Question("q", "Which?\nReally?", schema)))


def form(**properties):
    return {"type": "object", "properties": properties}


LIST = {"type": "array", "items": {"type": "string", "enum": ["a", "b"], "enumNames": ["One", "Two"]}}
TITLED_LIST = {
    "type": "array",
    "minItems": 2,
    "maxItems": 2,
    "items": {"anyOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]},
}


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
        (form(c=LIST), ["", "3", "1, Two"], QuestionReply("decline")),
        (form(c=LIST), ["3", "1, Two"], QuestionReply("accept", {"c": ["a", "b"]})),
        (form(c=TITLED_LIST), ["1", "1,2,2", "2,Red"], QuestionReply("accept", {"c": ["b", "r"]})),
        (form(c={"type": "array", "items": {"type": "string"}}), ["x, y,"], QuestionReply("accept", {"c": ["x", "y"]})),
        (form(n={"type": "integer", "minimum": 1, "maximum": 9}), ["0", "10", "9"], QuestionReply("accept", {"n": 9})),
        (form(n={"type": "string", "maxLength": 3}), ["four", "two"], QuestionReply("accept", {"n": "two"})),
        (form(a={"default": 5}, b={}), ["", "x"], QuestionReply("accept", {"a": 5, "b": "x"})),
        ({**form(a={}, b={}), "required": ["a"]}, ["x", ""], QuestionReply("accept", {"a": "x"})),
        ({**form(a={}, b={}), "required": ["b"]}, ["x", ""], QuestionReply("decline")),
        ({"properties": {"a": "no schema"}, "required": "a"}, ["x"], QuestionReply("accept", {"a": "x"})),
    ],
)
def test_question_is_answered_field_by_field(schema, lines, reply):
    one = question_dialog(schema)
    for line in lines:
        assert one.menu().prompt.strip()
        step_lines(one, PLAIN)
        last = one.submit(line)
        if last:
            break
    assert last == reply


@pytest.mark.parametrize(("line", "action"), [("y", "accept"), ("n", "decline"), ("", "decline")])
def test_url_question(line, action):
    asked = Question("q", "Log in", {"properties": {"x": {}}}, "https://example.com/\x1b[8m?a", "files (MCP)")
    one = QuestionForm(QuestionAsked(asked))
    shown = "\n".join(form_lines(one, PLAIN, with_keys=True))
    assert "? files (MCP) asks: Log in\n  https://example.com/" in shown
    assert "\x1b" not in shown
    assert "open this URL [y/n]" in one.menu().prompt
    assert one.submit(line) == QuestionReply(action)


@pytest.mark.parametrize(
    ("lines", "is_yes"), [(["y"], True), (["perhaps", "yes"], True), (["n"], False), (["no"], False), ([""], False)]
)
def test_confirmation_is_a_yes_or_no_question(lines, is_yes):
    one = QuestionForm(QuestionAsked(make_confirmation("It may write.", "continue")))
    assert "continue [y/n] (empty: decline)" in one.menu().prompt
    replies = [one.submit(line) for line in lines]
    assert is_confirmed(replies[-1]) is is_yes
    assert replies[-1].action == ("accept" if is_yes else "decline")


def test_question_has_no_control_characters():
    one = question_dialog(form(c={"title": "Pick\x1b[2J", "description": "of\x1b]0;x\x07", "enum": ["a\x1b[31m"]}))
    shown = "\n".join([*form_lines(one, PLAIN, with_keys=True), one.menu().prompt])
    assert "? Which?\n  Really?" in shown
    assert not set(shown) & {"\x1b", "\x07"}


@pytest.mark.req("PM-5")
def test_burst_of_keys_is_not_an_answer(terminal, models, ostler):
    with models.playing(calls([("write", {"path": "x.txt", "content": "x\n"})])) as server:
        term = terminal("chat", "--base-url", server.base_url, "--model", "scripted")
        term.ready()
        term.type("write x\r")
        term.wait_for("Always allow write x.txt in this project")
        term.type("please add a yes")
        term.type("\x03")
        term.wait_for("cancelled")
    assert "→ allow" not in term.text
    assert not (ostler.workspace / "x.txt").exists()
