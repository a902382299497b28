"""End-to-end tests of typing: completion, external editor, vi keys, long pastes, suspending."""

import json
import os
import re
import signal
import stat

import pytest
from tests.frontends.repl.chat_helpers import at, last_message

from ostler.testing.model_server import calls, stall, text


def config(ostler, content):
    folder = ostler.home / ".ostler"
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(content)


def editor(ostler, script):
    """Create a script that acts as the user's editor."""
    program = ostler.home / "editor"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"EDITOR": str(program)}


@pytest.mark.req("CL-4")
def test_candidates_are_shown_while_typing_and_tab_accepts_one(terminal, models, ostler):
    (ostler.workspace / "src").mkdir()
    (ostler.workspace / "src" / "main.py").write_text("print(1)\n")
    with models.playing(text("Read.")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("/und")
        term.wait_for("undo the last prompt")
        term.type("\x03")
        term.wait_for(lambda shown: "undo the last prompt" not in shown)
        term.type("look at @mainp")
        term.wait_for("src/main.py")
        term.type("\t")
        term.wait_for("> look at @src/main.py")
        term.type("\r")
        term.type("please")
        term.wait_for("> look at @src/main.py please")
        term.type("\r")
        term.wait_for("Read.")
        term.ready()
        assert "print(1)" in server.requests[0].body.decode()
    assert not re.search(rb"\x1b\[[23]J|\x1bc", term.raw)
    assert term.text.count("src/main.py") == 2, "only in the prompt and in the notice about the attachment"


@pytest.mark.req("CL-4")
@pytest.mark.parametrize("line", ["look at @mainp", "!cat src/ma"], ids=["mention", "shell"])
def test_tab_before_the_candidates_accepts_the_first(terminal, models, ostler, line):
    (ostler.workspace / "src").mkdir()
    (ostler.workspace / "src" / "main.py").write_text("print(1)\n")
    with models.playing() as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type(f"{line}\t")
        term.wait_for(f"> {line[: line.rindex(' ')]} {'@' * ('@' in line)}src/main.py")


@pytest.mark.req("CL-4", "CL-2")
def test_agent_mention_is_completed_and_selects_the_agent(terminal, models):
    with models.playing(text("As plan."), text("Still.")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("@agent:pl")
        term.wait_for("  plan ")
        term.type("\t")
        term.wait_for("> @agent:plan")
        term.type(" what is here?")
        term.wait_for("> @agent:plan what is here?")
        term.type("\r")
        term.wait_for("As plan.")
        term.wait_for("plan · scripted")
        term.ready()
        term.type("and now?\r")
        term.wait_for("Still.")
        term.wait_for("plan · scripted")


@pytest.mark.req("CL-4")
def test_enter_sends_a_command_without_a_selected_candidate(terminal, models):
    with models.playing() as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("/tod")
        term.wait_for("show the todo list")
        term.type("o\r")
        term.wait_for("the todo list is empty")


@pytest.mark.req("CL-1")
def test_external_editor_writes_the_prompt(terminal, models, ostler):
    env = editor(ostler, 'printf "written elsewhere\\n" > "$1"')
    with models.playing(text("ok")) as server:
        term = terminal("chat", *at(server), env=env)
        term.ready()
        term.type("draft\x18\x05")
        term.wait_for("> written elsewhere")
        term.type("\r")
        term.wait_for("ANSWER")
        assert last_message(server) == "written elsewhere"


@pytest.mark.req("CL-7")
def test_memory_is_edited_in_the_external_editor(terminal, models, ostler):
    env = editor(ostler, 'echo "# Rules" > "$1"')
    with models.playing() as server:
        term = terminal("chat", *at(server), env=env)
        term.ready()
        term.type("/memory\r")
        term.wait_for("new sessions use it")
        term.ready()
        term.type("!cat AGENTS.md\r")
        term.wait_for("# Rules")


@pytest.mark.req("CL-1")
def test_vi_keys_from_the_settings(terminal, models, ostler):
    config(ostler, '{"ui": {"keys": {"editing": "vi"}}}')
    with models.playing(text("ok")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("one two\x1b")
        term.wait_for(lambda _: term.screen.cursor.x == 2 + 6)
        term.type("bdwaTWO")
        term.wait_for("> one TWO")
        term.type("\r")
        term.wait_for("ANSWER")
        assert last_message(server) == "one TWO"


@pytest.mark.req("CL-1")
@pytest.mark.parametrize("line", ["x" * 92, "x" * 100_000], ids=["short lines", "long lines"])
@pytest.mark.sampled(every=2)
def test_paste_of_a_megabyte_is_sent_completely(terminal, models, ostler, line):
    pasted = "\n".join(f"{number:07} {line}" for number in range(1_000_000 // len(line)))
    with models.playing(text("Got it.")) as server:
        profile = {"name": "wide", "model": "scripted", "base_url": server.base_url, "context": 2_000_000}
        config(ostler, json.dumps({"models": {"active": "wide", "profiles": [profile]}}))
        term = terminal("chat", blind=True)
        term.wait_for("context empty")
        term.type(f"see \x1b[200~{pasted}\x1b[201~")
        term.wait_for(f"{len(pasted):,} characters]")
        term.type(" please\r")
        term.wait_for("Got it.")
        assert last_message(server) == f"see {pasted} please"
    assert len(term.raw) < 100_000, "the paste must not be printed in full"


@pytest.mark.req("CL-9")
def test_esc_cancels_the_turn(terminal, models):
    with models.playing(stall("body"), text("Still here.")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("wait\r")
        models.wait(server.wait_for_requests(1))
        term.wait_for("working, Ctrl-C cancels")
        term.type("\x1b")
        term.wait_for("✗ cancelled")
        term.ready()
        term.type("\x1b")
        term.type("and now?\r")
        term.wait_for("Still here.")


@pytest.mark.req("EN-16")
def test_alt_s_steers_the_running_turn(terminal, models):
    with models.playing(calls([("bash", {"command": "cat fifo"})]), text("Done.")) as server:
        term = terminal("chat", *at(server), "--allow", "bash:*")
        os.mkfifo(term.workspace / "fifo")
        term.ready()
        term.type("go\r")
        term.wait_for("⏺ bash")
        term.type("rather look left\x1bs")
        term.wait_for("↳ rather look left")
        os.close(os.open(term.workspace / "fifo", os.O_WRONLY))
        term.wait_for("Done.")
        assert last_message(server) == "rather look left"


@pytest.mark.req("CL-5")
def test_ctrl_o_shows_the_last_call_in_full(terminal, models):
    with models.playing(calls([("bash", {"command": "seq 100 160"})]), text("Done.")) as server:
        term = terminal("chat", *at(server), "--allow", "bash:*")
        term.ready()
        term.type("go\r")
        term.wait_for("Done.")
        short = term.ready()
        assert "more lines" in short
        assert "\n    130" not in short
        term.type("\x0f")
        term.wait_for("\n    130")
        term.wait_for("now shown in full")


@pytest.mark.req("CL-9")
def test_ctrl_z_suspends_and_continues(terminal, models):
    with models.playing(text("Here.")) as server:
        term = terminal("chat", *at(server), below_a_shell=True)
        term.ready()
        term.type("half")
        term.wait_for("> half")
        term.type("\x1a")
        pid = term.stopped()
        assert term.line_by_line()
        os.kill(pid, signal.SIGCONT)
        term.wait_for(lambda shown: "> half" in shown and not term.line_by_line())
        term.type(" done\r")
        term.wait_for("Here.")
        assert last_message(server) == "half done"


@pytest.mark.req("EN-16")
def test_queue_survives_a_kill(terminal, models):
    with models.playing(stall("body")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("first\r")
        models.wait(server.wait_for_requests(1))
        term.type("second thoughts\r")
        term.wait_for("1 queued")
        os.killpg(term.process.pid, signal.SIGKILL)
        term.process.wait()
        again = terminal("chat", *at(server))
        again.wait_for("not sent because Ostler exited")
        again.wait_for("> second thoughts")


@pytest.mark.req("EN-16")
def test_unsent_prompt_is_announced_below_the_history(terminal, models):
    with models.playing(stall("body")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("first\r")
        models.wait(server.wait_for_requests(1))
        term.type("second thoughts\r")
        term.wait_for("1 queued")
        os.killpg(term.process.pid, signal.SIGKILL)
        term.process.wait()
        again = terminal("chat", "--continue", *at(server))
        again.wait_for("> second thoughts")
        shown = "\n".join(again.lines())
    assert shown.index("> first") < shown.index("✗ cancelled") < shown.index("not sent because Ostler exited")


@pytest.mark.req("CL-9")
def test_bell_rings_if_enabled(terminal, models, ostler):
    config(ostler, '{"ui": {"bell": true}}')
    with models.playing(calls([("write", {"path": "b.txt", "content": "x"})]), text("ok")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("write b\r")
        term.wait_for("allow? [")
        term.type("n\r")
        term.wait_for("ok")
    assert b"\x1b]9;Ostler needs approval: write b.txt\x1b\\\x07" in term.raw
