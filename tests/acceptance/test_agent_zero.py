"""Specification 002, the Agent Zero CLI: sections 5 to 11."""

import json
import platform
import re
import subprocess

import pytest

from ostler.testing.model_server import calls, text
from ostler.testing.zero_server import ZeroAnswer, zero_json, zero_lines, zero_reply, zero_sse

F4, F9 = "\x1bOS", "\x1b[20~"

req = pytest.mark.req


def verdict(ostler, *call):
    """Return the policy's decision on a call: allow, ask or deny."""
    return ostler("permissions", "explain", *call).stdout.split(":")[0].split()[0]


def secure(ostler, **security):
    (ostler.home / ".ostler").mkdir(exist_ok=True)
    (ostler.home / ".ostler" / "config.json").write_text(json.dumps({"security": security}))


def requested(tool, **payload):
    """Return a tool request as in section 6.1."""
    words = {"command": f"use {tool}", "reason": "to know"}
    return {"type": "tool_request", "tool_name": tool, **words, "payload": payload}


def results(server):
    """Return the tool results that the server got."""
    texts = [message["message"] for message in server.messages if message["message"].startswith('{"tool_result"')]
    return [json.loads(line)["tool_result"] for text in texts for line in text.splitlines()]


def final(text):
    return {"type": "final_response", "content": text}


# 5 External API


@req("AZ-1")
def test_5_1_request_body(zero):
    """The prompt is posted to `connection.api_url` as `message` with `lifetime_hours`, and no `context_id` at first."""
    with zero(zero_reply("hi", "ctx00001"), api_key="k3y") as server:
        assert "hi" in server.run("hello", env={"AGENTZERO_API_KEY": "k3y"}).stdout
    assert server.messages == [{"message": "hello", "lifetime_hours": 24}]


@req("AZ-1")
def test_5_2_sse_response(zero):
    """A `text/event-stream` answer is shown event by event as it arrives."""
    with zero(zero_sse({"delta": {"content": "one "}}, {"delta": {"content": "two"}}, final("one two"))) as server:
        events = [json.loads(line) for line in server.run("-o", "jsonl", "go").stdout.splitlines()]
    deltas = [event["event"]["text"] for event in events if event.get("event", {}).get("type") == "text_delta"]
    assert deltas == ["one ", "two"]


@req("AZ-1")
def test_5_2_jsonl_response(zero):
    """A JSONL or NDJSON answer is shown line by line, also when a line is cut by the transport."""
    line = json.dumps(final("an answer")).encode()
    parts = [b'{"type": "status", "content": "bu', b'sy"}\n' + line[:9], line[9:]]
    with zero(ZeroAnswer(parts, "application/x-ndjson"), zero_lines(final("again"))) as server:
        outcome = server.run("go")
        assert "an answer" in outcome.stdout
        assert "busy" in outcome.stdout + outcome.stderr
        assert "again" in server.run("go").stdout


@req("AZ-1")
def test_5_2_plain_json_or_string_response(zero):
    """A single JSON object, a JSON string and bare text each become the final answer."""
    answers = [
        zero_json({"response": "the answer"}),
        zero_json("the answer"),
        ZeroAnswer([b"the answer"], "text/plain"),
    ]
    with zero(*answers) as server:
        for _ in answers:
            assert json.loads(server.run("-o", "json", "go").stdout)["answer"] == "the answer"


@req("AZ-2")
def test_5_3_status_event(zero):
    """`status` is shown as a status line, not as part of the answer."""
    with zero(zero_sse({"type": "status", "content": "indexing"}, final("done"))) as server:
        outcome = server.run("go")
        assert "indexing" in outcome.stdout + outcome.stderr
    with zero(zero_sse({"type": "status", "content": "indexing"}, final("done"))) as server:
        assert json.loads(server.run("-o", "json", "go").stdout)["answer"] == "done"


@req("AZ-2")
def test_5_3_thinking_and_thought_events(zero):
    """`thinking` and `thought` are both shown as reasoning, separate from the answer."""
    events = ({"type": "thinking", "content": "first"}, {"type": "thought", "content": "second"}, final("done"))
    with zero(zero_sse(*events)) as server:
        lines = [json.loads(line) for line in server.run("-o", "jsonl", "go").stdout.splitlines()]
    thoughts = [line["event"]["text"] for line in lines if line.get("event", {}).get("type") == "thought_delta"]
    assert thoughts == ["first", "second"]
    assert lines[-1]["answer"] == "done"


