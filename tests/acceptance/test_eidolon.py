"""Specification 000, the Eidolon agent CLI: every scenario, in its order."""

import json
import os
import subprocess
import sys
import threading

import pytest

from ostler.testing.model_server import calls, sse_reply, text
from ostler.workspace import file_index
from ostler.xnl.chat_records import read_records

req, missing = pytest.mark.req, pytest.mark.missing


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


def configure(home, first, second, *, active, file=".ostler/config.json"):
    """Write the user's config with two profiles, one of them active."""
    (home / file).parent.mkdir(exist_ok=True)
    profiles = [
        {"name": name, "model": "m", "baseUrl": server.base_url, "apiKey": f"key-of-{name}"}
        for name, server in (("first", first), ("second", second))
    ]
    (home / file).write_text(json.dumps({"models": {"profiles": profiles, "active": active}}))


def write_agent(root, name, prompt):
    """Write an agent file."""
    (root / "agents").mkdir(parents=True, exist_ok=True)
    (root / "agents" / f"{name}.md").write_text(f"---\ndescription: {name}\n---\n{prompt}\n")


def write_command(root, path, prompt):
    """Write a file that defines a custom command."""
    file = root / "commands" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{prompt}\n")


@req("FS-1", "FS-2")
def test_api_constrains_access_to_workspace(ostler):
    """Read, write, list and run resolve paths in the workspace; a path that leaves it gets an error with a code."""
    (ostler.workspace / "in.txt").write_text("inside\n")
    (ostler.workspace.parent / "out.txt").write_text("outside\n")
    inside = ostler("tool", "call", "read", '{"path": "in.txt"}')
    assert (inside.code, json.loads(inside.stdout)["data"]["content"]) == (0, "inside")
    assert json.loads(ostler("tool", "call", "list", '{"path": "."}').stdout)["status"] == "ok"
    for tool, arguments in (
        ("read", {"path": "../out.txt"}),
        ("list", {"path": "../.."}),
        ("write", {"path": "../out.txt", "content": "x"}),
    ):
        refused = ostler("tool", "call", "--write", tool, json.dumps(arguments))
        assert (refused.code, json.loads(refused.stdout)["status"]) == (4, "denied")
    ran = json.loads(ostler("tool", "call", "--allow", "bash", "bash", '{"command": "pwd"}').stdout)
    assert ran["data"]["stdout"] == f"{ostler.workspace}\n"
    assert (ostler.workspace.parent / "out.txt").read_text() == "outside\n"


@req("SH-1", "SH-3", "SH-4", "SH-6")
def test_local_runner_blocks_unsafe_commands(ostler, models):
    """`rm -rf /` and, in a headless run, `sudo` are denied and not run.

    A harmless command runs in the workspace and returns its stdout, stderr and exit code.
    """
    for command in ("rm -rf /", "sudo true"):
        with models.playing(calls([("bash", {"command": command})]), text("ok")) as server:
            assert ostler("run", "--write", *at(server), "go").code == 4
    with models.playing(calls([("bash", {"command": "pwd; echo err >&2; exit 3"})]), text("ok")) as server:
        done = ostler("run", "-o", "jsonl", "--allow", "bash", *at(server), "go")
    finished = [
        r["event"]["result"]
        for r in map(json.loads, done.stdout.splitlines())
        if "event" in r and r["event"]["type"] == "tool_finished"
    ]
    assert finished[0]["data"]["stdout"] == f"{ostler.workspace}\n"
    assert (finished[0]["data"]["stderr"], finished[0]["data"]["exit_code"]) == ("err\n", 3)


@req("EN-2", "TL-1", "TL-3", "DX-7")
def test_tool_call_loop_executes_with_stubbed_llm(ostler, models):
    """A scripted model calls `read_file`; the turn runs it, returns the result and ends with the answer."""
    (ostler.workspace / "notes.md").write_text("ship it\n")
    with models.playing(calls([("read", {"path": "notes.md"})]), text("It says: ship it.")) as server:
        done = ostler("run", "-o", "json", *at(server), "what do the notes say?")
    summary = json.loads(done.stdout)
    assert (done.code, summary["answer"], summary["tools"][0]["status"]) == (0, "It says: ship it.", "ok")
    assert "ship it" in server.requests[1].json["messages"][-1]["content"]


