"""End-to-end tests of undo, redo, and switching between sessions."""

import re

import pytest
from tests.frontends.repl.chat_helpers import at, conversation

from ostler.testing.model_server import calls, stall, text

WRITE = calls([("write", {"path": "a.txt", "content": "new\n"})])


@pytest.mark.req("EN-13", "CL-7")
def test_undo_and_redo_restore_prompts_and_files(terminal, models, ostler):
    (ostler.workspace / "a.txt").write_text("old\n")
    read = calls([("read", {"path": "a.txt"})])
    with models.playing(text("Hello."), read, WRITE, text("Written."), text("Later."), text("Last.")) as server:
        term = terminal("chat", *at(server), "--write")
        term.ready()
        term.type("hello\r")
        term.wait_for("Hello.")
        term.ready()
        term.type("write it\r")
        term.wait_for("Written.")
        term.ready()
        assert (ostler.workspace / "a.txt").read_text() == "new\n"
        term.type("/undo\r")
        term.wait_for("undone: write it")
        term.wait_for("restored a.txt")
        term.prompted("write it")
        assert (ostler.workspace / "a.txt").read_text() == "old\n"
        term.type("\x03what did I say?\r")
        term.wait_for("Later.")
        assert [message for role, message in conversation(server) if role == "user"] == ["hello", "what did I say?"]
        term.ready()
        term.type("/undo\r")
        term.wait_for("undone: what did I say?")
        term.type("\x03/redo\r")
        term.wait_for("redone: what did I say?")
        term.ready()
        term.type("and?\r")
        term.wait_for("Last.")
        assert [message for role, message in conversation(server) if role == "user"][-2:] == ["what did I say?", "and?"]


@pytest.mark.req("CL-7")
def test_redo_is_recognised_after_the_prompt_that_undo_returned(terminal, models):
    with models.playing(text("Hello.")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("hello\r")
        term.wait_for("Hello.")
        term.ready()
        term.type("/undo\r")
        term.prompted("hello")
        term.type("/redo\r")
        term.wait_for("redone: hello")
        term.ready()
        assert len(server.requests) == 1


@pytest.mark.req("SE-3", "CL-7")
def test_sessions_are_listed_resumed_and_forked(terminal, models, ostler):
    with models.playing(text("First."), text("Second."), text("In the copy."), text("Back again.")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("one\r")
        term.wait_for("First.")
        term.ready()
        term.type("/new\r")
        term.wait_for("context empty")
        term.type("two\r")
        term.wait_for("Second.")
        term.ready()
        term.type("/sessions\r")
        listed = term.wait_for(lambda shown: len(re.findall(r"^  [* ] 20\S+Z-\w+  .*1 turn", shown, re.MULTILINE)) == 2)
        here, other = (re.search(rf"^  \{mark} (20\S+)", listed, re.MULTILINE)[1] for mark in ("*", " "))
        term.type("/fork\r")
        term.wait_for(lambda shown: shown.count("Second.") == 2)
        term.ready()
        term.type("three\r")
        term.wait_for("In the copy.")
        assert [message for role, message in conversation(server) if role == "user"] == ["two", "three"]
        term.ready()
        term.type(f"/resume {other}\r")
        term.wait_for(lambda shown: shown.count("First.") == 2)
        term.ready()
        term.type("four\r")
        term.wait_for("Back again.")
        assert [message for role, message in conversation(server) if role == "user"] == ["one", "four"]
    assert here != other


@pytest.mark.req("SE-3")
def test_session_open_in_another_process_cannot_be_resumed(terminal, models, ostler):
    with models.playing(text("First."), text("Mine.")) as server:
        other = terminal("chat", *at(server))
        other.ready()
        other.type("one\r")
        other.wait_for("First.")
        other.ready()
        term = terminal("chat", *at(server))
        term.ready()
        term.type("/resume\r")
        term.wait_for("is open in another process")
        term.ready()
        term.type("two\r")
        term.wait_for("Mine.")
        assert [message for role, message in conversation(server) if role == "user"] == ["two"]


@pytest.mark.req("SE-3")
def test_export_is_in_the_workspace_without_secrets(terminal, models, ostler):
    secret = "sk-proj-" + "a1B2" * 12
    with models.playing(text("Noted.")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type(f"my key is {secret}\r")
        term.wait_for("Noted.")
        term.ready()
        term.type("/export talk.md\r")
        term.wait_for("written to")
        term.ready()
        term.type("/export talk.md\r")
        term.wait_for("already exists")
    written = (ostler.workspace / "talk.md").read_text()
    assert "Noted." in written
    assert secret not in written


@pytest.mark.req("CL-9")
def test_commands_that_need_an_idle_session_are_rejected_during_a_turn(terminal, models):
    with models.playing(stall("body")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("wait\r")
        models.wait(server.wait_for_requests(1))
        for command in ("/new", "/undo", "/resume"):
            term.type(f"{command}\r")
            term.wait_for(lambda shown, command=command: f"> {command}\n  something is running" in shown)
        term.type("\x03")
        term.wait_for("✗ cancelled")


@pytest.mark.req("EN-13")
def test_undo_is_rejected_during_a_manual_command(terminal, models):
    with models.playing() as server:
        term = terminal("chat", *at(server), "--allow", "bash:*")
        term.ready()
        term.type("!sleep 1000\r")
        term.wait_for("working, Ctrl-C cancels")
        term.type("/undo\r")
        term.wait_for("> /undo\n  something is running")
        term.type("\x03")
        term.wait_for("cancelled")
        term.ready()


@pytest.mark.req("EN-11", "CL-7")
def test_project_command_is_completed_and_run(terminal, models, ostler):
    folder = ostler.workspace / ".ostler" / "commands" / "code"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text("---\ndescription: look at it closely\n---\nPlease review $ARGUMENTS now.\n")
    with models.playing(text("Reviewed.")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("/cod")
        term.wait_for("look at it closely")
        term.type("\t")
        term.wait_for("> /code:review")
        term.type("main.py\r")
        term.wait_for("Reviewed.")
        assert conversation(server)[-1] == ("user", "Please review main.py now.")


@pytest.mark.req("CL-7")
def test_diff_shows_changes_since_the_last_commit(terminal, models, ostler, git):
    (ostler.workspace / "a.py").write_text("one\n")
    git("add", "-A")
    git("commit", "-qm", "first")
    (ostler.workspace / "a.py").write_text("two\n")
    with models.playing() as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("/diff\r")
        shown = term.wait_for("+two")
        assert "-one" in shown


@pytest.mark.req("CL-5", "PM-5")
def test_approved_diff_is_not_shown_again(terminal, models, ostler):
    (ostler.workspace / "a.txt").write_text("old\n")
    with models.playing(calls([("read", {"path": "a.txt"})]), WRITE, text("Written.")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("write it\r")
        term.wait_for("allow? [")
        term.type("y\r")
        shown = term.wait_for("Written.")
    assert shown.count("+new") == 1
    assert "⎿ updated a.txt (+1 -1)" in shown
