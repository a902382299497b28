"""`ostler tool` as a script uses it."""

import base64
import json
import signal
import subprocess
import sys

import pytest

from ostler.processes import bubblewrap
from ostler.testing.model_server import calls, text

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def result_of(done):
    return json.loads(done.stdout)


@pytest.mark.req("TL-3")
def test_list_and_schema(ostler):
    listed = ostler("tool", "list").stdout.splitlines()
    names = [line.split()[0] for line in listed]
    assert {"read", "grep", "bash", "git_status", "write_chunk"} <= set(names)
    assert all(len(line) <= 125 for line in listed)
    assert next(line for line in listed if line.startswith("stat ")).endswith("(not offered here)")
    schema = result_of(ostler("tool", "schema", "Read"))
    assert (schema["name"], schema["schema"]["required"]) == ("read", ["path"])


@pytest.mark.req("TL-4", "FS-1")
def test_call_prints_its_result(ostler):
    (ostler.workspace / "a.txt").write_text("one\ntwo\n")
    done = ostler("tool", "call", "read", '{"path": "a.txt", "line": 2}')
    assert (done.code, done.stderr) == (0, "")
    result = result_of(done)
    assert set(result) == {"call_id", "status", "for_model", "data", "fault"}
    assert (result["status"], result["for_model"]) == ("ok", "     2\ttwo")
    assert result["data"]["content"] == "two"
    aliased = result_of(
        ostler("tool", "call", "SysBuiltIn.read_file", '{"path": "a.txt", "startLine": 2, "endLine": -1}')
    )
    assert aliased["for_model"] == "two"


def test_arguments_from_standard_input_and_none(ostler):
    (ostler.workspace / "a.txt").write_text("one\n")
    assert result_of(ostler("tool", "call", "cat", "-", stdin='{"filename": "a.txt"}'))["data"]["content"] == "one"
    assert result_of(ostler("tool", "call", "ls"))["for_model"] == "a.txt  4"


def test_unavailable_skills_and_tasks_are_explained(ostler):
    assert result_of(ostler("tool", "call", "skill"))["for_model"] == "There are no skills."
    assert "no skills are available" in result_of(ostler("tool", "call", "skill", '{"name": "x"}'))["for_model"]
    folder = ostler.workspace / ".ostler" / "skills" / "brew"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: brew\ndescription: Make tea.\n---\nBoil water.\n")
    assert "Boil water." in result_of(ostler("tool", "call", "skill", '{"name": "brew"}'))["for_model"]
    listed = ostler("tool", "list").stdout.splitlines()
    assert [line.endswith("(not offered here)") for line in listed if line.startswith(("skill ", "task "))] == [
        False,
        True,
    ]
    assert "not available in this session" in result_of(ostler("tool", "call", "task", '{"prompt": "x"}'))["for_model"]


def test_images_are_in_the_result(ostler):
    (ostler.workspace / "a.png").write_bytes(PNG)
    (image,) = result_of(ostler("tool", "call", "read", '{"path": "a.png"}'))["images"]
    assert (image["mime"], base64.b64decode(image["data"])) == ("image/png", PNG)


@pytest.mark.req("PM-4", "FS-2", "FS-3")
def test_policy_is_non_interactive(ostler):
    write = ("tool", "call", "write", '{"path": "b.txt", "content": "x\\n"}')
    done = ostler(*write)
    assert (done.code, result_of(done)["status"]) == (4, "denied")
    assert not (ostler.workspace / "b.txt").exists()
    assert ostler(*write, "--write").code == 0
    assert (ostler.workspace / "b.txt").read_text() == "x\n"
    (ostler.home / "secret").write_text("SECRET\n")
    read = ("tool", "call", "read", json.dumps({"path": str(ostler.home / "secret")}))
    assert ostler(*read).code == 4
    assert "SECRET" in ostler(*read, "--yolo").stdout
    assert ostler("tool", "call", "--allow", "mkdir", "mkdir", '{"path": "d"}').code == 0
    assert (ostler.workspace / "d").is_dir()
    out = ostler("tool", "call", "write", "--yolo", json.dumps({"path": str(ostler.home / "x"), "content": "x"}))
    assert (out.code, (ostler.home / "x").exists()) == (4, False)


@pytest.mark.req("TL-8")
def test_malformed_call_is_repaired_or_explained(ostler):
    (ostler.workspace / "a.txt").write_text("one\n")
    repaired = ostler("tool", "call", "read", "{'path': 'a.txt',}")
    assert (repaired.code, "repaired" in result_of(repaired)["for_model"]) == (0, True)
    done = ostler("tool", "call", "read", '{"path": ')
    assert (done.code, result_of(done)["fault"]["code"]) == (1, "bad_arguments")
    assert ' as {"path":"src/main.py"}' in result_of(done)["for_model"]