@req("MD-6")
def test_xnl_toolcall_protocol_and_prompts(ostler, models):
    """With the XNL dialect, the system prompt has the format, the calling rules and two texts for each tool.

    No native tool schema is sent.
    """
    with models.playing(text("ok")) as server:
        assert ostler("run", "--dialect", "xnl", *at(server), "hello").code == 0
    sent = server.requests[0].json
    assert not {"tools", "tool_choice"} & sent.keys()
    system = sent["messages"][0]["content"]
    tools = [f'<tool {{ namespace = "SysBuiltIn" name = "{name}"' for name in ("read", "write", "edit", "bash")]
    marks = ["You are Ostler", "# The notation XNL", "# Calling tools", *tools]
    assert all(system.count(mark) == 1 for mark in marks)
    assert [system.index(mark) for mark in marks[:3]] == sorted(system.index(mark) for mark in marks[:3])
    for brief in tools:
        detail = system[system.index(brief) :].partition("\n\n")[2]
        assert detail.startswith('<type_def lang="typescript"')


@req("MD-6")
def test_streamed_xnl_toolcall_parsing(ostler, models):
    """A `<tool_call>` in an unquote block, split anywhere by the stream, runs with its complete id and inputs.

    The call is queued before the reply ends, the block is not shown as text, and its result has its id.
    """
    (ostler.workspace / "notes.md").write_text("ship it\n")
    call = '<tool_call id="look-1" lang="javascript" #>\nSysBuiltIn.read_file({ path: "notes.md" })\n</#>'
    reply = f"I look.\n!unquote_start\n{call}\n!unquote_end\nThen I tell."
    with models.playing(text(reply, chunks=len(reply)), text("It says: ship it.")) as server:
        done = ostler("run", "--dialect", "xnl", "-o", "jsonl", *at(server), "what do the notes say?")
    happened = [record["event"] for record in map(json.loads, done.stdout.splitlines()) if "event" in record]
    kinds = [event["type"] for event in happened]
    queued = happened[kinds.index("tool_called")]["call"]
    assert (queued["id"], queued["tool"]) == ("look-1", "SysBuiltIn.read_file")
    assert queued["arguments"] == {"path": "notes.md"}
    rest = next(index for index, event in enumerate(happened) if event.get("message", {}).get("continues"))
    assert kinds.index("message_done") < kinds.index("tool_called") < rest
    assert kinds.index("tool_called") < kinds.index("tool_started")
    shown = "".join(event["text"] for event in happened if event["type"] == "text_delta")
    assert shown == "I look.\nThen I tell.It says: ship it."
    answer = server.requests[1].json["messages"][-1]
    assert (answer["role"], answer["content"].splitlines()[0]) == ("user", "!unquote_start")
    assert '<tool_resp id="look-1" #look-1>' in answer["content"]
    assert "ship it" in answer["content"]


@req("TL-3", "TL-4")
def test_actor_routed_tool_handlers(ostler):
    """`SysBuiltIn.read_file` is an alias of the `read` tool; its inputs and output are converted."""
    (ostler.workspace / "a.txt").write_text("one\ntwo\nthree\n")
    arguments = {"path": "a.txt", "startLine": 2, "endLine": 2}
    for tool in ("SysBuiltIn.read_file", "read_file"):
        result = json.loads(ostler("tool", "call", tool, json.dumps(arguments)).stdout)
        assert result["status"] == "ok"
        assert "two" in result["for_model"]
        assert "three" not in result["for_model"]
    unknown = ostler("tool", "call", "SysBuiltIn.fly", "{}")
    assert unknown.code == 2
    assert "fly" in unknown.stderr