@req("AZ-2", "AZ-3")
def test_5_3_tool_request_event(ostler, zero):
    """`tool_request` becomes a local call with the same permission check as any other."""
    (ostler.workspace / "a.txt").write_text("alpha")
    events = (requested("read_file", path="a.txt"), requested("write_file", path="b.txt", content="x"))
    with zero(zero_sse({"context_id": "c"}, *events), zero_reply("done")) as server:
        server.run("go")
    assert [result["ok"] for result in results(server)] == [True, False]
    assert not (ostler.workspace / "b.txt").exists()


@req("AZ-2")
def test_5_3_tool_output_event(zero):
    """`tool_output` is shown as the result of the call it belongs to."""
    output = {"type": "tool_output", "tool_name": "search", "content": "found it", "tool_call_id": "t1"}
    with zero(zero_sse(output, final("done"))) as server:
        summary = json.loads(server.run("-o", "json", "go").stdout)
    assert summary["answer"] == "done"
    assert [(call["tool"], call["status"]) for call in summary["tools"]] == [("search", "ok")]


@req("AZ-2")
def test_5_3_final_response_event(zero):
    """`final_response` is the answer and ends the turn."""
    with zero(zero_sse(final("the end"))) as server:
        outcome = server.run("-o", "json", "go")
    assert (outcome.code, json.loads(outcome.stdout)["answer"]) == (0, "the end")


@req("AZ-2")
def test_5_4_context_id_under_each_spelling(zero):
    """`context_id`, `contextId` and `conversation_id` in an answer are sent as `context_id` in the next request."""
    for name in ("context_id", "contextId", "conversation_id"):
        with zero(zero_json({name: "c-1", "response": "one"}), zero_reply("two", "c-1")) as server:
            session = json.loads(server.run("-o", "json", "go").stdout)["session"]
            assert server.run("--resume", session, "more").code == 0
        assert [message.get("context_id") for message in server.messages] == [None, "c-1"]


@req("AZ-2", "AZ-3")
def test_5_4_context_id_is_sent_with_tool_results(zero):
    """A tool result is posted under the stored context id."""
    with zero(zero_reply(json.dumps(requested("list_files", path=".")), "c-7"), zero_reply("done", "c-7")) as server:
        server.run("go")
    assert server.messages[1]["context_id"] == "c-7"
    assert results(server)[0]["ok"]


# 6 Tool calls


@req("AZ-3", "TL-4")
def test_6_1_every_tool_name_runs(ostler, zero):
    """Each of the seven names in the request schema runs its tool, with its payload as arguments."""
    (ostler.workspace / "a.txt").write_text("alpha\nbeta\n")
    patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n gamma\n-beta\n+delta\n"
    secure(ostler, allow_shell=True)
    requests = [
        requested("read_file", path="a.txt", start_line=2, end_line=2),
        requested("list_files", path="."),
        requested("search_text", query="ALPHA"),
        requested("write_file", path="new.txt", content="written"),
        requested("replace_text", path="a.txt", old="alpha", new="gamma"),
        requested("apply_patch", patch=patch),
        requested("shell", command="echo from the shell"),
    ]
    with zero(*(zero_reply(json.dumps(request)) for request in requests), zero_reply("done")) as server:
        server.run("--write", "--allow", "bash:echo *", "go")
    got = results(server)
    assert [(result["tool_name"], result["ok"]) for result in got] == [(r["tool_name"], True) for r in requests], got
    assert "beta" in got[0]["output"]
    assert "alpha" not in got[0]["output"]
    assert "a.txt" in got[1]["output"]
    assert "a.txt" in got[2]["output"]
    assert "from the shell" in got[6]["output"]
    assert (ostler.workspace / "new.txt").read_text() == "written"
    assert (ostler.workspace / "a.txt").read_text() == "gamma\ndelta\n"