@pytest.mark.req("TL-10")
def test_result_names_no_deleted_file(ostler):
    done = ostler("tool", "call", "bash", json.dumps({"command": "seq 1 400000"}), "--yolo")
    result = result_of(done)
    assert (done.code, result["data"]["spill"]) == (0, "")
    assert "ostler-session" not in done.stdout
    assert "deleted after this call; redirect the output to a file" in result["for_model"]


@pytest.mark.req("FS-6")
def test_manual_call_may_overwrite_an_unread_file(ostler):
    file = ostler.workspace / "a.txt"
    file.write_text("old\n")
    write = json.dumps({"path": "a.txt", "content": "new\n"})
    refused = ostler("tool", "call", "write", write)
    assert (refused.code, file.read_text()) == (4, "old\n")
    done = ostler("tool", "call", "write", write, "--write")
    assert (done.code, result_of(done)["data"]["operation"], file.read_text()) == (0, "updated", "new\n")
    last = json.dumps({"path": "a.txt", "content": "whole\n", "final": True})
    assert ostler("tool", "call", "write_chunk", last, "--write").code == 0
    assert file.read_text() == "whole\n"
    ending = ("tool", "call", "append_file", json.dumps({"path": "a.txt", "content": "end\n"}), "--write")
    assert (ostler(*ending).code, file.read_text()) == (0, "whole\nend\n")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write_chunk", {"path": "b", "content": "x"}),
        ("bash", {"command": "sleep 9", "background": True}),
        ("run_in_terminal", {"command": "sleep 9", "isBackground": True}),
    ],
)
def test_single_call_that_needs_later_calls_fails(ostler, tool, arguments):
    done = ostler("tool", "call", tool, json.dumps(arguments), "--write", "--allow", "bash:*")
    assert (done.code, result_of(done)["fault"]["code"]) == (1, "alone")
    assert "ostler tool calls" in result_of(done)["for_model"]


SEVERAL = [
    {"tool": "write", "arguments": {"path": "a.txt", "content": "unread\n"}},
    {"tool": "read", "arguments": {"path": "a.txt"}},
    {"tool": "write_file", "arguments": '{"filename": "a.txt", "content": "new\\n",}'},
    {"name": "todo_write", "input": {"todos": [{"content": "one"}]}},
    {"tool": "todoread"},
    {"tool": "write_chunk", "arguments": {"path": "b", "content": "1"}},
    {"tool": "write_chunk", "arguments": {"path": "b", "content": "2\n", "final": True}},
    {"tool": "bash", "arguments": {"command": "echo behind", "background": True}},
    {"tool": "bash", "arguments": {"action": "read", "id": "bg1", "wait": 30}},
]


@pytest.mark.req("FS-6")
def test_piped_calls_share_a_session(ostler):
    (ostler.workspace / "a.txt").write_text("old\n")
    lines = "\n\n".join(map(json.dumps, SEVERAL)) + "\n"
    done = ostler("tool", "calls", "--write", "--allow", "bash:*", stdin=lines)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["call_id"] for result in results] == [f"call-{number}" for number in range(1, 10)]
    assert [result["status"] for result in results] == ["failed", *["ok"] * 8]
    assert "has not been read" in results[0]["for_model"]
    assert results[4]["for_model"] == "[ ] 1. one"
    assert (ostler.workspace / "a.txt").read_text() == "new\n"
    assert (ostler.workspace / "b").read_text() == "12\n"
    assert "behind" in results[8]["for_model"]
    assert done.code == 1


def test_invalid_lines_do_not_stop_other_calls(ostler):
    lines = ["nonsense", '{"tool": "read", "arguments": 7}', '{"tool": 7}', "[]", '{"tool": "frob"}', '{"tool": "ls"}']
    done = ostler("tool", "calls", stdin="\n".join(lines))
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["status"] for result in results] == ["failed"] * 5 + ["ok"]
    assert "line 4 is not a call; write it as {" in results[3]["for_model"]
    assert "they are a number" in results[1]["for_model"]
    assert "there is no tool 'frob'" in results[4]["for_model"]
    assert (done.code, done.stderr) == (1, "")
    nothing = ostler("tool", "calls", stdin="")
    assert (nothing.code, nothing.stdout) == (0, "")