@req("EN-5")
def test_todo_autotrigger_guidance(ostler, models):
    """The prompt asks the model for todos if work has two or more steps, and hidden reminders repeat it."""
    with models.playing(text("done")) as server:
        done = ostler("run", *at(server), "implement the parser, then test it, then stop")
    messages = server.requests[0].json["messages"]
    assert "two or more steps" in messages[0]["content"]
    assert "two or more steps keep a todo list" in messages[-1]["content"]
    assert messages[-2]["content"] == "implement the parser, then test it, then stop"
    assert "Reminder" not in done.stdout + done.stderr


@req("CL-1", "CL-2", "CL-4")
def test_readline_loop_with_agent_trigger(ostler, models):
    """After `@agent:name` the chat accepts the next line, answers stream, and `@file:` and `@!` work."""
    write_agent(ostler.workspace / ".eidolon", "reviewer", "You review and change nothing.")
    (ostler.workspace / "notes.md").write_text("the notes\n")
    lines = "@agent:reviewer look at this\nand @file:notes.md\n@!printf run%s ning\nlast words\n"
    with models.playing(text("First."), text("Second."), text("Third.")) as server:
        done = ostler("chat", *at(server), "--allow", "bash:*", stdin=lines)
    assert done.code == 0
    places = [done.stdout.index(words) for words in ("First.", "Second.", "running", "Third.")]
    assert places == sorted(places)
    assert "the notes" in server.requests[1].body.decode()
    assert all("You review and change nothing." in request.body.decode() for request in server.requests)


@req("MD-2")
def test_active_profile_resolution(ostler, models):
    """The request goes to the profile in `models.active`; an unknown name is an error that lists the profiles."""
    with models.playing(text("one")) as first, models.playing(text("two")) as second:
        configure(ostler.home, first, second, active="second")
        done = ostler("run", "-o", "simple", "hello")
        assert (done.code, done.stdout) == (0, "two\n")
        assert ostler("run", "-o", "simple", "--model", "first", "hello").stdout == "one\n"
    configure(ostler.home, first, second, active="third")
    wrong = ostler("run", "hello")
    assert wrong.code == 2
    assert all(name in wrong.stderr for name in ("third", "first", "second"))


@req("MD-3")
def test_env_override_of_active_profile_key(ostler, models):
    """`SILICONFLOW_API_KEY` or `SILICONFLOW_TOKEN` is sent instead of the active profile's key in Eidolon's config.

    In Ostler's own config the profile's key is more specific than the variable of a vendor.
    """
    for variable in ("SILICONFLOW_API_KEY", "SILICONFLOW_TOKEN"):
        for file in (".eidolon.json", ".eidolon/config.json"):
            with models.playing(text("ok")) as server:
                configure(ostler.home, server, server, active="first", file=file)
                done = ostler("run", "hello", env={variable: "from-the-environment"})
            (ostler.home / file).unlink()
            assert server.requests[0].headers["authorization"] == "Bearer from-the-environment"
            assert f"key from {variable}" in done.stderr
    with models.playing(text("ok")) as server:
        configure(ostler.home, server, server, active="first")
        ostler("run", "hello", env={variable: "from-the-environment"})
    assert server.requests[0].headers["authorization"] == "Bearer key-of-first"


@req("MD-1", "SE-4")
def test_api_kind_selection_and_logging(ostler, models):
    """`apiKind` selects chat completions (the default) or messages; an unknown value is an error.

    The log has the provider and the kind of every request.
    """
    (ostler.home / ".ostler").mkdir()
    config = ostler.home / ".ostler" / "config.json"
    log = ostler.home / ".ostler" / "logs" / "ostler.log"
    for kind, path in (
        (None, "/v1/chat/completions"),
        ("openai", "/v1/chat/completions"),
        ("anthropic", "/v1/messages"),
    ):
        with models.playing(text("ok")) as server:
            profile = {"name": "p", "provider": "acme", "model": "m", "baseUrl": server.base_url, "apiKind": kind}
            profile = {key: value for key, value in profile.items() if value}
            config.write_text(json.dumps({"models": {"profiles": [profile]}}))
            assert ostler("run", "hello").code == 0
        assert server.requests[0].path == path
        requests = [line["text"] for line in map(json.loads, log.read_text().splitlines()) if "models" in line["from"]]
        assert f"apiKind {kind or 'openai'}" in requests[-1]
        assert "provider acme" in requests[-1]
    config.write_text(json.dumps({"models": {"profiles": [{**profile, "apiKind": "gopher"}]}}))
    wrong = ostler("run", "hello")
    assert wrong.code == 2
    assert "gopher" in wrong.stderr