@req("AZ-3", "PM-5")
def test_6_1_command_and_reason_are_shown(ostler, zero, terminal):
    """The approval request shows the `command` and `reason` of the request; the payload is run."""
    request = {**requested("write_file", path="b.txt", content="payload"), "command": "tidy up", "reason": "you asked"}
    with zero(zero_reply(json.dumps(request)), zero_reply("all done")) as server:
        env = {"AGENTZERO_API_URL": server.api_url, "AGENTZERO_CONTEXT": "0"}
        screen = terminal("zero", "--plain", env=env)
        screen.type("go\n")
        screen.wait_for("the server's words")
        shown = screen.text
        assert ("tidy up" in shown, "you asked" in shown, "runs on" in shown) == (True, True, True)
        screen.type("y\n")
        screen.wait_for("all done")
    assert (ostler.workspace / "b.txt").read_text() == "payload"


@req("AZ-3")
def test_6_2_result_fields(ostler, zero):
    """A result is sent with `tool_name`, `ok`, `output` and `details`, and with `tool_call_id` if there was one."""
    (ostler.workspace / "a.txt").write_text("alpha")
    with_id = {**requested("read_file", path="a.txt"), "tool_call_id": "t-1"}
    answers = (zero_reply(json.dumps(requested("read_file", path="a.txt"))), zero_sse(with_id), zero_reply("done"))
    with zero(*answers) as server:
        server.run("go")
    first, second = results(server)
    assert set(first) == {"tool_name", "ok", "output", "details"}
    assert "alpha" in first["output"]
    assert second["tool_call_id"] == "t-1"


@req("AZ-3", "PM-7")
def test_6_2_denial_is_sent(ostler, zero):
    """For a request that the user denies, `ok` false and the reason are sent, and nothing is run."""
    with zero(zero_reply(json.dumps(requested("write_file", path="b", content="x"))), zero_reply("fine")) as server:
        outcome = server.run("go")
    (result,) = results(server)
    assert (outcome.code, result["ok"]) == (4, False)
    assert "approval" in result["details"]["reason"]
    assert not (ostler.workspace / "b").exists()


# 7 Context builder


def in_mode(mode, **variables):
    """Return the environment of a run with the context builder."""
    return {"AGENTZERO_CONTEXT": "1", "AGENTZERO_CONTEXT_MODE": mode, **variables}


def send(zero, ostler, mode, *, change=False):
    """Send two prompts in one session and return which of them carried the context."""
    write_config(ostler)
    (ostler.workspace / "a.txt").write_text("alpha")
    with zero(zero_reply("one", "c-1"), zero_reply("two", "c-1")) as server:
        session = json.loads(server.run("-o", "json", "go", env=in_mode(mode)).stdout)["session"]
        if change:
            (ostler.workspace / "b.txt").write_text("beta")
        assert server.run("--resume", session, "more", env=in_mode(mode)).code == 0
    assert [message["message"].rpartition("\n")[2].removeprefix("USER: ") for message in server.messages] == [
        "go",
        "more",
    ]
    return ["[AZ_CONTEXT v1]" in message["message"] for message in server.messages]


def write_config(ostler, **config):
    """Write settings of the context; git has unlimited time, because the machine may be busy."""
    (ostler.home / ".ostler").mkdir(exist_ok=True)
    (ostler.home / ".ostler" / "config.json").write_text(json.dumps({"context": {"git_timeout_seconds": 0, **config}}))


def context(ostler, *args, **config):
    """Return the context that `ostler zero context` prints with these settings."""
    write_config(ostler, **config)
    outcome = ostler("zero", "context", *args)
    assert outcome.code == 0, outcome.stderr
    return outcome.stdout


@req("AZ-4")
def test_7_1_mode_always(ostler, zero):
    """`always`: each of two equal prompts carries the context."""
    assert send(zero, ostler, "always") == [True, True]


@req("AZ-4")
def test_7_1_mode_on_change(ostler, zero):
    """`on_change`: an unchanged workspace sends no context again, a changed one does."""
    assert send(zero, ostler, "on_change") == [True, False]
    assert send(zero, ostler, "on_change", change=True) == [True, True]


@req("AZ-4")
def test_7_1_mode_once(ostler, zero):
    """`once`: the context is sent once per context id, even if the workspace changes."""
    assert send(zero, ostler, "once", change=True) == [True, False]


@req("AZ-4")
def test_7_1_mode_manual(ostler, zero):
    """`manual`: no context is sent automatically."""
    assert send(zero, ostler, "manual", change=True) == [False, False]


