"""Shift-Tab in the line client: the next mode, or the previous candidate of the completion menu."""

import pytest
from tests.frontends.repl.chat_helpers import answer_after_pause, at

from ostler.testing.model_server import calls, text

SHIFT_TAB = "\x1b[Z"


def status(term):
    """Return what is below the prompt."""
    return term.text.rpartition("\n>")[2]


@pytest.mark.req("PM-10")
def test_shift_tab_switches_to_the_next_mode(terminal, models):
    with models.playing() as server:
        term = terminal("chat", *at(server))
        term.ready()
        for shown, label in (
            ("mode accept-edits: workspace edits and sandboxed commands run without asking", "mode accept-edits ·"),
            ("mode plan: nothing is changed", "mode plan ·"),
            ("mode ask: ask before edits and commands", "context"),
        ):
            term.type(SHIFT_TAB)
            term.wait_for(lambda text, shown=shown, label=label: shown in text and label in status(term))
        term.wait_for(lambda text: "mode" not in status(term))
        term.type("/help mode\r")
        term.wait_for("Shift-Tab)")


@pytest.mark.req("PM-10")
def test_shift_tab_selects_the_previous_candidate_of_an_open_menu(terminal, models):
    with models.playing() as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("/mo")
        term.wait_for("show or set the mode")
        term.type("\t")
        term.wait_for(lambda text: "> /models" in text)
        term.type("\t")
        term.wait_for(lambda text: "> /mode " in text or "> /mode\n" in text)
        term.type(SHIFT_TAB)
        term.wait_for(lambda text: "> /models" in text)
    assert "mode accept-edits" not in term.text


@pytest.mark.req("PM-10", "PM-11")
def test_mode_changes_during_a_turn_but_not_in_a_dialog(terminal, models, ostler):
    first, second = (calls([("write", {"path": f"{name}.txt", "content": "x\n"})]) for name in "ab")
    wait = "printf beg; echo un; while ! test -e go; do sleep 0.05; done"
    run = calls([("bash", {"command": wait, "write": True})])
    with models.playing(first, run, second, text("All done.")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("write\r")
        term.wait_for("? write a.txt")
        term.type(SHIFT_TAB)
        answer_after_pause(term, "y", "? run printf")
        assert "mode accept-edits" not in term.text
        answer_after_pause(term, "y", "begun")
        term.type(SHIFT_TAB)
        term.wait_for("mode accept-edits:")
        (ostler.workspace / "go").touch()
        term.wait_for("All done.")
    assert "? write b.txt" not in term.text
    assert (ostler.workspace / "b.txt").exists()
