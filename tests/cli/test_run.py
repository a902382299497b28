"""`ostler run` as a script uses it: real process, HTTP and files."""

import json
import os
import shlex
import signal
import subprocess
import sys

import jsonschema
import pytest

from ostler.testing.model_server import calls, html, stall, status, text


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


@pytest.mark.req("CL-8", "MD-1")
def test_text(ostler, models):
    with models.playing(calls([("read", {"path": "a.txt"})], text="Let me look."), text("It says hello.")) as server:
        (ostler.workspace / "a.txt").write_text("hello\n")
        done = ostler("run", *at(server), "what is in a.txt?")
    assert done.code == 0
    assert done.stdout.splitlines() == [
        "● Let me look.",
        "  ↑ PLAN",
        '⏺ read {"path": "a.txt"}',
        "  ⎿ 1 of 1 lines",
        "",
        "● It says hello.",
        "  ↑ ANSWER",
    ]
    assert done.stderr.splitlines() == [
        f"ostler: model: scripted at {server.base_url}, openai API",
        "ostler: allowed: read the workspace; run commands in the sandbox, read-only",
    ]
    sent = server.requests[1].json["messages"]
    assert "hello" in sent[-1]["content"]


@pytest.mark.req("CL-8")
def test_json_output(ostler, models):
    with models.playing(text("Hi.").with_usage(11, 3)) as server:
        done = ostler("run", "-o", "json", *at(server), "hello")
    summary = json.loads(done.stdout)
    assert (summary["answer"], summary["reason"], summary["exit"]) == ("Hi.", "done", 0)
    assert summary["usage"] == {"tokens_in": 11, "tokens_out": 3, "tokens_cached": 0, "cost": None}


@pytest.mark.req("CL-8")
def test_jsonl_output(ostler, models):
    with models.playing(calls([("list", {})]), text("Done.")) as server:
        done = ostler("run", "-o", "jsonl", *at(server), "hello")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [record["event"]["type"] for record in records[:-1]]
    assert kinds[0] == "session_opened"
    assert kinds.index("turn_started") < kinds.index("tool_called") < kinds.index("tool_finished")
    assert kinds[-1] == "turn_ended"
    assert (records[-1]["type"], records[-1]["answer"]) == ("summary", "Done.")
    seqs = [record["seq"] for record in records[:-1]]
    assert seqs == sorted(seqs)


@pytest.mark.req("CL-8")
def test_prompt_from_arguments_and_pipe(ostler, models):
    (ostler.workspace / ".env").write_text("SECRET=1\n")
    for words, piped, sent in (
        (["one", "two"], "", "one two"),
        ([], "from a pipe\n", "from a pipe"),
        (["review"], "x = 1\n", "review\n\nx = 1"),
        (["review"], "see @.env and @agent:plan\n", "review\n\nsee @.env and @agent:plan"),
    ):
        with models.playing(text("ok")) as server:
            done = ostler("run", *at(server), *words, stdin=piped)
        messages = server.requests[0].json["messages"]
        assert (messages[-1]["content"], "allowed for plan" in done.stderr) == (sent, False)
        assert "SECRET" not in str(messages)


@pytest.mark.req("CL-8", "PM-4", "SH-4")
def test_denied_call_is_listed_with_exit_4(ostler, models):
    with models.playing(calls([("write", {"path": "a.txt", "content": "x"})]), text("I could not.")) as server:
        done = ostler("run", *at(server), "write it")
    assert done.code == 4
    assert "denied: write a.txt" in done.stdout
    assert not (ostler.workspace / "a.txt").exists()
    assert "non-interactive" in server.requests[1].json["messages"][-1]["content"].lower()


@pytest.mark.req("PM-4", "FS-5")
def test_write_flag_allows_only_the_workspace(ostler, models):
    wanted = [("write", {"path": "deep/a.txt", "content": "x\n"}), ("write", {"path": "../out.txt", "content": "x"})]
    with models.playing(calls(wanted), text("One of two.")) as server:
        done = ostler("run", "--write", *at(server), "write")
    assert (ostler.workspace / "deep" / "a.txt").read_text() == "x\n"
    assert not (ostler.workspace.parent / "out.txt").exists()
    assert done.code == 4
    assert "created deep/a.txt (+1 -0)" in done.stdout


