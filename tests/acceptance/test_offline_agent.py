"""Specification 003, the offline coding agent: the acceptance criteria of section 16 and the points of section 22."""

import json
import re
from pathlib import Path

import pytest
from tests.streaming_run import Pace, running

from ostler.testing.model_server import calls, sse_reply, text

req, missing = pytest.mark.req, pytest.mark.missing


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


@req("DX-1")
@missing("the self-contained file")
def test_16_01_single_binary_launches():
    """The built file starts with an empty PATH and home, and without another Python."""
    raise NotImplementedError


@req("MD-1", "MD-4", "CL-6")
def test_16_02_streams_from_an_openai_compatible_endpoint(ostler, models):
    """With a server like vLLM, the first words are printed before the server sends the last."""
    for form in ("text", "simple"):
        pace = Pace()
        with (
            models.playing(text("first then last.", chunks=2).paced_by(pace.wait)) as server,
            running(ostler, "-o", form, *at(server), "hello") as screen,
        ):
            pace.step()
            screen.wait_for("first")
            pace.step(10)
            assert "first then last." in screen.read_all()
        assert server.requests[0].json["stream"] is True


@req("EN-2", "TL-1")
def test_16_03_tools_run_in_a_closed_loop(ostler, models):
    """A model that reads, searches and writes gets every result, until it answers."""
    (ostler.workspace / "a.txt").write_text("alpha\n")
    steps = [
        calls([("list", {})]),
        calls([("read", {"path": "a.txt"}), ("grep", {"pattern": "alp"})]),
        calls([("write", {"path": "b.txt", "content": "beta\n"})]),
        text("finished"),
    ]
    with models.playing(*steps) as server:
        done = ostler("run", "--write", "-o", "json", *at(server), "go")
    assert (done.code, json.loads(done.stdout)["answer"]) == (0, "finished")
    assert (ostler.workspace / "b.txt").read_text() == "beta\n"
    assert len(server.requests) == 4


@req("SH-3", "SH-4", "SH-5")
def test_16_04_dangerous_commands_always_need_confirmation(ostler, models):
    """`rm`, an overwriting redirection and indirect forms need approval under every profile, flag and rule.

    They can be allowed once or denied; a headless run denies them.
    """
    (ostler.workspace / "f.txt").write_text("precious\n")
    for command in (
        "rm f.txt",
        "mv f.txt g.txt",
        "chmod 000 f.txt",
        "chown 0 f.txt",
        "dd if=/dev/zero of=f.txt",
        "echo x > f.txt",
        "env rm f.txt",
        "find . -delete",
    ):
        explained = ostler("permissions", "explain", "--profile", "god_mode", "--allow", "bash", command)
        assert explained.stdout.startswith("ask every time:"), command
        with models.playing(calls([("bash", {"command": command})]), text("ok")) as server:
            assert ostler("run", "--write", "--profile", "god_mode", *at(server), "go").code == 4
    assert (ostler.workspace / "f.txt").read_text() == "precious\n"