@req("AZ-4")
def test_7_2_file_tree_is_bounded(ostler):
    """The tree is limited to the configured depth and count, notes that, and is the same on every run."""
    (ostler.workspace / "one" / "two" / "three").mkdir(parents=True)
    for name in ("b.py", "a.py", "one/c.py", "one/two/d.py", "one/two/three/e.py"):
        (ostler.workspace / name).write_text("x")
    complete = context(ostler)
    assert complete == context(ostler)
    assert "omitted" not in complete
    tree = complete.partition("workspace_tree:\n")[2].splitlines()[:5]
    assert tree == ["a.py (1B)", "b.py (1B)", "one/c.py (1B)", "one/two/d.py (1B)", "one/two/three/e.py (1B)"]
    shallow = context(ostler, max_depth=2)
    assert ("one/c.py" in shallow, "d.py" in shallow, "omitted" in shallow) == (True, False, True)
    few = context(ostler, max_files=2)
    assert ("b.py" in few, "c.py" in few, "omitted" in few) == (True, False, True)


@req("AZ-4")
def test_7_2_optional_previews(ostler):
    """File previews are included if they are enabled."""
    (ostler.workspace / "notes.txt").write_text("remember the milk")
    assert "--- notes.txt ---\n| remember the milk" in context(ostler, preview_files=["notes.txt"])
    assert "remember" not in context(ostler, preview_files=["notes.txt"], include_previews=False)


@req("AZ-4")
def test_7_2_optional_git_status(ostler):
    """Git status is included if it is enabled; a folder without git is not an error."""
    assert "git_status:" not in context(ostler)
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(ostler.workspace)], check=True)
    (ostler.workspace / "new.txt").write_text("x")
    assert "git_status:\nbranch: trunk\n?? new.txt" in context(ostler)
    assert "trunk" not in context(ostler, include_git=False)


@req("AZ-4")
def test_7_2_optional_system_metadata(ostler):
    """System metadata is included if it is enabled."""
    assert f"system: {platform.system()}" in context(ostler)
    assert "system:" not in context(ostler, include_system=False)


@req("AZ-5")
def test_7_3_redact_keys(ostler):
    """The values of `context.redact_keys` in previewed YAML and JSON are masked."""
    (ostler.workspace / "a.yaml").write_text("nested:\n  shoe_size: forty-two\nname: fine\n")
    (ostler.workspace / "a.json").write_text('{"list": [{"shoe_size": "forty-two"}], "name": "fine"}')
    shown = context(ostler, preview_files=["a.yaml", "a.json"], redact_keys=["shoe_size"])
    assert (shown.count("***REDACTED***"), "forty-two" in shown, shown.count("fine")) == (2, False, 2)


@req("AZ-5")
def test_7_3_redact_patterns(ostler):
    """Matches of `context.redact_patterns` are replaced by `***REDACTED***`."""
    (ostler.workspace / "a.txt").write_text("ticket ACME-1234 is open")
    shown = context(ostler, preview_files=["a.txt"], redact_patterns=["acme-[0-9]+"])
    assert "ticket ***REDACTED*** is open" in shown


@req("AZ-5")
def test_7_3_sensitive_files_are_excluded(ostler):
    """`.env`, `config.yaml` and similar files are never previewed or listed, also through a link."""
    for name in (".env", ".env.local", "config.yaml", "secrets.toml", "id_rsa", "server.pem", ".npmrc"):
        (ostler.workspace / name).write_text("plain-content")
    (ostler.workspace / "link.txt").symlink_to("config.yaml")
    subprocess.run(["git", "init", "-q", str(ostler.workspace)], check=True)
    shown = context(ostler, preview_files=[".env", "config.yaml", "link.txt", "*"])
    assert "plain-content" not in shown
    assert ".env" not in shown
    assert "config.yaml" not in shown


# 8 Security model


@req("PM-3")
def test_8_paranoid_asks_for_every_tool(ostler):
    """`paranoid`: even a read needs approval."""
    (ostler.workspace / "a").write_text("x")
    secure(ostler, profile="paranoid")
    for call in (("read", '{"path": "a"}'), ("list", "{}"), ("grep", '{"pattern": "x"}'), ("ls",)):
        assert verdict(ostler, *call) == "ask"


