"""Logs: one line per event, without content and secrets, in files of limited size."""

import json
import logging
import stat
import subprocess
import sys

import pytest
from tests.journal.samples import SECRET

from ostler.core.display import Display
from ostler.core.errors import Fault
from ostler.core.events import (
    Envelope,
    MessageDone,
    Notice,
    OptionChanged,
    PermissionDecided,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ostler.core.message import Message
from ostler.core.permission import Decision, Permission
from ostler.core.prompt import Prompt, TextContent
from ostler.core.tools import ToolResult
from ostler.journal.log_file import CURRENT_SESSION, LogFile, LogHandler
from ostler.journal.session_log import SessionLog
from ostler.text.redact import Redactor

pytestmark = pytest.mark.req("SE-4")


@pytest.fixture
def handler(tmp_path):
    log_handler = LogHandler(
        LogFile(tmp_path / "ostler.log", 10_000, 2), lambda: Redactor(known_values=["known-secret"]).redact
    )
    logger = logging.getLogger("ostler")
    logger.addHandler(log_handler)
    before, propagates = logger.level, logger.propagate
    logger.setLevel("INFO")
    logger.propagate = False
    yield log_handler
    log_handler.close()
    logger.removeHandler(log_handler)
    logger.setLevel(before)
    logger.propagate = propagates


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.req("MD-3")
def test_line_has_time_level_and_logger_and_no_secrets(handler, tmp_path):
    log = logging.getLogger("ostler.models")
    log.warning("token %s and known-secret", SECRET)
    log.debug("not at this level")
    try:
        raise ValueError(f"with {SECRET}")
    except ValueError:
        log.exception("went wrong")
    handler.close()
    first, second = lines(tmp_path / "ostler.log")
    assert (first["level"], first["from"], "session" in first) == ("warning", "ostler.models", False)
    assert "token ***REDACTED*** and ***REDACTED***" in first["text"]
    assert "Traceback" in second["text"]
    assert SECRET not in second["text"]
    assert stat.S_IMODE((tmp_path / "ostler.log").stat().st_mode) == 0o600


def test_session_has_its_own_log(handler, tmp_path):
    for name in ("a", "b"):
        handler.add_session_file(name, LogFile(tmp_path / name, 10_000, 1))
    CURRENT_SESSION.set("a")
    logging.getLogger("ostler.models").info("in the task of a")
    logging.getLogger("ostler.session").info("of b", extra={"session": "b"})
    handler.remove_session_file("b")
    logging.getLogger("ostler.session").info("after b", extra={"session": "b"})
    handler.close()
    CURRENT_SESSION.set("")
    assert [line["text"] for line in lines(tmp_path / "a")] == ["in the task of a"]
    assert [line["text"] for line in lines(tmp_path / "b")] == ["of b"]
    assert [line["session"] for line in lines(tmp_path / "ostler.log")] == ["a", "b", "b"]


@pytest.mark.parametrize("backups", [0, 1, 3])
def test_log_is_rotated_and_stays_within_its_limit(tmp_path, backups):
    file = LogFile(tmp_path / "log", 1000, backups)
    for number in range(200):
        file.append(b"%060d\n" % number)
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1000 * (backups + 1)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["log", *(f"log.{age}" for age in range(1, backups + 1))]
    ages = [*(tmp_path / f"log.{age}" for age in range(backups, 0, -1)), tmp_path / "log"]
    numbers = [int(line) for path in ages for line in path.read_text().split()]
    assert numbers == list(range(numbers[0], 200))
    file.append(b"x" * 5000 + b"\n")
    assert (tmp_path / "log").stat().st_size == 5001


def test_concurrent_processes_lose_no_lines(tmp_path):
    code = (
        "import sys, pathlib; from ostler.journal.log_file import LogFile\n"
        "file = LogFile(pathlib.Path(sys.argv[1]), 5000, 50)\n"
        "for number in range(300): file.append(b'%s %d\\n' % (sys.argv[2].encode() * 40, number))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "log")]
    workers = [subprocess.Popen([*command, name]) for name in "abc"]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    written = [line.split() for path in tmp_path.iterdir() for line in path.read_text().splitlines()]
    assert sorted((word[0], int(number)) for word, number in written) == [(n, i) for n in "abc" for i in range(300)]
    assert all(set(word) == {word[0]} and len(word) == 40 for word, _ in written)


def test_unpaired_surrogates_are_replaced(tmp_path):
    handler = LogHandler(LogFile(tmp_path / "log", 1000, 1), lambda: str)
    handler.emit(logging.makeLogRecord({"msg": "half \ud800", "levelname": "INFO"}))
    handler.emit(logging.makeLogRecord({"msg": "whole", "levelname": "INFO"}))
    handler.close()
    assert [line["text"] for line in lines(tmp_path / "log")] == ["half ?", "whole"]


def test_unwritable_log_is_ignored(tmp_path):
    handler = LogHandler(LogFile(tmp_path / "missing" / "log", 100, 1), lambda: str)
    record = logging.makeLogRecord({"msg": "lost", "levelname": "INFO"})
    handler.emit(record)
    handler.close()
    assert list(tmp_path.iterdir()) == []


def test_session_log_has_events_without_content(handler, tmp_path):
    session_log = SessionLog("s1")
    permission, decision = Permission("write a.txt", ()), Decision("deny", by="person")
    events = [
        SessionOpened("s1", "/w", "engine", "1"),
        TurnStarted("turn-1", Prompt("p", (TextContent("private words"),))),
        MessageDone(Message("m", (TextContent("private words"),))),
        ToolStarted("c1", "write"),
        ToolFinished(ToolResult("c1", "ok", "private words", Display("created a.txt (+1 -0)"))),
        PermissionDecided("k", permission, decision),
        OptionChanged("model", "other"),
        Notice("warning", "the MCP server files did not start"),
        TurnEnded("turn-1", "failed", Fault("net", "the connection was lost")),
    ]
    for seq, event in enumerate(events):
        session_log.on_record(Envelope(seq, 1.0, event))
    session_log.close()
    handler.close()
    CURRENT_SESSION.set("")
    logged = [(line["level"], line["text"]) for line in lines(tmp_path / "ostler.log")]
    assert logged == [
        ("info", "opened in /w with engine, ostler 1"),
        ("info", "turn-1 started"),
        ("info", "write started (c1)"),
        ("info", "write ok (c1): created a.txt (+1 -0)"),
        ("info", "deny by person: write a.txt"),
        ("info", "model set to other"),
        ("warning", "the MCP server files did not start"),
        ("info", "turn-1 ended: failed (net: the connection was lost)"),
        ("info", "closed"),
    ]