@req("SE-1", "EN-5")
def test_session_scoped_state(ostler, models):
    """History, todos and log of a run are in the session's folder under the home."""
    todos = {"todos": [{"content": "look", "status": "in_progress"}, {"content": "fix"}]}
    for words in ("first", "second"):
        with models.playing(calls([("todowrite", todos)]), text(f"That was the {words}.")) as server:
            assert ostler("run", *at(server), words).code == 0
    folders = sorted((ostler.home / ".ostler" / "projects").glob("*/sessions/*"))
    assert len(folders) == 2
    for folder, words in zip(folders, ("first", "second"), strict=True):
        assert {path.name for path in folder.iterdir()} >= {
            "journal.jsonl",
            "history.xnl",
            "meta.json",
            "todos.json",
            "log",
        }
        assert f"That was the {words}." in (folder / "journal.jsonl").read_text()
        assert json.loads((folder / "todos.json").read_text())["stats"]["total"] == 2
        meta = json.loads((folder / "meta.json").read_text())
        assert (meta["id"], meta["title"], meta["model"]) == (folder.name, words, "scripted")


@req("SE-2")
def test_append_only_xnl_message_log(ostler, models):
    """Every system, user, assistant and tool message is in `history.xnl` as soon as it exists.

    Earlier bytes never change, and the JSON history is complete too.
    """
    os.mkfifo(ostler.workspace / "fifo")
    command = [sys.executable, "-P", "-m", "ostler", "run", "-o", "jsonl", "--allow", "bash"]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with models.playing(calls([("bash", {"command": "cat fifo"})], text="Waiting."), text("Heard it.")) as server:
        process = subprocess.Popen(
            [*command, *at(server), "listen"],
            cwd=ostler.workspace,
            env=ostler.environment(),
            stdin=nothing,
            stdout=pipe,
        )
        kinds = (json.loads(line).get("event", {}).get("type") for line in process.stdout)
        assert "tool_started" in kinds
        (history,) = (ostler.home / ".ostler" / "projects").glob("*/sessions/*/history.xnl")
        early = history.read_text()
        (ostler.workspace / "fifo").write_text("a word from outside\n")
        process.communicate(timeout=20)
    messages = [(record.role, record.fields["content"]) for record in read_records(early).records]
    assert [role for role, _ in messages] == ["user", "system", "assistant"]
    assert (messages[0][1], messages[2][1]) == ("listen", "Waiting.")
    whole = history.read_text()
    assert whole.startswith(early)
    later = [(record.role, record.fields["content"]) for record in read_records(whole).records[3:]]
    assert [role for role, _ in later] == ["tool", "assistant"]
    assert "a word from outside" in later[0][1]
    assert later[1][1] == "Heard it."
    assert "Heard it." in history.with_name("journal.jsonl").read_text()


@req("MD-4", "CL-5", "CL-6")
def test_streamed_response_and_tool_calls(ostler, models):
    """Text is shown as it arrives; call fragments are joined by index and id, so the tool gets all its arguments.

    The reply, the calls and their raw text are stored; a `⏺ name {…}` line is also shown for an unstreamed call.
    """
    (ostler.workspace / "a.txt").write_text("hello\n")
    pieces = [
        {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "read", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"pa'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": 'th": "a.txt"}'}}]},
    ]
    frames = [{"choices": [{"index": 0, "delta": piece}]} for piece in pieces]
    ending = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    whole = calls([("list", {"path": "."})]).as_json()
    with models.playing(sse_reply(*frames, ending), whole, text("All read.", chunks=3)) as server:
        done = ostler("run", *at(server), "read it")
    assert done.code == 0
    assert '⏺ read {"path": "a.txt"}' in done.stdout
    assert '⏺ list {"path": "."}' in done.stdout
    journal = sorted((ostler.home / ".ostler").rglob("journal.jsonl"))[0].read_text()
    assert "All read." in journal
    assert r"{\"path\": \"a.txt\"}" in journal


