"""`ostler sessions`, `ostler run --continue` and `ostler redact`."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.conftest import Outcome, at
from tests.journal.samples import SECRET, turn
from tests.journal.samples import save_session as keep

from ostler.cli.main import dispatch
from ostler.cli.redact import BLOCK_BYTES, _redact_block, read_blocks
from ostler.core.events import TurnStarted
from ostler.core.prompt import Prompt, TextContent
from ostler.journal.journal_store import JournalStore
from ostler.settings.home import project_id
from ostler.testing.model_server import calls, text
from ostler.text.redact import Redactor

pytestmark = pytest.mark.req("SE-3")


class SessionWriter:
    """Writes sessions of the workspace directly to the store."""

    def __init__(self, ostler):
        self.store = JournalStore(ostler.home / ".ostler" / "projects")
        self.project = project_id(ostler.workspace)

    def __call__(self, session_id, events=None, **more):
        return keep(self.store, session_id, events, project=more.pop("project", self.project), **more)


@pytest.fixture
def stored(ostler):
    return SessionWriter(ostler)


@pytest.fixture
def sessions(ostler, monkeypatch, capsysbinary):
    """Return a function that runs `ostler sessions …` in this process, which is faster."""
    monkeypatch.setattr(os, "environ", ostler.environment())
    monkeypatch.chdir(ostler.workspace)

    def run(*arguments, stdin="", env=None):
        monkeypatch.setattr(os, "environ", ostler.environment(env))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = dispatch(["sessions", *map(str, arguments)])
        out, err = capsysbinary.readouterr()
        return Outcome(out.decode(), err.decode(), code)

    return run


def test_list_show_and_search(sessions, stored):
    stored("one-aa", turn("mend the zeppelin \x1b[31m", "It flies.", "line\n" * 50))
    stored("two-bb", turn("paint the fence"), project="elsewhere")
    listed = sessions("list")
    assert (listed.code, listed.stdout.splitlines()) == (
        0,
        ["one-aa  2001-09-09 01:46    1 turn   mend the zeppelin"],
    )
    everywhere = json.loads(sessions("list", "--all", "--json").stdout)
    assert [(item["id"], item["turns"], item["cwd"]) for item in everywhere] == [
        ("two-bb", 1, "/work"),
        ("one-aa", 1, "/work"),
    ]
    shown = sessions("show", "aa").stdout
    assert "#2 you" in shown
    assert "#10 ostler" in shown
    assert "It flies." in shown
    assert "lines omitted" in shown
    assert "\x1b" not in shown
    found = sessions("search", "zepp")
    assert (found.code, "#2 you: mend the zeppelin" in found.stdout) == (0, True)
    assert sessions("search", "fence").code == 1
    assert json.loads(sessions("search", "fence", "-a", "--json").stdout)[0]["session"] == "two-bb"


@pytest.mark.req("MD-3")
def test_export_and_import(sessions, stored):
    stored("one", turn(f"my key {SECRET} and my-own-known-value", "Done."))
    env = {"SOME_API_KEY": "my-own-known-value"}
    page = sessions("export", "last", env=env).stdout
    assert page.startswith("# my key ***REDACTED***")
    assert SECRET not in page
    assert "my-own-known-value" not in page
    assert SECRET in sessions("export", "last", "--no-redact").stdout
    target = Path("page.html").absolute()
    assert sessions("export", "one", "-o", target).code == 0
    assert target.read_text().startswith("<!doctype html>")
    assert oct(target.stat().st_mode & 0o777) == "0o600"
    again = sessions("export", "one", "-o", target)
    assert (again.code, "already exists" in again.stderr) == (2, True)
    plain = sessions("export", "one", "-f", "json").stdout
    imported = sessions("import", "-", stdin=plain)
    assert imported.code == 0
    assert "records were not imported" in imported.stderr
    assert "Done." in sessions("show", imported.stdout.strip()).stdout
    refused = sessions("import", "-", stdin="{}")
    assert (refused.code, "not a session export" in refused.stderr) == (2, True)


def test_fork_rename_repair_delete_and_stats(sessions, stored):
    session = stored("one")
    forked = sessions("fork", "one", "--at", "4").stdout.strip()
    assert forked != "one"
    assert "It says hello." not in sessions("show", forked).stdout
    repaired = sessions("repair", forked).stdout.splitlines()
    assert repaired == ["added ToolFinished", "added TurnEnded"]
    assert sessions("rename", "one", "A", "better", "title").code == 0
    assert "A better title" in sessions("list").stdout
    stats = json.loads(sessions("stats", "--json").stdout)
    assert (stats["sessions"], stats["turns"], stats["usage"][0]["tokens_in"]) == (2, 2, 10)
    assert "$0.5000" in sessions("stats").stdout
    gone = sessions("delete", "one", forked)
    assert gone.stdout == f"deleted one\ndeleted {forked}\n"
    assert not session.folder.exists()
    assert "no sessions yet" in sessions("list").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required"),
        (["show", "nope"], "session 'nope' not found"),
        (["show", "last"], "no session in this workspace yet"),
        (["delete", "../.."], "not found"),
        (["import", "missing.json"], "cannot read missing.json"),
        (["fork", "nope", "--at", "x"], "invalid int value"),
    ],
)
def test_usage_error_is_one_sentence_and_creates_no_home(sessions, ostler, arguments, message):
    done = sessions(*arguments)
    assert done.code == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (ostler.home / ".ostler" / "projects").exists()


def test_open_session_cannot_be_deleted_but_forked(sessions, stored):
    session = stored("one")
    journal = stored.store.open(session)
    for command in (["delete", "one"], ["rename", "one", "x"], ["repair", "one"]):
        done = sessions(*command)
        assert (done.code, "open in another process" in done.stderr) == (1, True)
    assert sessions("fork", "one").code == 0
    assert sessions("show", "one").code == 0
    journal.close()


@pytest.mark.req("CL-8")
def test_continue_resumes_the_last_session(ostler, models, stored):
    stored("elsewhere", project="elsewhere")
    with models.playing(text("First.")) as server:
        ostler("run", *at(server), "one")
    with models.playing(text("Second.")) as server:
        done = ostler("run", "--continue", "-o", "simple", *at(server), "two")
    assert (done.code, done.stdout) == (0, "Second.\n")
    contents = [message["content"] for message in server.requests[0].json["messages"]]
    assert contents[1:] == ["one", "First.", "two"]
    there = ostler("run", "--resume", "elsewhere", *at(server), "three")
    assert there.code == 2
    assert "resume it there: --cwd /work" in there.stderr
    assert json.loads(ostler("sessions", "list", "--json").stdout)[0]["turns"] == 2


@pytest.mark.req("SE-1", "CL-8")
def test_resume_after_kill_during_a_call(ostler, models):
    with models.playing(calls([("bash", {"command": "cat fifo"})])) as server:
        os.mkfifo(ostler.workspace / "fifo")
        command = [sys.executable, "-P", "-m", "ostler", "run", "-o", "jsonl", "--allow", "bash", *at(server), "go"]
        process = subprocess.Popen(
            command, cwd=ostler.workspace, env=ostler.environment(), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        for line in process.stdout:
            if json.loads(line)["event"]["type"] == "tool_started":
                break
        process.send_signal(signal.SIGKILL)
        process.communicate()
    with models.playing(text("I looked.")) as server:
        done = ostler("run", "--continue", "-o", "simple", *at(server), "go on")
    assert (done.code, done.stdout) == (0, "I looked.\n")
    roles = [(m["role"], m["content"]) for m in server.requests[0].json["messages"]][2:]
    assert [role for role, _ in roles] == ["assistant", "tool", "user"]
    assert "may have partly completed" in roles[1][1]


@pytest.mark.req("SE-4", "MD-1", "MD-3")
def test_log_of_requests_has_no_key(ostler, models):
    with models.playing(text("ok")) as server:
        ostler("run", *at(server), "--api-key", "my-own-flag-value", "hello my-own-flag-value")
    log = (ostler.home / ".ostler" / "logs" / "ostler.log").read_text()
    lines = [json.loads(line) for line in log.splitlines()]
    (request,) = [line for line in lines if line["from"] == "ostler.models"]
    assert "apiKind openai" in request["text"]
    assert server.base_url.split("/")[2] in request["text"]
    assert "my-own-flag-value" not in log
    (own,) = (ostler.home / ".ostler" / "projects").glob("*/sessions/*/log")
    assert own.read_text() == log
    assert {line["session"] for line in lines} == {own.parent.name}


@pytest.mark.parametrize("days", [-1 / 24, 400])
@pytest.mark.req("SE-1")
def test_clock_jump_deletes_nothing(ostler, models, stored, days):
    session = stored("one")
    shifted = time.time() - days * 86400
    os.utime(session.journal_path, (shifted, shifted))
    with models.playing(text("ok")) as server:
        ostler("run", *at(server), "hello")
    assert session.journal_path.exists()
    assert len(json.loads(ostler("sessions", "list", "--json").stdout)) == 2


def test_configured_paths_and_expiry(ostler, models):
    config = {"session": {"path": "~/kept", "keep_days": 30}, "logs": {"path": "~/logs"}, "cache": {"path": "~/cache"}}
    (ostler.home / ".ostler").mkdir()
    (ostler.home / ".ostler" / "config.json").write_text(json.dumps(config))
    old = keep(JournalStore(ostler.home / "kept"), "old", project=project_id(ostler.workspace))
    os.utime(old.journal_path, (1e9, 1e9))
    with models.playing(text("ok")) as server:
        done = ostler("run", *at(server), "hello")
    assert done.code == 0, done.stderr
    assert (ostler.home / "logs" / "ostler.log").exists()
    (listed,) = json.loads(ostler("sessions", "list", "--json").stdout)
    assert listed["title"] == "hello"
    assert not old.folder.exists()
    assert list((ostler.home / "cache").glob("sessions-*.db")) != []


KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEAx3nX9Zq1\n" * 40 + "-----END RSA PRIVATE KEY-----\n"


def test_redact(ostler):
    source = f"before\ntoken: {SECRET}\n{KEY}after, as it was: 42\n"
    done = ostler("redact", stdin=source)
    assert done.code == 0
    assert done.stdout.startswith("before\ntoken: ***REDACTED***\n")
    assert done.stdout.endswith("after, as it was: 42\n")
    assert "MIIE" not in done.stdout
    assert ostler("redact", stdin="").stdout == ""


def test_redact_streams(ostler):
    command = [sys.executable, "-P", "-m", "ostler", "redact"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ostler.workspace, env=ostler.environment(), stdin=pipe, stdout=pipe) as process:
        process.stdin.write(b"one line \xff\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"one line \xff\n"
        process.stdin.close()


class Reader:
    """Returns its data in chunks of a size."""

    def __init__(self, data, size):
        self.data, self.size = data, size

    def read1(self, limit):
        chunk, self.data = self.data[: min(self.size, limit)], self.data[min(self.size, limit) :]
        return chunk


@pytest.mark.parametrize("size", [1, 7, 100, BLOCK_BYTES])
def test_multiline_secrets_stay_in_one_block(size):
    yaml = "data:\n  password: |\n    first\n    second\n\n    third\nnext: 1\n"
    content = f"plain\n{KEY}plain\n{yaml}run \\\n  --token x\nend"
    blocks = list(read_blocks(Reader(content.encode(), size)))
    assert b"".join(blocks).decode() == content
    for part in (KEY, yaml[: yaml.index("next")], "run \\\n  --token x\n"):
        assert any(part.encode() in block for block in blocks), part
    if size == 1:
        assert blocks[0] == b"plain\n"


@pytest.mark.req("AZ-5")
def test_the_filter_redacts_line_by_line_what_the_library_redacts_at_once():
    from tests.text.test_redact import SECRETS, without_colours

    redact = Redactor().redact
    for sample, secrets in SECRETS:
        coloured = "\n".join(f"\x1b[35m{line}\x1b[m\x1b[K" for line in sample.split("\n"))
        for sent in (sample, coloured):
            lines = LineReader(f"plain\n{sent}\nplain\n".encode())
            redacted = b"".join(_redact_block(block, redact) for block in read_blocks(lines)).decode()
            assert not any(secret in without_colours(redacted) for secret in secrets), sent


class LineReader:
    """Gives one line at a time, as a slow program writes them."""

    def __init__(self, data):
        self.lines = data.splitlines(keepends=True)

    def read1(self, most):
        return self.lines.pop(0) if self.lines else b""


def test_block_size_is_bounded(monkeypatch):
    monkeypatch.setattr("ostler.cli.redact.MAX_BUFFERED_BYTES", 10_000)
    for content in (b"x" * 100_000, b"-----BEGIN PRIVATE KEY-----\n" + b"abc\n" * 25_000, b"a:\n" + b" b\n" * 30_000):
        blocks = list(read_blocks(Reader(content, 1000)))
        assert b"".join(blocks) == content
        assert max(map(len, blocks)) < 12_000


@pytest.mark.req("SE-3")
async def test_session_manager_lists_and_deletes(tmp_path, monkeypatch):
    from ostler.app.session_manager import LocalSessionManager
    from ostler.core.sessions import SessionQuery
    from ostler.settings.run_options import RunOptions

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("OSTLER_HOME", raising=False)
    store = JournalStore(tmp_path / ".ostler" / "projects")
    keep(
        store, "one", [TurnStarted("t", Prompt("p", (TextContent("mend the zeppelin"),)))], project=project_id(tmp_path)
    )
    keep(store, "two", project="elsewhere")
    manager = LocalSessionManager(RunOptions(str(tmp_path)), print)
    assert {summary.id for summary in await manager.list(SessionQuery())} == {"one", "two"}
    (summary,) = await manager.list(SessionQuery(cwd=str(tmp_path)))
    assert (summary.id, summary.title, summary.turns) == ("one", "mend the zeppelin", 1)
    assert [found.id for found in await manager.list(SessionQuery(text="zeppelin"))] == ["one"]
    await manager.delete("one")
    assert [summary.id for summary in await manager.list(SessionQuery())] == ["two"]
    left = b"".join(path.read_bytes() for path in (tmp_path / ".ostler").rglob("*") if path.is_file())
    assert b"zeppelin" not in left