@pytest.mark.req("FS-2", "FS-3")
def test_reading_outside_needs_yolo(ostler, models):
    secret = ostler.home / "secret.txt"
    secret.write_text("the secret\n")
    for flags, allowed in (([], False), (["--write"], False), (["--yolo"], True)):
        with models.playing(calls([("read", {"path": str(secret)})]), text("ok")) as server:
            done = ostler("run", *flags, *at(server), "read it")
        assert ("the secret" in server.requests[1].json["messages"][-1]["content"]) is allowed
        assert done.code == (0 if allowed else 4)


@pytest.mark.req("SE-1", "CL-8")
def test_session_is_saved_and_resumed(ostler, models):
    with models.playing(text("First.")) as server:
        ostler("run", *at(server), "one")
    (folder,) = (ostler.home / ".ostler" / "projects").glob("*/sessions/*")
    assert oct(folder.stat().st_mode & 0o777) == "0o700"
    with models.playing(text("Second.")) as server:
        done = ostler("run", "--resume", folder.name, *at(server), "two")
    assert done.code == 0
    messages = [(m["role"], m["content"]) for m in server.requests[0].json["messages"]]
    assert messages[1:] == [("user", "one"), ("assistant", "First."), ("user", "two")]
    missing = ostler("run", "--resume", "nope", *at(server), "three")
    assert (missing.code, "session 'nope' not found" in missing.stderr) == (2, True)


def test_ephemeral_saves_nothing(ostler, models):
    with models.playing(text("ok")) as server:
        ostler("run", "--ephemeral", *at(server), "hello")
    assert list(ostler.home.iterdir()) == []


@pytest.mark.req("EN-2", "CL-8")
def test_step_limit_is_exit_3(ostler, models):
    with models.playing(calls([("list", {})]), calls([("list", {})])) as server:
        done = ostler("run", "--max-steps", "2", *at(server), "loop")
    assert done.code == 3
    assert "limit: 2 steps" in done.stdout


@pytest.mark.req("CL-8")
def test_timeout_is_exit_124_and_recorded(ostler, models):
    with models.playing(stall("body")) as server:
        done = ostler("run", "--timeout", "4", "-o", "json", *at(server), "wait")
    assert done.code == 124
    assert json.loads(done.stdout)["reason"] == "timeout"
    (journal,) = (ostler.home / ".ostler").rglob("journal.jsonl")
    assert '"reason":"timeout"' in journal.read_text()