@req("CL-2", "SE-5", "SH-3")
def test_shell_trigger_with_at_bang(ostler, models):
    """`@!ls -la` runs the command without a model request; `@!` alone is an error; the next turn streams."""
    (ostler.workspace / "seen.txt").touch()
    with models.playing(text("Streamed.")) as server:
        done = ostler("chat", *at(server), "--allow", "bash:*", stdin="@!ls -la\n@!\ngo on\n")
        assert len(server.requests) == 1
    assert done.stdout.index("seen.txt") < done.stdout.index("type a command after") < done.stdout.index("Streamed.")


@req("CL-2", "FS-2")
def test_file_reference_trigger_with_at_file(ostler, models):
    """`@file:` accepts a workspace path or an absolute path; a relative path that leaves the workspace is rejected."""
    outside = ostler.workspace.parent / "outside.md"
    outside.write_text("the outer words\n")
    (ostler.workspace / "inside.md").write_text("the inner words\n")
    with models.playing(text("a"), text("b"), text("c")) as server:
        lines = f"see @file:inside.md\nsee @file:{outside}\nsee @file:../outside.md\n"
        done = ostler("chat", *at(server), stdin=lines)
        sent = [request.body.decode() for request in server.requests]
    assert "the inner words" in sent[0]
    assert "the outer words" in sent[1]
    assert sent[2].count("the outer words") == 1, "only from the previous prompt"
    assert "../outside.md" in done.stdout + done.stderr


@req("CL-4")
def test_autocomplete_path_suggestions(terminal, ostler, models):
    """Tab after `@file:` and a part of a path lists matching files and inserts the selected one."""
    (ostler.workspace / "docs").mkdir()
    for name in ("guide.md", "guard.md", "other.md"):
        (ostler.workspace / "docs" / name).touch()
    with models.playing() as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("see @file:docs/gu")
        shown = term.wait_for(lambda shown: "guide.md" in shown and "guard.md" in shown)
        assert "other.md" not in shown
        term.type("i")
        term.wait_for(lambda shown: "guard.md" not in shown)
        term.type("\t")
        term.wait_for("> see @file:docs/guide.md")


@req("CL-4")
def test_completion_time_limit(ostler, monkeypatch):
    """If a listing takes too long, completion stops within two seconds and the prompt accepts the next key."""
    listing, release = threading.Event(), threading.Event()

    def endless(folder):
        listing.set()
        release.wait(60)
        return []

    monkeypatch.setattr(file_index, "_list_folder", endless)
    index = file_index.FileIndex(str(ostler.workspace))
    index.refresh()
    assert listing.wait(60)
    assert index.find("any") == []  # returns while the listing is still running
    assert not index.complete.is_set()
    assert file_index.SEARCH_SECONDS <= 2
    release.set()
    assert index.complete.wait(60)