@req("FS-2")
def test_16_05_paths_outside_are_blocked_for_all_file_tools(ostler, models):
    """Every file tool rejects `..`, an absolute path outside and a symlink that leads outside, with code and reason."""
    outside = ostler.workspace.parent / "outside"
    outside.mkdir()
    (outside / "f.txt").write_text("secret\n")
    (ostler.workspace / "link").symlink_to(outside)
    for path in ("../outside/f.txt", "link/f.txt", str(outside / "f.txt")):
        for tool, arguments in (
            ("read", {"path": path}),
            ("list", {"path": path}),
            ("grep", {"path": path, "pattern": "s"}),
            ("write", {"path": path, "content": "x"}),
            ("edit", {"path": path, "old": "secret", "new": "x"}),
            ("glob", {"path": path, "pattern": "*"}),
            ("patch", {"patch": f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-secret\n+x\n"}),
        ):
            with models.playing(calls([(tool, arguments)]), text("ok")) as server:
                done = ostler("run", "--write", "-o", "jsonl", *at(server), "go")
            assert "secret\n" not in server.requests[1].json["messages"][-1]["content"]
            finished = [r["event"] for r in map(json.loads, done.stdout.splitlines()) if "event" in r]
            (result,) = [event["result"] for event in finished if event["type"] == "tool_finished"]
            assert result["fault"]["code"] == "outside_workspace", (tool, result)
            assert str(outside) in result["fault"]["message"]
    assert (outside / "f.txt").read_text() == "secret\n"


MCP_SERVER = Path(__file__).parents[1] / "mcp" / "fake_mcp_server.py"


def configure_mcp(ostler, **servers):
    """Configure MCP servers, each started with the given arguments, whose tools need no approval."""
    entries = {name: {"command": ["python3", str(MCP_SERVER), *args]} for name, args in servers.items()}
    rules = {f"{name}_*": "allow" for name in servers}
    (ostler.home / ".ostler").mkdir(exist_ok=True)
    (ostler.home / ".ostler" / "config.json").write_text(json.dumps({"mcp": entries, "permission": rules}))


@req("MC-1", "MC-2", "MC-3")
def test_16_06_local_mcp_servers_work(ostler, models):
    """Two configured stdio servers start and a call reaches the right one, even if a third crashes."""
    configure_mcp(ostler, one=["--name", "one"], two=["--name", "two", "--era", "legacy"], three=["--mode", "exit"])
    steps = [
        calls([("two_echo", {"text": "a"}), ("one_echo", {"text": "b"}), ("three_echo", {"text": "c"})]),
        calls([("one_crash", {})]),
        calls([("one_echo", {"text": "d"}), ("two_echo", {"text": "e"})]),
        text("done"),
    ]
    with models.playing(*steps) as server:
        done = ostler("run", *at(server), "go")
    assert done.code == 0, done.stderr
    results = [message["content"] for message in server.requests[-1].json["messages"] if message["role"] == "tool"]
    assert results[:2] == ["two: a", "one: b"]
    assert "the MCP server three failed: " in results[2]
    assert results[4:] == ["one: d", "two: e"]


@req("EN-10")
def test_16_07_skills_load_on_demand_with_permissions(ostler, models):
    """The context lists skills by name; their text is loaded on request; a denied skill is not available."""
    for name, folder in (("pdf", ostler.workspace / ".claude"), ("sql", ostler.home / ".ostler")):
        (folder / "skills" / name).mkdir(parents=True)
        (folder / "skills" / name / "SKILL.md").write_text(f"---\ndescription: About {name}.\n---\nThe {name} text.")
    (ostler.home / ".ostler" / "config.json").write_text('{"permission": {"skill": {"sql": "deny"}}}')
    script = (
        calls([("skill", {})]),
        calls([("skill", {"name": "pdf"})]),
        calls([("skill", {"name": "sql"})]),
        text("ok"),
    )
    with models.playing(*script) as server:
        ostler("run", *at(server), "go")
    first, second, third, last = (request.json["messages"] for request in server.requests)
    assert "- pdf: About pdf." in first[0]["content"]
    assert "sql" not in first[0]["content"]
    assert second[-1]["content"] == "- pdf: About pdf."
    assert "The pdf text." not in str(second)
    assert "The pdf text." in third[-1]["content"]
    assert "The sql text." not in str(last)


@req("EN-9")
def test_16_08_auto_compaction_keeps_the_task(ostler, models):
    """A session that exceeds its window is summarised automatically; objective, files, risks, steps, todos remain."""
    for name in "abcd":
        (ostler.workspace / f"{name}.txt").write_text(f"text of {name}\n" * 1500)
    plan = {"todos": [{"content": "compare the files", "status": "in_progress"}]}
    notes = "Objective: compare.\nPending risks: d is unread.\nNext steps: read d."
    script = [
        calls([("todowrite", plan)]),
        *(calls([("read", {"path": f"{name}.txt"})]) for name in "ab"),
        text(notes),
        text("compared"),
    ]
    (ostler.home / ".ostler").mkdir()
    (ostler.home / ".ostler" / "config.json").write_text('{"compaction": {"prune": false, "threshold": 0.6}}')
    window = {"id": "scripted", "object": "model", "max_model_len": 24_000}
    with models.playing(*script, models=[window]) as server:
        done = ostler("run", "-o", "json", *at(server), "Compare the files, but never change c.txt")
    assert (done.code, json.loads(done.stdout)["answer"]) == (0, "compared")
    summary = server.requests[-1].json["messages"][1]["content"]
    expected = (
        "Compare the files, but never change c.txt",
        "[~] compare the files",
        "a.txt",
        *notes.split("\n"),
    )
    assert [part for part in expected if part not in summary] == []
    unseen = server.requests[-1].json["messages"][2:]
    assert "b.txt" in str(unseen[0]["tool_calls"]), "unseen results are kept next to the summary"
    assert "text of b" in unseen[1]["content"]
    assert b"text of a" in server.requests[-3].body
    assert b"text of a" not in server.requests[-1].body


@req("EN-7")
def test_16_09_project_rules_override_global_ones(ostler, models):
    """Both rule files are in the request; the project's comes last and takes precedence."""
    (ostler.home / ".ostler").mkdir()
    (ostler.home / ".ostler" / "AGENTS.md").write_text("Indent with tabs.\n")
    (ostler.workspace / "AGENTS.md").write_text("Indent with spaces.\n")
    with models.playing(text("ok")) as server:
        ostler("run", *at(server), "hello")
    prompt = server.requests[0].json["messages"][0]["content"]
    assert prompt.index("with tabs") < prompt.index("they override") < prompt.index("with spaces")


@req("PM-1", "PM-2")
def test_16_10_permission_keys_are_unambiguous(ostler):
    """A rule for `edit` applies to `write`, `edit` and `patch`; `explain` shows the rule."""
    (ostler.home / ".ostler").mkdir()
    (ostler.home / ".ostler" / "config.json").write_text('{"permission": {"edit": "deny"}}')
    for tool, arguments in (
        ("write", '{"path": "a", "content": ""}'),
        ("edit", '{"path": "b", "old": "x", "new": "y"}'),
    ):
        (ostler.workspace / "b").write_text("x")
        explained = ostler("permissions", "explain", tool, arguments)
        assert (explained.code, explained.stdout.split(":")[0]) == (4, "deny")
        assert 'rule edit "*" deny' in explained.stdout


@req("EN-5", "SE-1")
def test_16_11_todos_persist_in_the_session(ostler, models):
    """A list written by the model can be read, updated, and is still available in the resumed session."""

    def plan(first, second):
        return ("todowrite", {"todos": [{"content": "look", "status": first}, {"content": "fix", "status": second}]})

    with models.playing(
        calls([plan("in_progress", "pending")]),
        calls([("todoread", {})]),
        calls([plan("completed", "in_progress")]),
        text("half way"),
    ) as server:
        ostler("run", *at(server), "go")
    assert "[~] 1. look\n[ ] 2. fix" in server.requests[2].json["messages"][-1]["content"]
    (session,) = (folder.name for folder in ostler.home.glob(".ostler/projects/*/sessions/*"))
    with models.playing(calls([("todoread", {})]), text("so it is")) as server:
        ostler("run", "--resume", session, *at(server), "where are we?")
    assert "[x] 1. look\n[~] 2. fix" in server.requests[1].json["messages"][-1]["content"]


@req("EN-6")
def test_16_12_edits_are_validated_and_failures_fed_back(ostler, models):
    """After an edit the project's check runs; its failure is in the next request; the turn ends when it passes.

    If the model gives up, the run fails and says that the check still fails.
    """
    (ostler.workspace / "test_sum.py").write_text(
        "import unittest, sums\n\n"
        "class T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(sums.one(), 1)\n"
    )
    with models.playing(
        calls([("write", {"path": "sums.py", "content": "def one(): return 2\n"})]),
        text("done"),
        calls([("edit", {"path": "sums.py", "old": "return 2", "new": "return 1  # as it should"})]),
        text("fixed"),
    ) as server:
        done = ostler("run", "--write", "--allow", "bash:python3 *", "-o", "simple", *at(server), "go")
        sent = json.dumps(server.requests[2].json["messages"][-1])
    assert "unittest discover" in sent and "2 != 1" in sent
    assert (done.stdout, done.code) == ("done\nfixed\n", 0), done.stderr
    with models.playing(
        calls([("edit", {"path": "sums.py", "old": "return 1", "new": "return 100"})]),
        text("done!"),
        text("still good"),
    ) as server:
        done = ostler("run", "--write", "--allow", "bash:python3 *", "-o", "json", *at(server), "--continue", "go")
    summary = json.loads(done.stdout)
    assert (summary["reason"], summary["exit"], done.code) == ("failed", 1, 1)
    assert "check" in summary["error"]["message"]


@req("MD-8", "CL-7")
def test_16_13_context_length_is_shown(ostler, models):
    """`/context` prints tokens used, the limit and the percentage, and they grow with the session.

    The limit is the server's if it reports one, from the first turn on.
    """
    with models.playing(text("short").with_usage(3000, 10), text("longer").with_usage(5000, 20)) as server:
        done = ostler("chat", *at(server), stdin="hello\n/context\nmore\n/context\n")
    assert re.findall(r"(\d+) of (\d+) tokens \((\d+)%\)", done.stdout) == [
        ("3010", "32768", "9"),
        ("5020", "32768", "15"),
    ]
    listed = [{"id": "scripted", "object": "model", "owned_by": "vllm", "max_model_len": 24000}]
    with models.playing(text("one").with_usage(9000, 10), models=listed) as server:
        done = ostler("chat", *at(server), stdin="hello\n/context\n")
    assert re.findall(r"(\d+) of (\d+) tokens \((\d+)%\)", done.stdout) == [("9010", "24000", "38")]


@req("MD-7")
def test_16_14_model_switches_at_run_time(ostler, models):
    """After `/models other` the next request and the session's metadata name `other`."""
    with models.playing(text("one"), text("two"), models=["scripted", "other"]) as server:
        ostler("chat", *at(server), stdin="hello\n/models other\nagain\n")
    assert [request.json["model"] for request in server.requests] == ["scripted", "other"]
    (meta,) = ostler.home.glob(".ostler/projects/*/sessions/*/meta.json")
    assert json.loads(meta.read_text())["model"] == "other"


@req("CL-1")
def test_16_15_chinese_input_keeps_cursor_and_layout(terminal, models):
    """In a pseudo-terminal, Chinese text can be typed, navigated and deleted, with a correct screen."""
    with models.playing(text("好")) as server:
        term = terminal("chat", *at(server))
        term.ready()
        term.type("你好世界")
        term.wait_for(lambda _: term.screen.cursor.x == 10)
        term.type("\x1b[D\x1b[D")  # left, left: before the third
        term.wait_for(lambda _: term.screen.cursor.x == 6)
        term.type("\x7f")
        term.wait_for(lambda _: term.screen.cursor.x == 4)
        term.type("们")
        term.wait_for(lambda _: term.screen.cursor.x == 6)
        assert "> 你们世界" in term.text.replace("\x00", "").replace("  ", " ") or "你 们 世 界" in term.text
        term.type("\r")
        term.wait_for("ANSWER")
        assert server.requests[0].json["messages"][-1]["content"] == "你们世界"


@req("CL-1")
def test_16_16_prompt_history_survives_a_restart(terminal, models):
    """In a pseudo-terminal, Up and Down recall earlier prompts, also those of the program's previous run."""
    with models.playing(text("first answer"), text("second answer")) as server:
        term = terminal("chat", *at(server))
        for words, answer in (("the first words", "first answer"), ("the second words", "second answer")):
            term.ready()
            term.type(f"{words}\r")
            term.wait_for(answer)
        term.ready()
        term.type("\x04")
        term.leave()
        again = terminal("chat", *at(server))
        again.ready()
        again.type("\x1b[A")
        again.wait_for("> the second words")
        again.type("\x1b[A")
        again.wait_for("> the first words")
        again.type("\x1b[B")
        again.wait_for("> the second words")


@req("CL-5")
def test_22_1_1_tool_execution_is_visible(ostler, models):
    """A tool call prints a line when it starts and a summary when it ends, is blocked or fails."""
    with models.playing(
        calls([("list", {}), ("read", {"path": "none"}), ("write", {"path": "x", "content": ""})]), text("ok")
    ) as server:
        done = ostler("run", *at(server), "go")
    lines = done.stdout.splitlines()
    assert "⏺ list {}" in lines
    assert any("⎿ 0 entries" in line for line in lines)
    assert any("⎿" in line and "none" in line for line in lines)
    assert any("⎿ blocked:" in line for line in lines)


@req("CL-5")
def test_22_1_2_output_is_segmented(ostler, models):
    """Text before a tool call is marked as `PLAN`, then the call, and the last text is marked as `ANSWER`."""
    with models.playing(calls([("list", {})], text="First I look."), text("Nothing there.")) as server:
        done = ostler("run", *at(server), "go")
    assert [line for line in done.stdout.splitlines() if line and "⎿" not in line] == [
        "● First I look.",
        "  ↑ PLAN",
        "⏺ list {}",
        "● Nothing there.",
        "  ↑ ANSWER",
    ]


@req("CL-5")
def test_22_1_3_colour_and_its_switches(terminal, ostler, models):
    """Output to a terminal is coloured; with `NO_COLOR`, `AGENT_NO_COLOR` or a pipe it has no escape sequences."""
    with models.playing(text("a"), text("b"), text("c"), text("d")) as server:
        assert "\x1b" not in ostler("run", *at(server), "go").stdout
        for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"AGENT_NO_COLOR": "1"}, False)):
            term = terminal("run", *at(server), "go", env=env)
            term.wait_for("ANSWER")
            term.leave()
            assert (b"\x1b[" in term.raw) == coloured


