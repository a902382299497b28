"""Dialects from the command line: real process, real server, real files."""

import asyncio
import json

import pytest

from ostler.testing.model_server import text

HERMES = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n</tool_call>'


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


@pytest.fixture
def workspace(ostler):
    (ostler.workspace / "a.txt").write_text("hello\n")
    return ostler.workspace


@pytest.mark.req("MD-6", "TL-4")
@pytest.mark.parametrize("dialect", [[], ["--dialect", "text"], ["--dialect", "xnl"]])
def test_a_call_that_is_only_printed_runs_all_the_same(ostler, models, workspace, dialect):
    with models.playing(text(f"I look.\n\n{HERMES}", chunks=20), text("It says hello.")) as server:
        done = ostler("run", *dialect, *at(server), "what is in a.txt?")
    assert done.code == 0, done.stderr
    assert "It says hello." in done.stdout
    assert "tool_call" not in done.stdout
    assert "hello" in server.requests[1].json["messages"][-1]["content"]
    assert ("tools" in server.requests[0].json) == (not dialect)
    assert server.requests[1].json["messages"][-1]["role"] == ("user" if dialect else "tool")


@pytest.mark.req("MD-6", "TL-8")
def test_a_bad_block_costs_an_answer_and_not_the_turn(ostler, models, workspace):
    code = "const x = 1; SysBuiltIn.bash({ command: 'touch made' })"
    said = (
        f'!unquote_start\n<tool_call id="c1" lang="javascript" #>{code}</#>\n'
        '<tool_call id="c2" lang="javascript" #>SysBuiltIn.read({ path: "a.txt" })</#>\n!unquote_end\n'
        '!unquote_start\n<tool_call id="c3" lang="javascript" #>SysBuiltIn.bash({ command: "touch made" })</#>'
    )
    with models.playing(text(said, chunks=9), text("I see.")) as server:
        done = ostler("run", "--write", "--allow", "bash", "--dialect", "xnl", *at(server), "go")
    assert done.code == 0
    assert "unquote" not in done.stdout
    assert not (workspace / "made").exists()
    told = server.requests[1].json["messages"][-1]["content"]
    assert '<tool_resp id="c1" #c1>INVALID_CALL' in told
    assert "hello" in told
    assert "the block was not closed" in told


@pytest.mark.req("MD-6")
def test_a_call_runs_while_the_model_still_speaks(ostler, models, workspace):
    made = workspace / "made"

    async def is_made():
        while not made.exists():
            await asyncio.sleep(0.02)

    said = (
        '!unquote_start <tool_call id="c1" #>SysBuiltIn.write({ path: "made", content: "x" })</#> !unquote_end'
        " I wait until it is there."
    )
    reply = text(said, chunks=len(said)).hold_after(1 + said.index(" I wait"), is_made)
    with models.playing(reply, text("Done.")) as server:
        done = ostler("run", "--write", "--dialect", "xnl", "-o", "json", *at(server), "go", timeout=120)
    assert done.code == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["answer"], [tool["status"] for tool in told["tools"]]) == ("Done.", ["ok"])
    *_, reply, results = server.requests[1].json["messages"]
    assert (reply["role"], results["role"]) == ("assistant", "user")
    assert reply["content"].endswith("I wait until it is there.")


@pytest.mark.req("MD-6")
def test_the_dialect_of_the_config_is_spoken_and_a_wrong_one_is_refused(ostler, models):
    with models.playing(text("ok")) as server:
        (ostler.home / ".ostler").mkdir()
        profile = {"name": "p", "model": "m", "baseUrl": server.base_url, "dialect": "xnl"}
        (ostler.home / ".ostler" / "config.json").write_text(json.dumps({"models": {"profiles": [profile]}}))
        assert ostler("run", "hello").code == 0
    assert "# The notation XNL" in server.requests[0].json["messages"][0]["content"]
    wrong = ostler("run", "--dialect", "klingon", "hello")
    assert wrong.code == 2
    assert "klingon" in wrong.stderr