@req("CL-4", "EN-3")
def test_agent_completion_from_user_and_project_directories(terminal, ostler, models):
    """Tab after `@agent:` lists the agents of home and workspace; the workspace takes precedence for equal names."""
    write_agent(ostler.home / ".eidolon", "mine", "mine")
    write_agent(ostler.home / ".eidolon", "shared", "of the home")
    write_agent(ostler.workspace / ".eidolon", "ours", "ours")
    write_agent(ostler.workspace / ".eidolon", "shared", "of the workspace")
    with models.playing(text("ok")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("@agent:")
        term.wait_for(lambda shown: all(name in shown for name in ("mine", "ours", "shared")))
        term.type("sha")
        term.wait_for(lambda shown: "mine" not in shown)
        term.type("\t")
        term.wait_for("> @agent:shared")
        term.type(" hello\r")
        term.wait_for("ANSWER")
        sent = server.requests[0].body.decode()
    assert "of the workspace" in sent
    assert "of the home" not in sent


@req("CL-4")
def test_agent_completion_with_prefix(terminal, ostler, models):
    """`@agent:foo` and Tab lists only names that start with `foo`, and replaces the token at the cursor."""
    for name in ("fool", "foot", "bar"):
        write_agent(ostler.workspace / ".eidolon", name, name)
    with models.playing() as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("ask @agent:foo")
        shown = term.wait_for(lambda shown: "fool" in shown and "foot" in shown)
        assert "  bar" not in shown
        term.type("t")
        term.wait_for(lambda shown: "fool" not in shown)
        term.type("\t")
        term.wait_for("> ask @agent:foot")


@req("CL-2", "EN-3")
def test_agent_prompt_injected(ostler, models):
    """After `@agent:name` the requests of this and all later turns have that agent's prompt, at the end."""
    write_agent(ostler.workspace / ".eidolon", "reviewer", "You are terse to a fault.")
    with models.playing(text("a"), text("b"), text("c")) as server:
        ostler("chat", *at(server), stdin="hello\n@agent:reviewer look\nand again\n")
        sent = [request.json["messages"] for request in server.requests]
    assert "terse to a fault" not in str(sent[0])
    for messages in sent[1:]:
        (place,) = [number for number, message in enumerate(messages) if "terse to a fault" in str(message)]
        assert place > 0, "the prefix must not change"
    assert sent[1][: len(sent[0])] == sent[0]


@req("CL-3")
def test_file_content_injected(ostler, models):
    """`@file:notes.md` adds a system message before the prompt: the reference on one line, then the content."""
    (ostler.workspace / "notes.md").write_text("first\nsecond\n")
    with models.playing(text("ok")) as server:
        ostler("run", *at(server), "what is in @file:notes.md?")
    messages = server.requests[0].json["messages"]
    place = messages.index({"role": "system", "content": "@file:notes.md\nfirst\nsecond\n"})
    assert messages[place + 1] == {"role": "user", "content": "what is in @file:notes.md?"}


@req("MD-2")
def test_multiple_profiles_with_active_selection(ostler, models):
    """The project's config overrides the user's, and a config with a single old-style profile works."""
    with models.playing(text("one")) as first, models.playing(text("two")) as second:
        configure(ostler.home, first, second, active="first")
        project = ostler.workspace / ".eidolon"
        project.mkdir()
        (project / "config.json").write_text('{"models": {"active": "second"}}')
        assert ostler("run", "-o", "simple", "hello").stdout == "two\n"
        (project / "config.json").unlink()
        assert ostler("run", "-o", "simple", "hello").stdout == "one\n"
    with models.playing(text("old form")) as server:
        (ostler.home / ".ostler" / "config.json").unlink()
        (ostler.home / ".eidolon.json").write_text(
            json.dumps({"model": {"provider": "x", "model": "m", "apiKey": "k", "baseUrl": server.base_url}})
        )
        assert ostler("run", "-o", "simple", "hello").stdout == "old form\n"


@req("MD-3")
def test_env_override_of_active_profile_key_among_several_profiles(ostler, models):
    """With several profiles, the key of the variable is sent to the active profile's server and is not stored."""
    with models.playing(text("ok")) as first, models.playing(text("ok")) as second:
        configure(ostler.home, first, second, active="second", file=".eidolon.json")
        ostler("run", "hello", env={"SILICONFLOW_TOKEN": "from-the-environment"})
        ostler("run", "--model", "first", "hello")
    assert second.requests[0].headers["authorization"] == "Bearer from-the-environment"
    assert first.requests[0].headers["authorization"] == "Bearer key-of-first"


@req("SH-3", "SH-4", "SH-6")
def test_dangerous_bash_commands_blocked(ostler, models):
    """`rm -rf /`, `shutdown`, `reboot` and `sudo` are denied with a clear error in a headless run."""
    (ostler.workspace / "keep.txt").write_text("precious\n")
    for command in ("rm -rf /", "sudo ls", "shutdown now", "reboot", "rm keep.txt", "sh -c 'rm keep.txt'"):
        with models.playing(calls([("bash", {"command": command})]), text("ok")) as server:
            done = ostler("run", "--write", "--allow", "bash", *at(server), "go")
        assert done.code == 4, command
        assert "Denied" in server.requests[1].json["messages"][-1]["content"]
    assert (ostler.workspace / "keep.txt").read_text() == "precious\n"


@req("FS-2", "TL-4")
def test_workspace_path_enforcement(ostler, models):
    """`read_file`, `write_file`, `edit_text` and `todo_write` reject a path that leaves the workspace."""
    outside = ostler.workspace.parent / "outside.txt"
    outside.write_text("secret\n")
    (ostler.workspace / "link").symlink_to(outside)
    attempts = [
        ("read", {"path": "../outside.txt"}),
        ("read", {"path": "link"}),
        ("read", {"path": str(outside)}),
        ("write", {"path": "../outside.txt", "content": "x"}),
        ("write", {"path": "link", "content": "x"}),
        ("edit", {"path": "link", "old": "secret", "new": "x"}),
    ]
    for tool, arguments in attempts:
        with models.playing(calls([(tool, arguments)]), text("ok")) as server:
            ostler("run", "--write", *at(server), "go")
        result = server.requests[1].json["messages"][-1]["content"]
        assert "secret" not in result
        assert outside.read_text() == "secret\n"


@req("FS-1", "TL-3")
def test_valid_tool_inputs_proceed(ostler, models):
    """Valid inputs reach the file or command unchanged, and the call succeeds."""
    (ostler.workspace / "a.txt").write_text("one\ntwo\n")
    moves = [
        calls([("read", {"path": "a.txt"})]),
        calls([("edit", {"path": "a.txt", "old": "two", "new": "three"})]),
        calls([("write", {"path": "b.txt", "content": "new\n"})]),
        calls([("bash", {"command": "cat a.txt"})]),
        text("done"),
    ]
    with models.playing(*moves) as server:
        done = ostler("run", "--write", *at(server), "go")
    assert done.code == 0
    assert (ostler.workspace / "a.txt").read_text() == "one\nthree\n"
    assert (ostler.workspace / "b.txt").read_text() == "new\n"
    assert "one\nthree" in server.requests[4].json["messages"][-1]["content"]


@req("EN-11")
def test_command_discovery_and_naming(ostler, models):
    """`commands/kaleido/tools/run.md` becomes `/kaleido:tools:run`; a nested folder `commands` is skipped."""
    write_command(ostler.workspace / ".eidolon", "kaleido/tools/run.md", "Run the kaleidoscope.")
    write_command(ostler.workspace / ".eidolon", "kaleido/commands/turn.md", "Turn it.")
    with models.playing(text("a"), text("b")) as server:
        assert ostler("run", *at(server), "/kaleido:tools:run").code == 0
        assert ostler("run", *at(server), "/kaleido:turn").code == 0
    assert "Run the kaleidoscope." in server.requests[0].body.decode()
    assert "Turn it." in server.requests[1].body.decode()


@req("CL-4", "EN-11")
def test_slash_completion_filter(terminal, ostler, models):
    """`/` and a prefix with Tab lists only the commands with that prefix."""
    for name in ("zebra.md", "zeal.md", "other.md"):
        write_command(ostler.workspace / ".eidolon", name, "x")
    with models.playing() as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("/ze")
        shown = term.wait_for(lambda shown: "zebra" in shown and "zeal" in shown)
        assert "other" not in shown
        term.type("b")
        term.wait_for(lambda shown: "zeal" not in shown)
        term.type("\t")
        term.wait_for("> /zebra")


@req("EN-11")
def test_command_execution(ostler, models):
    """A custom command sends its Markdown as a prompt, and the answer is shown."""
    write_command(ostler.workspace / ".eidolon", "greet.md", "Greet $ARGUMENTS warmly.")
    with models.playing(text("Welcome!")) as server:
        done = ostler("chat", *at(server), stdin="/greet the guests\n")
    assert "Greet the guests warmly." in server.requests[0].body.decode()
    assert "Welcome!" in done.stdout