@req("PM-3", "SH-7")
def test_8_balanced_allows_reads_and_whitelisted_shell(ostler):
    """`balanced`: reads and whitelisted commands are allowed, a write needs approval."""
    (ostler.workspace / "a").write_text("x")
    secure(ostler, whitelist=["git status", "make"], sandbox="off")
    assert verdict(ostler, "read", '{"path": "a"}') == "allow"
    assert verdict(ostler, "git status --short") == "allow"
    assert verdict(ostler, "make test") == "allow"
    assert verdict(ostler, "git push") == "ask"
    assert verdict(ostler, "write", '{"path": "b", "content": ""}') == "ask"


@req("PM-3", "SH-3", "SH-6", "SH-7")
def test_8_god_mode_allows_all_except_dangerous_commands(ostler):
    """`god_mode`: ordinary writes and commands are allowed; dangerous ones need approval, the blacklist denies."""
    secure(ostler, profile="god_mode", blacklist_patterns=["forbidden"])
    assert verdict(ostler, "write", '{"path": "b", "content": ""}') == "allow"
    assert verdict(ostler, "npm install left-pad") == "allow"
    assert verdict(ostler, "rm -r build") == "ask"
    assert verdict(ostler, "rm -rf /") == "deny"
    assert verdict(ostler, "echo forbidden") == "deny"


@req("SH-7")
def test_8_shell_is_off_by_default(ostler, zero):
    """Without `allow_shell` a shell request is denied; enabling it writes a warning to the log."""
    request = zero_reply(json.dumps(requested("shell", command="echo hello")))
    with zero(request, zero_reply("done")) as server:
        outcome = server.run("--allow", "bash", "go")
    assert (results(server)[0]["ok"], "allow_shell" in results(server)[0]["output"]) == (False, True)
    assert "shell commands" not in outcome.stdout + outcome.stderr
    secure(ostler, allow_shell=True)
    with zero(request, zero_reply("done")) as server:
        outcome = server.run("--allow", "bash", "go")
    assert results(server)[0]["ok"]
    assert (outcome.stdout + outcome.stderr).count("shell commands") == 1


@req("SH-7")
def test_8_blacklist_is_always_enforced(ostler):
    """A command that matches `blacklist_patterns` is denied in every profile, even if the user types it."""
    secure(ostler, profile="god_mode", blacklist_patterns=["curl .*evil"], whitelist=["curl"])
    for command in ("curl http://evil.example", "true && curl -s http://evil.example", "sh -c 'curl evil'"):
        assert verdict(ostler, "--allow", "bash", command) == "deny"


@req("SH-7")
def test_8_whitelist_matches_whole_commands(ostler):
    """A whitelisted prefix allows that command, not one that starts with the same letters or adds others."""
    secure(ostler, whitelist=["ls", "git status"], sandbox="off")
    (ostler.workspace / "f").write_text("x")
    assert verdict(ostler, "ls -la") == "allow"
    for command in ("ls; rm -rf x", "ls && make", "lsof", "git statusx", "ls > f", "ls $(make)"):
        assert verdict(ostler, command) == "ask", command


# 9 UI requirements


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


def opened(terminal, server, **options):
    """The full-screen client, when its input is ready."""
    term = terminal("tui", *at(server), columns=120, rows=30, **options)
    term.wait_for("all keys")
    term.wait_for("ready")
    return term


@req("TU-1")
def test_9_live_feed_and_status(terminal, models):
    """The screen shows events as they happen and the status of the turn."""
    with models.playing(text("It is done.")) as server:
        term = opened(terminal, server)
        assert all(label in term.text for label in ("STATE", "MODEL", "CONTEXT", "COST", "PROFILE"))
        term.type(F4)
        term.wait_for("EVENTS")
        term.type("go\r")
        term.wait_for("● It is done.")
        term.wait_for("prompt: go")
        term.wait_for("done in")


@req("TU-2")
def test_9_approval_dialog_with_preview(terminal, ostler, models):
    """A write that needs approval opens a dialog with its diff; a key answers it."""
    write = calls([("write", {"path": "notes.txt", "content": "first\nsecond\n"})])
    with models.playing(write, text("Written.")) as server:
        term = opened(terminal, server)
        term.type("write\r")
        term.wait_for("Allow once")
        dialog = term.wait_for("Tab: other diff view")
        assert "notes.txt: would be created, +2 -0" in dialog
        assert "+second" in dialog
        term.type("y\r")
        term.wait_for("● Written.")
    assert (ostler.workspace / "notes.txt").read_text() == "first\nsecond\n"


