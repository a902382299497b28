"""Regression tests: hostile or broken input from users, models and machines."""

import json
import re
import shlex
import subprocess
import sys

import pytest

from ostler.testing.model_server import calls, sse_reply, text


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


def argv(server, *words):
    return [sys.executable, "-P", "-m", "ostler", "run", *at(server), *words]


@pytest.mark.req("CL-8", "SE-1")
def test_resumed_run_shows_only_its_own_turn(ostler, models):
    with models.playing(calls([("write", {"path": "x", "content": ""})]), text("First.")) as server:
        assert ostler("run", *at(server), "one").code == 4
    (folder,) = (ostler.home / ".ostler" / "projects").glob("*/sessions/*")
    with models.playing(text("Second.").with_usage(5, 1)) as server:
        done = ostler("run", "-o", "json", "--resume", folder.name, *at(server), "two")
    summary = json.loads(done.stdout)
    assert (done.code, summary["answer"], summary["refusals"], summary["usage"]["tokens_in"]) == (0, "Second.", [], 5)


@pytest.mark.parametrize("name", [".", "..", "a/b", "../../x", ""])
def test_resume_rejects_invalid_names(ostler, name):
    done = ostler("run", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", f"--resume={name or ' '}", "x")
    assert done.code == 2
    assert "not found" in done.stderr or "--resume: the value is empty" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("sessions", "search"),
        ("undo",),
        ("redo",),
        ("serve", "token", "revoke"),
        ("serve", "token", "limit"),
    ],
    ids=" ".join,
)
def test_argument_that_is_not_utf8_is_a_usage_error(ostler, command):
    done = ostler(*command, "a\udcff\udcfe")
    assert (done.code, done.stderr) == (2, "ostler: an argument is not valid UTF-8: a<U+DCFF><U+DCFE>\n")


@pytest.mark.parametrize(
    "command", [("trust",), ("config", "show"), ("redact",), ("undo",), ("run", "x")], ids=" ".join
)
def test_too_long_name_of_a_folder_is_a_usage_error(ostler, command):
    done = ostler(*command, "--cwd", "x" * 5000)
    assert done.code == 2
    assert re.fullmatch(r"ostler: the name of a file or folder is too long: /\S{199}…\n", done.stderr)


def test_options_cannot_be_abbreviated(ostler):
    done = ostler("run", "--base-url", "http://127.0.0.1:9/v1", "--mod", "plan", "x")
    assert (done.code, "--mod" in done.stderr) == (2, True)


