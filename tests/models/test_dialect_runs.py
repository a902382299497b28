"""Dialects through the command line, with a real process, server and files."""

import asyncio
import json

import pytest

from ostler.testing.model_server import text

HERMES = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n</tool_call>'


def server_flags(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


@pytest.fixture
def workspace(ostler):
    (ostler.workspace / "a.txt").write_text("hello\n")
    return ostler.workspace


@pytest.mark.req("MD-6", "TL-4")
@pytest.mark.parametrize("dialect", [[], ["--dialect", "text"], ["--dialect", "xnl"]])
def test_call_in_text_is_executed(ostler, models, workspace, dialect):
    with models.playing(text(f"I look.\n\n{HERMES}", chunks=20), text("It says hello.")) as server:
        done = ostler("run", *dialect, *server_flags(server), "what is in a.txt?")
    assert done.code == 0, done.stderr
    assert "It says hello." in done.stdout
    assert "tool_call" not in done.stdout
    assert "hello" in server.requests[1].json["messages"][-1]["content"]
    assert ("tools" in server.requests[0].json) == (not dialect)
    assert server.requests[1].json["messages"][-1]["role"] == ("user" if dialect else "tool")


@pytest.mark.req("MD-6", "TL-8")
def test_invalid_block_does_not_end_the_turn(ostler, models, workspace):
    code = "const x = 1; SysBuiltIn.bash({ command: 'touch made' })"
    reply = (
        f'!unquote_start\n<tool_call id="c1" lang="javascript" #>{code}</#>\n'
        '<tool_call id="c2" lang="javascript" #>SysBuiltIn.read({ path: "a.txt" })</#>\n!unquote_end\n'
        '!unquote_start\n<tool_call id="c3" lang="javascript" #>SysBuiltIn.bash({ command: "touch made" })</#>'
    )
    with models.playing(text(reply, chunks=9), text("I see.")) as server:
        done = ostler("run", "--write", "--allow", "bash", "--dialect", "xnl", *server_flags(server), "go")
    assert done.code == 0
    assert "unquote" not in done.stdout
    assert not (workspace / "made").exists()
    results = server.requests[1].json["messages"][-1]["content"]
    assert '<tool_resp id="c1" #c1>INVALID_CALL' in results
    assert "hello" in results
    assert "the block is not closed" in results


@pytest.mark.req("MD-6")
def test_call_runs_while_the_reply_is_streaming(ostler, models, workspace):
    created = workspace / "made"

    async def file_exists():
        while not created.exists():
            await asyncio.sleep(0.02)

    content = (
        '!unquote_start <tool_call id="c1" #>SysBuiltIn.write({ path: "made", content: "x" })</#> !unquote_end'
        " I wait until it is there."
    )
    reply = text(content, chunks=len(content)).hold_after(1 + content.index(" I wait"), file_exists)
    with models.playing(reply, text("Done.")) as server:
        done = ostler("run", "--write", "--dialect", "xnl", "-o", "json", *server_flags(server), "go", timeout=120)
    assert done.code == 0, done.stderr
    output = json.loads(done.stdout)
    assert (output["answer"], [tool["status"] for tool in output["tools"]]) == ("Done.", ["ok"])
    *_, reply, results = server.requests[1].json["messages"]
    assert (reply["role"], results["role"]) == ("assistant", "user")
    assert reply["content"].endswith("I wait until it is there.")


@pytest.mark.req("MD-6")
def test_configured_dialect_is_used_and_unknown_one_is_rejected(ostler, models):
    with models.playing(text("ok")) as server:
        (ostler.home / ".ostler").mkdir()
        profile = {"name": "p", "model": "m", "baseUrl": server.base_url, "dialect": "xnl"}
        (ostler.home / ".ostler" / "config.json").write_text(json.dumps({"models": {"profiles": [profile]}}))
        assert ostler("run", "hello").code == 0
    assert "# The notation XNL" in server.requests[0].json["messages"][0]["content"]
    failed = ostler("run", "--dialect", "klingon", "hello")
    assert failed.code == 2
    assert "klingon" in failed.stderr


@pytest.mark.req("MD-6")
@pytest.mark.parametrize("dialect", [[], ["--dialect", "text"]])
def test_call_that_a_file_contains_is_not_executed_when_quoted(ostler, models, workspace, dialect):
    call = '{"name": "write", "arguments": {"path": "made", "content": "x"}}'
    (workspace / "a.txt").write_text(f"# Notes\n{call}\n")
    replies = text(HERMES), text(f"The file contains:\n\n```json\n{call}\n```"), text("That is all.")
    with models.playing(*replies) as server:
        done = ostler("run", "--write", *dialect, *server_flags(server), "what is in a.txt?")
    assert done.code == 0, done.stderr
    assert not (workspace / "made").exists()
    assert "read as a quotation" in server.requests[2].json["messages"][-1]["content"]


XNL_CALL = 'SysBuiltIn.read_file({ path: "notes.md" })'
TAGGED_CALL = '<tool_call>\n{"name": "read",  "arguments": {"path": "notes.md"}}\n</tool_call>'


@pytest.mark.req("MD-4", "TL-4", "SE-6")
@pytest.mark.parametrize(
    ("dialect", "reply", "source", "line"),
    [
        (
            "xnl",
            f'Look.\n!unquote_start\n<tool_call id="c1" #>{XNL_CALL}</#>\n!unquote_end\n',
            XNL_CALL,
            '⏺ SysBuiltIn.read_file {"path": "notes.md"}',
        ),
        ("text", f"Look.\n{TAGGED_CALL}", TAGGED_CALL, '⏺ read {"path": "notes.md"}'),
        ("native", f"Look.\n{TAGGED_CALL}", TAGGED_CALL, '⏺ read {"path": "notes.md"}'),
    ],
    ids=["xnl", "text", "native"],
)
def test_call_is_recorded_as_the_model_wrote_it(ostler, models, workspace, dialect, reply, source, line):
    (workspace / "notes.md").write_text("x\n")
    with models.playing(text(reply, chunks=9), text("I see.")) as server:
        done = ostler("run", "--dialect", dialect, *server_flags(server), "go")
    assert line in done.stdout.splitlines()
    assert done.stdout.startswith("● Look.\n  ↑ PLAN\n")
    path = next((ostler.home / ".ostler").rglob("history.xnl"))
    shown = ostler("xnl", "parse", str(path))
    assert json.dumps(source)[1:-1] in shown.stdout or source in path.read_text()
    journal = next((ostler.home / ".ostler").rglob("journal.jsonl")).read_text()
    recorded = [
        part["call"]["source"]
        for event in (json.loads(row)["event"] for row in journal.splitlines())
        if event["type"] == "message_done"
        for part in event["message"]["parts"]
        if part["type"] == "call"
    ]
    assert recorded == [source]


@pytest.mark.req("MD-6", "CL-5")
def test_unreadable_call_is_explained_to_the_user(ostler, models):
    reply = '!unquote_start\n<tool_call id="s" #>not a call(</#>\n!unquote_end'
    with models.playing(text(reply), text("I see.")) as server:
        done = ostler("run", "--dialect", "xnl", *server_flags(server), "go")
    assert done.stdout.splitlines()[:2] == [
        '⏺ call <tool_call id="s" #>not a call(</#>',
        "  ⎿ the model's call could not be read, so nothing ran; the model gets the reason",
    ]
    assert "there is no tool" not in done.stdout
    assert "You wrote" in server.requests[1].json["messages"][-1]["content"]