@req("TU-3")
def test_9_switch_project_profile_and_theme(terminal, ostler, models, tmp_path):
    """Project, security profile and theme can be changed at run time and apply to the next turn."""
    other = tmp_path / "other-project"
    other.mkdir()
    writes = [calls([("write", {"path": f"{name}.txt", "content": "x\n"})]) for name in ("first", "second")]
    with models.playing(writes[0], text("One."), writes[1], text("Two.")) as server:
        term = opened(terminal, server, env={"COLORTERM": "truecolor"})
        term.type("/theme studio-light\r")
        term.wait_for("theme studio-light")
        term.wait_for(lambda _: term.screen.buffer[10][0].bg == "fbfbf9")
        term.type("/profile god_mode\r")
        term.wait_for("god_mode")
        term.type("write\r")
        term.wait_for("● One.")  # without an approval request
        term.type(F9)
        term.wait_for("Switch to another project")
        term.type(f"{other}\r")
        term.wait_for(lambda text: re.search("ready .*other-project", text))
        term.type("write\r")
        term.wait_for("Tab: other diff view")  # a request: the profile was chosen for the first project only
        term.type("y\r")
        term.wait_for("● Two.")
    assert (ostler.workspace / "first.txt").exists()
    assert (other / "second.txt").exists()
    assert next(ostler.home.rglob("tui_theme")).read_text() == "studio-light\n"


@req("TU-4")
def test_9_single_and_multi_line_input(terminal, models):
    """One line is sent with Enter; a prompt of several lines arrives with its line breaks."""
    with models.playing(text("One."), text("Two.")) as server:
        term = opened(terminal, server)
        term.type("single\r")
        term.wait_for("● One.")
        term.wait_for("ready")
        term.type("first\nsecond\r")
        term.wait_for("● Two.")
        prompts = [message for message in server.requests[-1].json["messages"] if message["role"] == "user"]
    assert "first\nsecond" in json.dumps(prompts[-1]).replace("\\n", "\n")


# 10 Error handling


@req("AZ-6")
def test_10_network_error_is_a_final_response(ostler, zero):
    """A refused connection, an HTTP error and a cut stream each end the turn with a summary, without a traceback."""
    answers = (zero_json({"error": "out of order"}, 500), zero_sse({"delta": {"content": "Half"}}, cuts=True))
    with zero(*answers) as server:
        for expected in ("out of order", "closed the connection"):
            outcome = server.run("-o", "json", "go")
            assert (outcome.code, "Traceback" in outcome.stderr) == (1, False)
            assert expected in json.loads(outcome.stdout)["answer"]
    refused = ostler("zero", "run", "-o", "json", "go", env={"AGENTZERO_API_URL": "http://127.0.0.1:9"})
    assert (refused.code, "refused" in json.loads(refused.stdout)["answer"]) == (1, True)


@req("AZ-6")
def test_10_tool_failure_goes_back_with_stderr(ostler, zero):
    """For a command that fails, `ok` false and its stderr in `output` are sent."""
    secure(ostler, allow_shell=True)
    request = requested("shell", command="echo to stderr >&2; exit 3")
    with zero(zero_reply(json.dumps(request)), zero_reply("done")) as server:
        server.run("--allow", "bash", "go")
    (result,) = results(server)
    assert (result["ok"], result["details"]["exit_code"]) == (False, 3)
    assert "to stderr" in result["output"]


# 11 Performance constraints


@req("AZ-4")
def test_11_context_within_max_bytes(ostler):
    """However large the workspace, the context has at most `context.max_bytes` bytes and is valid UTF-8."""
    for number in range(60):
        (ostler.workspace / f"größe-{number}.txt").write_text("é" * 100)
    for limit in (1, 40, 200, 2000, 5000):
        text = context(ostler, max_bytes=limit, preview_files=["größe-1.txt"]).removesuffix("\n")
        assert len(text.encode()) <= limit
        assert not text or text.endswith("[/AZ_CONTEXT]")


@req("AZ-4")
def test_11_previews_within_max_preview_bytes(ostler):
    """Previews of large files are truncated to `context.max_preview_bytes`, with a note."""
    (ostler.workspace / "big.txt").write_text("é" * 50_000)
    shown = context(ostler, preview_files=["big.txt"], max_preview_bytes=99)
    assert shown.count("é") == 49
    assert "[truncated: 99 of 100000 bytes]" in shown