def test_calls_are_answered_one_by_one_and_interrupted(ostler):
    """A program can wait for each result before it sends the next call; Ctrl-C is exit 130."""
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "ostler", "tool", "calls"],
        cwd=ostler.workspace,
        env=ostler.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        for number in (1, 2):
            process.stdin.write('{"tool": "todoread"}\n')
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["call_id"] == f"call-{number}"
        process.send_signal(signal.SIGINT)
        assert (process.wait(60), process.stderr.read()) == (130, "")


def test_invalid_utf8_is_rejected(ostler):
    lines = b'{"tool": "read", "arguments": {"path": "\xff"}}\n{"tool": "ls"}'
    done = subprocess.run(
        [sys.executable, "-P", "-m", "ostler", "tool", "calls"],
        cwd=ostler.workspace,
        env=ostler.environment(),
        input=lines,
        capture_output=True,
        check=False,
    )
    first, second = map(json.loads, done.stdout.splitlines())
    assert "path of read contains half of a surrogate pair" in first["for_model"]
    assert (second["status"], done.returncode) == ("ok", 1)


@pytest.mark.req("FS-5")
def test_lone_surrogate_is_rejected(ostler):
    done = ostler("tool", "call", "write", r'{"path": "a.txt", "content": "x\ud83d"}', "--write")
    assert (done.code, result_of(done)["fault"]["code"]) == (1, "bad_arguments")
    assert "content of write contains half of a surrogate pair" in result_of(done)["for_model"]
    assert not (ostler.workspace / "a.txt").exists()


def test_another_workspace(ostler):
    (ostler.workspace / "sub").mkdir()
    (ostler.workspace / "sub" / "x").write_text("")
    assert result_of(ostler("tool", "call", "list", "--cwd", "sub"))["for_model"] == "x  0"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tool"], "required"),
        (["tool", "frob"], "invalid choice"),
        (["tool", "call"], "required"),
        (["tool", "call", "raed", "{}"], "did you mean read?"),
        (["tool", "schema", "nothing_such"], "ostler tool list"),
        (["tool", "call", "read", "{}", "{}"], "unrecognized arguments"),
        (["tool", "call", "read", "--wirte", "{}"], "unrecognized arguments"),
        (["tool", "call", "read", "{}", "--cwd", "/nonexistent"], "no such folder"),
        (["tool", "call", "read", "{}", "--allow", ":x"], "does not name a permission"),
    ],
    ids=str,
)
def test_usage_error_is_one_sentence_with_exit_2(ostler, arguments, sentence):
    done = ostler(*arguments)
    assert (done.code, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


CALL = '<tool_call id="c1" lang="javascript" #>SysBuiltIn.read({ path: "a.txt" })</#>'
XNL = f"!unquote_start\n{CALL}\n!unquote_end"


@pytest.mark.req("CL-5", "TL-4")
@pytest.mark.parametrize(
    ("reply", "flags", "line"),
    [
        (calls([("read", {"path": "a.txt"})]), [], '⏺ read {"path": "a.txt"}'),
        (calls([("cat", {"filename": "a.txt"})]), [], '⏺ read (cat) {"path": "a.txt"}'),
        (text(XNL), ["--dialect", "xnl"], '⏺ SysBuiltIn.read {"path": "a.txt"}'),
    ],
    ids=["its own name", "an alias", "XNL"],
)
def test_run_shows_the_alias_of_a_tool(ostler, models, reply, flags, line):
    (ostler.workspace / "a.txt").write_text("one\n")
    with models.playing(reply, text("Done.")) as server:
        done = ostler("run", "--base-url", server.base_url, "--model", "scripted", *flags, "read it")
    assert (done.code, line in done.stdout.splitlines()) == (0, True), done.stdout


@pytest.mark.req("SH-8")
@pytest.mark.skipif(bool(bubblewrap.unavailable_reason()), reason=bubblewrap.unavailable_reason())
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_cleans_up_the_workspace(ostler, number):
    lines = [{"tool": "bash", "arguments": {"command": "git init -q in; git -C in config core.editor x; echo > made"}}]
    lines += [{"tool": "bash", "arguments": {"command": "sleep 1000", "background": True}}]
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "ostler", "tool", "calls", "--write"],
        cwd=ostler.workspace,
        env=ostler.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        for line in lines:
            process.stdin.write(json.dumps(line) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["status"] == "ok"
        process.send_signal(number)
        assert (process.wait(60), process.stderr.read()) == (130, "")
    assert sorted(path.name for path in ostler.workspace.iterdir()) == ["in", "made"]