@req("EN-14")
def test_22_2_1_replies_in_the_users_language(ostler, models):
    """The system prompt asks the model to answer in the user's language."""
    with models.playing(text("你好")) as server:
        ostler("run", *at(server), "你好")
    system, prompt = server.requests[0].json["messages"]
    assert (system["role"], prompt["content"]) == ("system", "你好")
    assert "Reply in the user's language" in system["content"]


@req("MD-4")
def test_22_2_2_content_in_every_shape(ostler, models):
    """Content as a string, as typed parts or as an object is shown as text; anything else as compact JSON."""
    shapes = {
        "plain": "plain",
        "parts": [{"type": "text", "text": "par"}, {"type": "text", "text": "ts"}],
        "object": {"text": "object"},
        '{"odd":1}': {"odd": 1},
    }
    for expected, content in shapes.items():
        frame = {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": "stop"}]}
        with models.playing(sse_reply(frame)) as server:
            assert ostler("run", "-o", "simple", *at(server), "go").stdout == f"{expected}\n"


@req("MD-3")
def test_22_3_1_dashscope_key_is_the_fallback(ostler, models):
    """`DASHSCOPE_API_KEY` is used for Bailian only if `AGENT_API_KEY` is not set, and is sent to no other endpoint."""
    bailian = ["--base-url", "https://dashscope.aliyuncs.com/compatible-mode/v1", "--model", "qwen3"]
    for env, source, sent in (
        ({"DASHSCOPE_API_KEY": "dash"}, "DASHSCOPE_API_KEY", None),
        ({"DASHSCOPE_API_KEY": "dash", "AGENT_API_KEY": "agent"}, "AGENT_API_KEY", "Bearer agent"),
    ):
        doctor = ostler("doctor", *bailian, env=env | {"HTTPS_PROXY": "http://127.0.0.1:9"})  # sends nothing
        assert f"key from {source}" in doctor.stdout
        with models.playing(text("ok")) as server:
            ostler("run", *at(server), "go", env=env)
        assert server.requests[0].headers.get("authorization") == sent


@req("MD-1", "DX-4")
def test_22_3_2_bailian_endpoints_are_documented(ostler):
    """The docs have a valid config with the endpoints of Beijing, Singapore and Virginia."""
    guide = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
    (config,) = (block for block in re.findall(r"```jsonc\n(.*?)```", guide, re.DOTALL) if "dashscope" in block)
    (ostler.home / ".ostler").mkdir()
    (ostler.home / ".ostler" / "config.jsonc").write_text(config)
    shown = ostler("config", "show")
    assert shown.code == 0, shown.stderr
    for host in ("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"):
        assert f"https://{host}/compatible-mode/v1" in shown.stdout


@req("MC-1", "EN-4", "TL-5", "SE-3")
def test_22_4_full_scope(ostler, models):
    """One session offers the model `patch`, `task` and an MCP tool, and can be continued and forked afterwards."""
    configure_mcp(ostler, files=["--name", "files"])
    assert ostler("mcp", "test", "files").code == 0
    patch = "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+hello\n"
    task = {"agent": "explore", "title": "look", "prompt": "look around"}
    steps = [
        calls([("patch", {"patch": patch})]),
        calls([("files_echo", {"text": "hi"})]),
        calls([("task", task)]),
        text("the child's report"),
        text("finished"),
    ]
    with models.playing(*steps) as server:
        done = ostler("run", "--write", "-o", "json", *at(server), "go")
    assert json.loads(done.stdout)["answer"] == "finished", done.stderr
    offered = {tool["function"]["name"] for tool in server.requests[0].json["tools"]}
    assert {"patch", "task", "files_echo"} <= offered
    assert (ostler.workspace / "new.txt").read_text() == "hello\n"
    results = [message["content"] for message in server.requests[-1].json["messages"] if message["role"] == "tool"]
    assert results[1:] == ["files: hi", "the child's report"]
    session = json.loads(done.stdout)["session"]
    for flags in (["--resume", session], ["--resume", session, "--fork"]):
        with models.playing(text("again")) as server:
            again = ostler("run", *flags, "-o", "json", *at(server), "more")
        assert json.loads(again.stdout)["answer"] == "again", again.stderr
        assert "files: hi" in json.dumps(server.requests[0].json["messages"])
        assert (json.loads(again.stdout)["session"] == session) == ("--fork" not in flags)


@req("EN-5")
def test_22_5_1_todos_come_first(ostler, models):
    """In a complex turn without todos, a starter list is created before other tools run."""
    for request, first in (
        ("refactor the parser, then test it, then stop", "Inspect"),
        ("重构解析器，然后测试", "查看"),
    ):
        with models.playing(calls([("list", {})]), text("done")) as server:
            done = ostler("run", "-o", "jsonl", *at(server), request)
        kinds = [record.get("event", {}).get("type") for record in map(json.loads, done.stdout.splitlines())]
        assert kinds.index("todos_changed") < kinds.index("tool_started")
        assert f"[~] {first}" in json.dumps(server.requests[1].json["messages"], ensure_ascii=False)
    for request, is_complex in (
        ("Add a function parse() to a.py and write tests for it", True),
        ("1. do a\n2. do b\n3. do c", True),
        ("fix the typo in README", False),
        ("Could you please explain what the function parse in reader.py does and why it may be slow?", False),
        ("hi", False),
    ):
        with models.playing(calls([("list", {})]), text("done")) as server:
            done = ostler("run", "-o", "jsonl", *at(server), request)
        assert ("todos_changed" in done.stdout) == is_complex, request


@req("EN-5", "CL-5", "CL-7")
def test_22_5_2_todos_render_as_a_checklist(ostler, models):
    """`/todo` and the todo tools' lines show `[ ]`, `[~]` and `[x]` items, not a count alone."""
    todos = [
        {"content": "look", "status": "completed"},
        {"content": "fix", "status": "in_progress"},
        {"content": "test", "status": "pending"},
    ]
    with models.playing(calls([("todowrite", {"todos": todos})]), text("ok")) as server:
        done = ostler("chat", *at(server), stdin="go\n/todo\n")
    for line in ("[x] look", "[~] fix", "[ ] test"):
        assert done.stdout.count(line) >= 2, done.stdout


@req("PM-5")
def test_22_5_3_edit_approval_is_structured(ostler, models):
    """The approval request for a large write shows path, operation, line counts and a diff; no raw JSON."""
    (ostler.workspace / "a.txt").write_text("".join(f"line {number}\n" for number in range(300)))
    new = "".join(f"line {number} changed\n" for number in range(300))
    moves = [calls([("read", {"path": "a.txt"})]), calls([("write", {"path": "a.txt", "content": new})]), text("ok")]
    with models.playing(*moves) as server:
        done = ostler("chat", *at(server), stdin="go\nn\n")
    asked = done.stdout[: done.stdout.index("deny")]
    assert "a.txt" in asked
    assert "+300 -300" in asked
    assert "-line 299" in asked
    assert "+line 299 changed" in asked
    assert '"content"' not in asked
    assert done.stdout.count("⏺ write a.txt\n") == 1
    assert '"content"' not in done.stdout


@req("FS-5", "CL-5")
def test_22_5_4_write_result_is_readable(ostler, models):
    """A write reports created, updated or unchanged, lines added and removed, and shows its diff."""
    (ostler.workspace / "a.txt").write_text("one\ntwo\n")
    moves = [
        calls([("write", {"path": "new.txt", "content": "x\n"}), ("read", {"path": "a.txt"})]),
        calls([("write", {"path": "a.txt", "content": "one\nthree\n"})]),
        calls([("write", {"path": "a.txt", "content": "one\nthree\n"})]),
        text("ok"),
    ]
    with models.playing(*moves) as server:
        done = ostler("run", "--write", *at(server), "go")
    assert "created new.txt (+1 -0)" in done.stdout
    assert "updated a.txt (+1 -1)" in done.stdout
    assert "unchanged a.txt (+0 -0)" in done.stdout
    assert "-two" in done.stdout
    assert "+three" in done.stdout