def test_ephemeral_cannot_resume(ostler):
    done = ostler("run", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--ephemeral", "--resume", "a-1", "x")
    assert (done.code, "--ephemeral" in done.stderr) == (2, True)


@pytest.mark.req("SH-3", "PM-8")
@pytest.mark.parametrize(
    "path",
    [".git/config", ".git/hooks/pre-commit", ".GIT/config", ".ostler/config.json", ".mcp.json", "sub/.git/config"],
)
def test_writing_files_that_programs_run_needs_approval(ostler, models, path):
    subprocess.run(["git", "init", "-q"], cwd=ostler.workspace, check=True)
    with models.playing(calls([("write", {"path": path, "content": "x"})]), text("ok")) as server:
        done = ostler("run", "--write", "--profile", "god_mode", *at(server), "go")
    assert done.code == 4
    assert not (ostler.workspace / ".git/hooks/pre-commit").exists()


def test_invalid_utf8_does_not_crash(ostler, models):
    (ostler.workspace / b"odd-\xff.txt".decode("utf-8", "surrogateescape")).write_text("x")
    frame = {"choices": [{"index": 0, "delta": {"content": "half \\ud800"}, "finish_reason": "stop"}]}
    with models.playing(calls([("list", {})]), sse_reply(json.dumps(frame).replace("\\\\", "\\"))) as server:
        done = subprocess.run(
            argv(server, b"\xff prompt"),
            cwd=ostler.workspace,
            env=ostler.environment(),
            input=b"\xfe\xff binary",
            capture_output=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stdout + done.stderr


@pytest.mark.req("CL-5")
def test_names_and_denials_are_sanitised(ostler, models):
    wanted = [("bash\x1b[2J", {}), ("bash", {"command": "rm \x1b]0;pwn\x07x"})]
    with models.playing(calls(wanted), text("ok")) as server:
        done = ostler("run", *at(server), "go")
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout


@pytest.mark.req("CL-9")
def test_closed_outputs_do_not_crash(ostler, models):
    for closed in (">&-", "2>&-", ">/dev/full"):
        with models.playing(text("ok")) as server:
            line = shlex.join(argv(server, "hi")) + f" {closed}"
            done = subprocess.run(
                ["bash", "-c", line],
                cwd=ostler.workspace,
                env=ostler.environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
        assert done.returncode in (0, 1)
        assert "Traceback" not in done.stderr


def test_unencodable_output_is_replaced(ostler, models):
    with models.playing(text("naïve — ☃")) as server:
        done = ostler("run", *at(server), "hi", env={"PYTHONIOENCODING": "ascii"})
    assert done.code == 0


@pytest.mark.req("CL-8")
def test_endless_pipe_ends_with_the_timeout(ostler, models):
    with models.playing() as server:
        process = subprocess.Popen(
            argv(server, "--timeout", "0.2", "hi"),
            cwd=ostler.workspace,
            env=ostler.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.wait(timeout=20) == 2
        output = process.stderr.read()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
    assert "standard input" in output


@pytest.mark.parametrize(
    "flags",
    [["--timeout", "nan"], ["--timeout", "-1"], ["--max-steps", "0"], ["--max-steps", "-3"], ["--timeout", "x"]],
)
def test_invalid_numbers_are_rejected(ostler, flags):
    done = ostler("run", *flags, "x")
    assert (done.code, flags[0] in done.stderr) == (2, True)


def test_deleted_current_directory(ostler):
    line = f"mkdir gone; cd gone; rmdir ../gone; {shlex.quote(sys.executable)} -P -m ostler run x"
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=ostler.workspace,
        env=ostler.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.req("CL-8")
def test_simple_output_reports_denials_on_stderr(ostler, models):
    with models.playing(calls([("write", {"path": "x", "content": ""})]), text("No.")) as server:
        done = ostler("run", "-o", "simple", *at(server), "go")
    assert (done.code, done.stdout) == (4, "No.\n")
    assert "denied: write x" in done.stderr


@pytest.mark.req("FS-3", "PM-1")
def test_command_reads_outside_only_with_yolo(ostler, models):
    secret = ostler.home / "secret.txt"
    secret.write_text("the secret\n")
    for flags, allowed in (([], False), (["--yolo"], True)):
        with models.playing(calls([("bash", {"command": f"cat {secret}"})]), text("ok")) as server:
            done = ostler("run", *flags, *at(server), "go")
        assert done.code == (0 if allowed else 4)


def test_parallel_calls_are_each_shown_once(ostler, models):
    for name in "abc":
        (ostler.workspace / name).write_text(name)
    with models.playing(calls([("read", {"path": name}) for name in "abc"]), text("ok")) as server:
        done = ostler("run", *at(server), "go")
    lines = [line for line in done.stdout.splitlines() if line.startswith(("⏺", "  ⎿"))]
    assert [line[0] for line in lines] == ["⏺", " ", "⏺", " ", "⏺", " "]


def test_demo_runs_the_original_test(ostler, models):
    cheat = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        pass\n"
    moves = [
        calls([("read", {"path": "test_basket.py"})]),
        calls([("write", {"path": "test_basket.py", "content": cheat})]),
        text("Done."),
    ]
    with models.playing(*moves) as server:
        done = ostler("demo", *at(server), timeout=60)
    assert (done.code, "the test still fails" in done.stdout) == (1, True)


@pytest.mark.req("SH-8")
def test_sandboxed_command_cannot_read_keys(ostler, models):
    (ostler.home / ".ssh").mkdir()
    (ostler.home / ".ssh" / "id").write_text("the key\n")
    (ostler.workspace / "peek.py").write_text("import os\nprint(open(os.path.expanduser('~/.ssh/id')).read())\n")
    with models.playing(calls([("bash", {"command": "python3 peek.py"})]), text("ok")) as server:
        ostler("run", "--write", *at(server), "go")
    assert "the key" not in server.requests[1].body.decode()


@pytest.mark.req("SH-3", "PM-8")
@pytest.mark.parametrize("path", [".ssh/authorized_keys", ".bashrc", ".config/autostart/x.desktop"])
def test_writing_startup_files_needs_approval(ostler, path):
    done = ostler("tool", "call", "--write", "write", json.dumps({"path": path, "content": "x"}))
    assert done.code == 4
    assert "run programs" in done.stdout


@pytest.mark.req("PM-1")
def test_appending_outside_the_workspace_is_a_separate_need(ostler):
    done = ostler("permissions", "explain", "--unattended", "--allow", "bash:echo *", "echo x >> /etc/hosts.ostler")
    assert done.code == 4
    assert "outside the workspace: /etc/hosts.ostler" in done.stdout


def test_denial_explains_itself(ostler):
    dangerous = ostler("tool", "call", "bash", '{"command": "rm x"}')
    assert "deletes files" in dangerous.stdout
    ordinary = ostler("tool", "call", "write", '{"path": "x", "content": ""}')
    assert "add --allow 'write:x' to allow it" in ordinary.stdout