@pytest.mark.req("CL-9")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_cancels_the_turn_with_exit_130(ostler, models, number):
    with models.playing(stall("body")) as server:
        command = [sys.executable, "-P", "-m", "ostler", "run", "-o", "jsonl", *at(server), "wait"]
        with subprocess.Popen(
            command,
            cwd=ostler.workspace,
            env=ostler.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            models.wait(server.wait_for_requests(1))
            process.send_signal(number)
            rest = process.stdout.read().splitlines()
            assert process.wait(timeout=10) == 130
    assert json.loads(rest[-1])["reason"] == "cancelled"
    assert '"turn_ended"' in sorted((ostler.home / ".ostler").rglob("journal.jsonl"))[0].read_text()


@pytest.mark.req("CL-9")
def test_closed_pipe_is_not_an_error(ostler, models):
    with models.playing(text("".join(f"line {number}\n" for number in range(20_000)))) as server:
        program = shlex.join([sys.executable, "-P", "-m", "ostler", "run", "-o", "simple", *at(server), "go"])
        command = f"{program} | head -1; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=ostler.workspace,
            env=ostler.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.stdout == "line 0\n"
    assert "Traceback" not in done.stderr


MISTAKES = {
    "no prompt": (["run"], "no prompt; pass it as an argument"),
    "unknown flag": (["run", "--wirte", "x"], "--wirte"),
    "unknown command": (["rum"], "did you mean run"),
    "unknown option": (["--bogus"], "unrecognized arguments: --bogus; see `ostler chat --help`"),
    "bad choice": (["run", "-o", "xml", "x"], "invalid choice"),
    "no such folder": (["run", "--cwd", "/nonexistent", "x"], "no such folder"),
    "no model": (["run", "x"], "no model configured"),
    "bad rule": (
        ["run", "--allow", ":x", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", "x"],
        "does not name a permission",
    ),
    "bad url": (["run", "--base-url", "nonsense", "--model", "m", "x"], "baseUrl"),
}


@pytest.mark.parametrize("case", MISTAKES, ids=str)
def test_usage_error_is_one_sentence_with_exit_2(ostler, case):
    arguments, sentence = MISTAKES[case]
    done = ostler(*arguments)
    assert done.code == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") <= 2
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert list(ostler.home.iterdir()) == []


@pytest.mark.parametrize(
    ("reply", "code", "sentence"),
    [
        (status(401, {"error": {"message": "bad key"}}), 1, "key"),
        (status(404, {"error": {"message": "no such model"}}), 1, "scripted"),
        (html(), 1, "base URL"),
    ],
    ids=["wrong key", "unknown model", "wrong address"],
)
def test_server_error_is_one_sentence(ostler, models, reply, code, sentence):
    with models.playing(reply) as server:
        done = ostler("run", "--api-key", "sk-very-secret", *at(server), "hello")
    assert done.code == code
    assert sentence in done.stdout + done.stderr
    assert "sk-very-secret" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_unreachable_endpoint(ostler):
    done = ostler("run", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", "hello", env={"WITHOUT_PAUSES": "1"})
    assert done.code == 1
    assert "127.0.0.1:9" in done.stdout
    assert "Traceback" not in done.stderr


def test_missing_home(ostler, models):
    with models.playing() as server:
        done = ostler("run", *at(server), "hello", env={"HOME": ""})
    assert done.code == 2
    assert "HOME" in done.stderr
    with models.playing(text("ok")) as server:
        done = ostler("run", "--ephemeral", *at(server), "hello", env={"HOME": ""})
    assert done.code == 0


def test_unwritable_home(ostler, models):
    blocked = ostler.home / "file"
    blocked.write_text("in the way")
    with models.playing() as server:
        done = ostler("run", *at(server), "hello", env={"OSTLER_HOME": str(blocked)})
    assert done.code == 2
    assert "OSTLER_HOME" in done.stderr
    assert "Traceback" not in done.stderr


def test_invalid_settings_are_located(ostler):
    (ostler.home / ".ostler").mkdir()
    (ostler.home / ".ostler" / "config.json").write_text('{\n  "model": "x",\n  "limits": {"steps": "many"},,\n}\n')
    done = ostler("run", "hello")
    assert done.code == 2
    assert "config.json:3:" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to mount a small file system")
def test_full_disk(ostler, models, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(small)], check=False).returncode:
        pytest.skip("cannot mount here")
    try:
        (small / "filler").write_bytes(b"x" * 4096 * 2)
        with models.playing(text("y" * 60_000)) as server:
            done = ostler("run", *at(server), "hello", env={"OSTLER_HOME": str(small / "home")})
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert done.code == 1
    assert "earlier records are intact" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.req("CL-8")
def test_jsonl_matches_the_published_schema(ostler, models):
    schema = json.loads(ostler("run", "--print-schema").stdout)
    check = jsonschema.Draft202012Validator(schema)
    moves = [
        calls([("todowrite", {"todos": [{"content": "look", "status": "in_progress"}]}), ("read", {"path": "a.txt"})]),
        calls([("write", {"path": "b.txt", "content": "x\n"}), ("bash", {"command": "rm a.txt"})]),
        text("Done.").with_usage(7, 2),
    ]
    (ostler.workspace / "a.txt").write_text("hello\n")
    with models.playing(*moves) as server:
        done = ostler("run", "-o", "jsonl", "--write", *at(server), "go")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(records) > 10
    for record in records:
        check.validate(record)
    assert records[-1]["type"] == "summary"
    assert records[-1]["exit"] == done.code == 4
    assert not check.is_valid({"type": "summary", "answer": 3})
    assert not check.is_valid({"seq": 1, "time": 2, "event": {"type": "turn_started"}})


@pytest.mark.req("CL-8")
@pytest.mark.parametrize("output", ["json", "jsonl"])
def test_startup_error_writes_a_final_record(ostler, output):
    done = ostler("run", "-o", output, "--resume", "no-such-session", *at_unreachable(), "go")
    assert done.code == 2
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["type"], summary["exit"], summary["error"]["code"]) == ("summary", 2, "usage")
    assert "no-such-session" in done.stderr


def at_unreachable():
    return ["--base-url", "http://127.0.0.1:9/v1", "--model", "nobody"]


SCHEMA = {
    "type": "object",
    "required": ["ok"],
    "properties": {"ok": {"type": "boolean"}},
    "additionalProperties": False,
}


@pytest.mark.req("CL-8")
def test_answer_is_requested_until_it_matches_the_schema(ostler, models):
    (ostler.workspace / "shape.json").write_text(json.dumps(SCHEMA))
    with models.playing(text("Sure!"), text('{"ok": "yes"}'), text('```json\n{"ok": true}\n```')) as server:
        done = ostler("run", "-o", "simple", "--output-schema", "shape.json", *at(server), "is it ok?")
    assert (done.code, done.stdout) == (0, '{"ok":true}\n')
    requests = [str(request.json["messages"]) for request in server.requests]
    assert "JSON Schema" in requests[0]
    assert "not JSON" in requests[1]
    assert "data.ok must be boolean" in requests[2]


@pytest.mark.req("CL-8")
def test_answer_that_never_matches_is_exit_1(ostler, models):
    (ostler.workspace / "shape.json").write_text(json.dumps(SCHEMA))
    with models.playing(text("a"), text("b"), text("c")) as server:
        done = ostler("run", "-o", "json", "--output-schema", "shape.json", *at(server), "is it ok?")
    summary = json.loads(done.stdout)
    assert (done.code, summary["error"]["code"], summary["output"]) == (1, "output_schema", None)


@pytest.mark.req("CL-8")
@pytest.mark.parametrize("schema", ["{", '{"type": "nothing"}', '{"$ref": "http://127.0.0.1:9/x"}', "[1]", None])
def test_invalid_schema_is_a_usage_error(ostler, schema):
    if schema is not None:
        (ostler.workspace / "shape.json").write_text(schema)
    done = ostler("run", "--output-schema", "shape.json", *at_unreachable(), "go")
    assert (done.code, done.stdout) == (2, "")
    assert "shape.json" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.req("SE-2")
def test_fork_leaves_the_original_unchanged(ostler, models):
    with models.playing(text("One."), text("Two.")) as server:
        first = json.loads(ostler("run", "-o", "json", *at(server), "first").stdout)
        before = ostler("sessions", "show", first["session"]).stdout
        copy = json.loads(ostler("run", "-o", "json", "-c", "--fork", *at(server), "second").stdout)
    assert copy["session"] != first["session"]
    assert ostler("sessions", "show", first["session"]).stdout == before
    assert "One." in ostler("sessions", "show", copy["session"]).stdout
    assert [message["content"] for message in server.requests[1].json["messages"]][-3:] == ["first", "One.", "second"]
    assert ostler("run", "--fork", "x").code == 2


@pytest.mark.req("TL-12", "CL-2")
def test_image_that_the_prompt_mentions_reaches_the_model(ostler, models):
    (ostler.workspace / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\nice")
    with models.playing(text("a cat")) as server:
        result = ostler("run", *at(server), "what is on @shot.png?")
        (content,) = (m["content"] for m in server.requests[0].json["messages"] if m["role"] == "user")
    assert (result.code, "attached shot.png (image)" in result.stderr) == (0, True)
    assert {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgppY2U="}} in content
