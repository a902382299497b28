"""End-to-end tests of the line client on a pseudo-terminal."""

import os
import re
import signal

import pytest
from tests.frontends.repl.chat_helpers import (
    CLEARS,
    answer_after_pause,
    at,
    conversation,
    last_message,
)

from ostler.testing.model_server import calls, stall, text


@pytest.mark.req("CL-1", "CL-5")
def test_prompt_is_answered_and_ctrl_d_quits(terminal, models):
    with models.playing(text("Hello there.")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("say hello\r")
        term.wait_for("Hello there.")
        shown = term.ready()
        term.type("\x04")
        term.leave()
    assert shown.index("> say hello") < shown.index("ANSWER\n  Hello there.")
    assert not CLEARS.search(term.raw)


@pytest.mark.req("CL-1")
def test_ostler_without_arguments_opens_the_chat(terminal, models, ostler):
    (ostler.workspace / ".git").mkdir()
    (ostler.workspace / ".git" / "HEAD").write_text("ref: refs/heads/topic\n")
    with models.playing() as server:
        term = terminal(env={"OSTLER_BASE_URL": server.base_url, "OSTLER_MODEL": "scripted"})
        shown = term.ready()
        term.type("/quit\r")
        term.leave()
    assert re.search(r"scripted · context empty · sandbox \w+ · topic", shown)
    assert "sandbox" not in term.text, "the status must not stay in the scrollback"


def test_ostler_without_a_terminal_prints_the_help(ostler):
    done = ostler()
    assert done.code == 0
    assert done.stdout.startswith("usage: ostler")


@pytest.mark.req("CL-6")
def test_long_answer_is_in_the_scrollback_once_and_in_order(terminal, models):
    wanted = [f"line {number} of many" for number in range(2000)]
    reply = "\n".join(wanted)
    with models.playing(text(reply, chunks=300)) as server:
        term = terminal("chat", *at(server))
        term.ready()
        before = len(term.raw)
        term.type("talk\r")
        term.wait_for("↑ ANSWER")
        term.ready()
    shown = [line[2:] for line in term.lines() if line.endswith("of many")]
    assert shown == wanted
    assert not CLEARS.search(term.raw)
    assert len(term.raw) - before <= 3 * len(reply)


@pytest.mark.req("CL-1")
def test_wide_characters(terminal, models):
    with models.playing(text("你好，世界")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("说你好吗")
        term.wait_for(lambda _: term.screen.cursor.x == 2 + 8)
        term.type("\x7f")
        term.wait_for(lambda _: term.screen.cursor.x == 2 + 6)
        term.type("\r")
        term.wait_for("ANSWER")
        term.ready()
        assert last_message(server) == "说你好"
    assert "你好" in term.text.replace(" ", "")


@pytest.mark.req("CL-1")
@pytest.mark.parametrize("key", ["\x1b\r", "\n", "\\\r"], ids=["alt-enter", "ctrl-j", "backslash-enter"])
def test_new_line_keys(terminal, models, key):
    with models.playing(text("ok")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type(f"one{key}two\r")
        term.wait_for("ANSWER")
        assert last_message(server) == "one\ntwo"


@pytest.mark.req("CL-1")
def test_paste_of_many_lines_is_one_prompt(terminal, models):
    pasted = "\n".join(f"row {number}" for number in range(300))
    with models.playing(text("ok")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type(f"\x1b[200~{pasted}\x1b[201~")
        term.wait_for("row 299")
        term.type("\r")
        term.wait_for("ANSWER")
        assert last_message(server) == pasted


@pytest.mark.req("CL-1")
def test_history_survives_a_restart(terminal, models):
    with models.playing(text("first"), text("second")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("remember me\r")
        term.wait_for("first")
        term.ready()
        term.type("\x04")
        term.leave()
        again = terminal("chat", *at(server))
        again.ready()
        again.type("\x1b[A")
        again.wait_for("> remember me")
        again.type("\x03")
        again.ready()
        again.type("\x12")
        again.wait_for("I-search backward")
        again.type("mem")
        again.wait_for("> remember me")
        again.type("\r")
        again.prompted("remember me")
        again.type("\r")
        again.wait_for("second")
        assert last_message(server) == "remember me"


@pytest.mark.req("PM-5")
def test_edit_needs_approval_and_shows_its_diff(terminal, models, ostler):
    (ostler.workspace / "a.txt").write_text("old\n")
    read, write = ("read", {"path": "a.txt"}), ("write", {"path": "a.txt", "content": "new\n"})
    with models.playing(calls([read]), calls([write]), text("Done.")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("change it\r")
        shown = term.wait_for("allow? [")
        assert (ostler.workspace / "a.txt").read_text() == "old\n"
        term.type("y\r")
        done = term.wait_for("Done.")
    assert (ostler.workspace / "a.txt").read_text() == "new\n", done
    for part in (
        "a.txt: would be updated, +1 -1",
        "-old",
        "+new",
        "[s] Allow write a.txt in",
        "[e] Allow all edits",
        "[a]",
        "[m]",
    ):
        assert part in shown, part


@pytest.mark.req("PM-5")
def test_denial_with_a_message_to_the_agent(terminal, models, ostler):
    with models.playing(calls([("write", {"path": "b.txt", "content": "x"})]), text("Sorry.")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("write b\r")
        term.wait_for("allow? [")
        term.type("m\r")
        term.wait_for("message to the agent:")
        term.type("\x1b")
        term.wait_for("allow? [")
        term.type("m\r")
        term.wait_for("message to the agent:")
        term.type("use c.txt instead\r")
        term.wait_for("Sorry.")
        assert "use c.txt instead" in last_message(server)
    assert not (ostler.workspace / "b.txt").exists()


@pytest.mark.req("PM-5", "CL-2")
def test_dangerous_command_has_only_yes_and_no(terminal, models, ostler):
    (ostler.workspace / "kept").mkdir()
    with models.playing() as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("!rm -rf kept\r")
        shown = term.wait_for("allow? [y/n]")
        term.type("sa")
        answer_after_pause(term, "n", "→ deny")
    assert "rm -rf kept" in shown
    assert "impact:" in shown
    assert (ostler.workspace / "kept").is_dir()


@pytest.mark.req("CL-2", "SE-5")
@pytest.mark.parametrize("mark", ["!", "@!", "! "])
def test_shell_command_is_reported_to_the_model_later(terminal, models, mark):
    with models.playing(text("I saw.")) as server:
        term = terminal("chat", *at(server), "--allow", "bash:*")
        term.ready()
        term.type(f"{mark}printf 'a%s\\n' b\r")
        term.wait_for("\n    ab")
        term.ready()
        term.type("did you see?\r")
        term.wait_for("I saw.")
        (asked, command), (answered, output), _ = conversation(server)
    assert (asked, answered) == ("user", "assistant")
    assert "printf" in command
    assert "ab" in output


@pytest.mark.req("CL-2")
def test_empty_shell_command_is_rejected(terminal, models):
    with models.playing() as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("!\r")
        term.wait_for("type a command after the !")


def test_shell_command_output_is_shown_in_full(terminal, models):
    with models.playing() as server:
        term = terminal("chat", *at(server), "--allow", "bash:*")
        term.ready()
        term.type("!seq 1000 1200\r")
        term.wait_for("\n    1200")
    numbers = [line.strip() for line in term.lines() if re.fullmatch(r"    1\d\d\d", line)]
    assert numbers == [str(number) for number in range(1000, 1201)]


@pytest.mark.req("CL-2", "CL-3")
def test_mentioned_files_are_attached_and_urls_are_not_fetched(terminal, models, ostler):
    (ostler.workspace / "a b.txt").write_text("spaced words\n")
    (ostler.workspace / "c.txt").write_text("plain words\n")
    with models.playing(text("Read.")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type('see @"a b.txt", @file:c.txt. me@example.org @https://example.org/x\r')
        term.wait_for("Read.")
        request = server.requests[0].body.decode()
    assert "spaced words" in request
    assert "plain words" in request
    assert term.text.index("> see @") < term.text.index("attached c.txt (1 line)"), (
        "the notice must be below its prompt"
    )
    assert "not attached" not in term.text and "attached http" not in term.text


@pytest.mark.req("CL-9")
def test_ctrl_c_cancels_the_turn(terminal, models):
    with models.playing(stall("body"), text("Still here.")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("wait\r")
        models.wait(server.wait_for_requests(1))
        term.wait_for("working, Ctrl-C cancels")
        term.type("\x03")
        term.wait_for("✗ cancelled")
        term.ready()
        term.type("and now?\r")
        term.wait_for("Still here.")
        term.ready()
        term.type("\x03")
        term.wait_for("press Ctrl-C again to quit")
        term.type("\x03")
        term.leave()


@pytest.mark.req("CL-9")
def test_ctrl_c_clears_typed_text_first(terminal, models):
    with models.playing() as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("never mind")
        term.wait_for("> never mind")
        term.type("\x03")
        term.ready()
        assert "again to quit" not in term.text


@pytest.mark.req("EN-16")
def test_prompt_typed_during_a_turn_is_queued(terminal, models):
    call = ("bash", {"command": "cat fifo"})
    with models.playing(calls([call]), text("One."), text("Two.")) as server:
        term = terminal("chat", *at(server), "--allow", "bash:*")
        term.ready()
        term.type("!mkfifo fifo\r")
        term.wait_for("exit 0")
        term.ready()
        term.type("first\r")
        term.wait_for("⏺ bash")
        term.type("second\r")
        term.wait_for("1 queued")
        term.type("third\r")
        term.wait_for("2 queued")
        term.type("\x1bq")
        term.wait_for("1 queued")
        term.wait_for("third")
        term.type("\x03")
        fifo = os.open(term.workspace / "fifo", os.O_WRONLY)
        os.close(fifo)
        term.wait_for("Two.")
        assert last_message(server) == "second"
    assert term.text.index("One.") < term.text.index("> second")


@pytest.mark.req("EN-16", "PM-5")
def test_dialog_saves_and_restores_typed_text(terminal, models):
    slow = ("bash", {"command": "echo so far; cat fifo"})
    with models.playing(calls([slow]), calls([("write", {"path": "x", "content": "x"})]), text("Done.")) as server:
        term = terminal("chat", *at(server), "--allow", "bash:*")
        os.mkfifo(term.workspace / "fifo")
        term.ready()
        term.type("go\r")
        term.wait_for("\n  so far\n")
        term.type("half a thou")
        term.wait_for("> half a thou")
        os.close(os.open(term.workspace / "fifo", os.O_WRONLY))
        asked = term.wait_for("allow? [")
        assert "half a thou" not in asked
        answer_after_pause(term, "n", "→ deny")
        term.wait_for("Done.")
        shown = term.wait_for("> half a thou")
    assert shown.count("so far") == 2, "only in the call's line and in its result"


@pytest.mark.req("CL-1")
def test_resize_while_text_streams(terminal, models):
    reply = "\n".join(f"row {number}." for number in range(400))
    with models.playing(text(reply, chunks=100)) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("talk\r")
        term.wait_for("row 5.")
        for columns in (60, 100, 50, 80):
            term.resize(columns)
        term.wait_for("↑ ANSWER")
        term.ready()
    assert [line.strip("● ") for line in term.lines() if re.search(r"row \d+\.$", line)] == reply.split("\n")


@pytest.mark.req("CL-9")
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "in a turn"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signal_quits_and_restores_the_terminal(terminal, models, number, status, busy):
    with models.playing(*([stall("body")] if busy else [])) as server:
        term = terminal("chat", *at(server))
        term.ready()
        assert not term.restored()
        if busy:
            term.type("wait\r")
            models.wait(server.wait_for_requests(1))
            term.wait_for("working, Ctrl-C cancels")
        term.process.send_signal(number)
        assert term.process.wait(40) == status
        assert term.restored()


@pytest.mark.req("CL-9")
def test_closed_terminal_quits(terminal, models):
    with models.playing() as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.hang_up()
        assert term.process.wait(20) == 129


@pytest.mark.req("CL-5")
@pytest.mark.parametrize("name", ["NO_COLOR", "AGENT_NO_COLOR"])
def test_colour_can_be_switched_off(terminal, models, name):
    with models.playing(text("Hello.")) as server:
        term = terminal("chat", *at(server), env={name: "1"})
        term.ready()
        term.type("hi\r")
        term.wait_for("Hello.")
        term.ready()
    assert not re.search(rb"\x1b\[[\d;]*3[0-8][;m]|\x1b\[[\d;]*9\dm", term.raw)


@pytest.mark.req("CL-7")
def test_slash_commands(terminal, models):
    with models.playing() as server:
        term = terminal("chat", *at(server))
        term.ready()
        for command, wanted in (
            ("/help", "/permissions"),
            ("/todo", "the todo list is empty"),
            ("/cost", "0 tokens in"),
            ("/undo", "nothing to undo in this workspace"),
            ("/agents", "* build"),
            ("/agents plan", "now using agent plan"),
            ("/mode plam", "did you mean plan?"),
            ("/skills", "no skills available"),
            ("/mcp", "no MCP server is configured"),
            ("/sessions", "0 turns"),
            ("/resume", "there is no other session"),
            ("/compact", "nothing to compact"),
            ("/revert", "there are no prompts yet"),
            ("/title My work", "title set to My work"),
            ("/theme light", "* light"),
            ("/details", "now shown in full"),
            ("/stats", "did you mean /status?"),
            ("/status", "backend  engine"),
            ("/models", "*  1  scripted"),
            ("/models othe", "unknown model 'othe'"),
            ("/models scripted", "now using model scripted"),
            ("/permissions", "you added no rules"),
        ):
            term.type(f"{command}\r")
            term.wait_for(wanted)
        term.wait_for("scripted · context empty")


@pytest.mark.req("CL-1")
@pytest.mark.parametrize(
    ("flags", "env"), [(["--plain"], {}), ([], {"TERM": "dumb"}), ([], {"TERM": ""})], ids=["plain", "dumb", "no TERM"]
)
def test_plain_console_numbers_its_menus(terminal, models, ostler, flags, env):
    with models.playing(calls([("write", {"path": "p.txt", "content": "x\n"})]), text("Written.")) as server:
        term = terminal("chat", *at(server), *flags, env=env)
        term.wait_for(lambda text: text.rstrip().endswith(">"))
        term.type("write p\r")
        asked = term.wait_for("6) Deny, with a message")
        assert "1) Allow once (y)" in asked
        assert "2) Allow write p.txt in this session (s)" in asked
        assert "3) Allow all edits in this workspace, in this session (e)" in asked
        term.type("1\r")
        term.wait_for(lambda text: text.rstrip().endswith("Written.\n>"))
        term.type("\x04")
        term.leave()
    assert (ostler.workspace / "p.txt").read_text() == "x\n"
    assert b"\x1b" not in term.raw


@pytest.mark.req("CL-1")
def test_pipe_is_read_line_by_line(ostler, models):
    replies = (calls([("write", {"path": "q.txt", "content": "x\n"})]), text("No."), text("Yes."))
    with models.playing(*replies) as server:
        done = ostler("chat", *at(server), stdin="write q\nn\nand now?\n")
    assert done.code == 0
    assert done.stdout.index("→ deny") < done.stdout.index("No.") < done.stdout.index("> and now?")
    assert "Yes." in done.stdout
    assert not (ostler.workspace / "q.txt").exists()


def test_end_of_pipe_denies_open_requests(ostler, models):
    with models.playing(calls([("write", {"path": "q.txt", "content": "x\n"})]), text("Refused.")) as server:
        done = ostler("chat", *at(server), stdin="write q\n")
    assert done.code == 0
    assert "the input has ended" in done.stdout
    assert "Refused." in done.stdout


def test_turn_finishes_after_the_end_of_the_pipe(ostler, models):
    replies = (
        calls([("write", {"path": "q.txt", "content": "x\n"})]),
        calls([("write", {"path": "r.txt", "content": "x\n"})]),
        text("Both refused."),
    )
    with models.playing(*replies) as server:
        done = ostler("chat", *at(server), stdin="write q\nn\n")
    assert done.code == 0
    assert "Both refused." in done.stdout
