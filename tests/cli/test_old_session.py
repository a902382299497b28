"""A session of an earlier version stays usable through the command line."""

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.conftest import at

from ostler.settings.home import project_id
from ostler.testing.model_server import calls, text

pytestmark = pytest.mark.req("SE-3", "SE-1")
STORED = Path(__file__).parents[1] / "data" / "sessions" / "v0"
ID = "2026-11-18T00-53-47-812Z-267f9d"
CHILD = "2026-11-18T00-53-48-093Z-90b567"
PROMPTS = (
    "Summarise notes.txt into summary.txt",
    "What could be improved?",
    "Use a digit in the summary.",
    "Delete the summary.",
    "!echo by hand",
    "Are you still there?",
    "Is the summary complete?",
    "Answer in one word.",
)
REVERTED = "A question that is taken back"
STATUSES = {
    "call-plan": "ok",
    "call-read": "ok",
    "call-grep": "ok",
    "call-write": "ok",
    "call-bash": "ok",
    "call-refused": "denied",
    "call-failed": "failed",
    "call-task": "ok",
    "call-plan-2": "ok",
    "call-edit": "ok",
    "call-denied": "denied",
    "call-list": "ok",
}


@pytest.fixture
def sessions(ostler):
    """Return the session folder of the workspace, with the old session and its child."""
    folder = ostler.home / ".ostler" / "projects" / project_id(ostler.workspace) / "sessions"
    shutil.copytree(STORED, folder)
    return folder


def events(folder):
    """Return the events of a journal as plain JSON."""
    return [json.loads(line)["event"] for line in (folder / "journal.jsonl").read_text("utf-8").splitlines()]


def show(ostler, session):
    """Return the output of `sessions show --json`, checking that there are no errors."""
    done = ostler("sessions", "show", session, "--json")
    assert (done.code, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_list(ostler, sessions):
    done = ostler("sessions", "list", "--json")
    assert (done.code, done.stderr) == (0, "")
    (listed,) = json.loads(done.stdout)
    assert listed.pop("bytes") > 30_000
    assert listed == json.loads((STORED / ID / "meta.json").read_text("utf-8"))
    (sessions / ID / "meta.json").unlink()
    assert json.loads(ostler("sessions", "list", "--json").stdout)[0]["title"] == "Greek letters"
    assert "7 turns  Greek letters" in ostler("sessions", "list").stdout


def test_show(ostler, sessions):
    shown = show(ostler, ID)
    assert shown["session"] == json.loads((STORED / ID / "meta.json").read_text("utf-8"))
    messages = shown["messages"]
    assert tuple(message["text"] for message in messages if message["role"] == "user") == PROMPTS
    assert {message["call_id"]: message["status"] for message in messages if message["role"] == "tool"} == STATUSES
    assert {call["id"] for message in messages for call in message.get("calls", ())} == set(STATUSES)
    assert any(message.get("thought") == "The task is done." for message in messages)
    page = ostler("sessions", "show", "last").stdout
    assert "Greek letters" in page and REVERTED not in page
    child = show(ostler, CHILD)
    assert (child["session"]["parent_id"], child["messages"][-1]["text"]) == (
        ID,
        "There are notes.txt and summary.txt.",
    )


def test_search(ostler, sessions):
    (hit,) = json.loads(ostler("sessions", "search", "digit", "--json").stdout)
    assert (hit["session"], hit["role"], hit["snippet"]) == (ID, "user", "Use a digit in the summary.")
    usage = json.loads(ostler("sessions", "stats", "--json").stdout)["usage"]
    assert [(row["model"], row["day"], row["tokens_cached"]) for row in usage] == [("scripted", "2026-11-18", 20)]


def test_export_and_import(ostler, sessions):
    markdown = ostler("sessions", "export", ID)
    assert (markdown.code, markdown.stderr) == (0, "")
    assert markdown.stdout.startswith("# Greek letters")
    page = ostler("sessions", "export", ID, "-f", "html").stdout
    assert page.startswith("<!doctype html>")
    for exported in (markdown.stdout, page):
        assert all(prompt in exported for prompt in PROMPTS)
    exported = ostler("sessions", "export", ID, "-f", "json").stdout
    assert [record["event"] for record in json.loads(exported)["records"]] == events(STORED / ID)
    imported = ostler("sessions", "import", "-", stdin=exported)
    assert imported.code == 0
    messages = show(ostler, imported.stdout.strip())["messages"]
    assert tuple(message["text"] for message in messages if message["role"] == "user") == PROMPTS


def test_resume_with_another_turn(ostler, models, sessions):
    before = (STORED / ID / "journal.jsonl").read_bytes()
    (ostler.workspace / "notes.txt").write_text("alpha\n")
    with models.playing(calls([("read", {"path": "notes.txt"})]), text("Only alpha is left.")) as server:
        done = ostler("run", "-o", "json", "--resume", ID, *at(server), "Look again.")
        sent = server.requests[0].json
    assert json.loads(done.stdout)["session"] == ID, done.stderr
    assert json.loads(done.stdout)["answer"] == "Only alpha is left."
    prefix = next(event for event in events(STORED / ID) if event["type"] == "prefix_built")
    assert sent["messages"][0]["content"] == prefix["system"]
    assert [tool["function"]["name"] for tool in sent["tools"]] == [tool["name"] for tool in prefix["tools"]]
    conversation = json.dumps(sent["messages"])
    for known in ("The notes hold alpha, beta and gamma", "Are you still there?", "Answer in one word.", "Look again."):
        assert known in conversation
    assert REVERTED not in conversation
    after = (sessions / ID / "journal.jsonl").read_bytes()
    assert after.startswith(before) and len(after) > len(before)
    log = [json.loads(line) for line in (sessions / ID / "log").read_text("utf-8").splitlines()]
    assert {tuple(line) for line in log} == {("time", "level", "from", "session", "text")}
    assert show(ostler, ID)["session"]["turns"] == 8


def test_plan_and_queued_prompts_are_restored(ostler, models, sessions):
    with models.playing(text("Hello again.")) as server:
        done = ostler("chat", "--plain", "--resume", ID, *at(server), stdin="/todo\nhello\n")
    assert done.code == 0, done.stderr
    assert "[x] Read the notes" in done.stdout and "[~] Write a summary" in done.stdout
    assert "Then list the files." in done.stdout
    assert "Hello again." in done.stdout


def test_revert_redo_and_uncompact(ostler, models, sessions):
    with models.playing(text("Here.")) as server:
        done = ostler("chat", "--plain", "--resume", ID, *at(server), stdin="/revert 3\n/redo\n/uncompact\nhello\n")
        talk = json.dumps(server.requests[0].json["messages"])
    assert done.code == 0, done.stderr
    assert "undone: Use a digit in the summary." in done.stdout
    assert "redone: Use a digit in the summary." in done.stdout
    assert "Summarise notes.txt into summary.txt" in talk and "Answer in one word." in talk


def test_fork(ostler, models, sessions):
    number = next(
        message["number"] for message in show(ostler, ID)["messages"] if message["text"] == "The plan agent only looks."
    )
    forked = ostler("sessions", "fork", ID, "--at", str(number)).stdout.strip()
    shown = show(ostler, forked)
    assert (shown["session"]["forked_from"], shown["session"]["turns"]) == (ID, 2)
    assert tuple(message["text"] for message in shown["messages"] if message["role"] == "user") == PROMPTS[:2]
    with models.playing(text("In the copy.")) as server:
        done = ostler("run", "-o", "json", "--resume", ID, "--fork", *at(server), "Go on.")
    assert json.loads(done.stdout)["session"] not in (ID, forked)
    assert (sessions / ID / "journal.jsonl").read_bytes() == (STORED / ID / "journal.jsonl").read_bytes()


def test_rename_and_delete(ostler, sessions):
    assert ostler("sessions", "rename", ID, "Old", "letters").code == 0
    assert show(ostler, ID)["session"]["title"] == "Old letters"
    assert ostler("sessions", "delete", ID, CHILD).code == 0
    assert list(sessions.iterdir()) == []


def test_repair(ostler, sessions):
    intact = ostler("sessions", "repair", ID)
    assert (intact.code, intact.stdout) == (0, "no damage found; nothing to repair\n")
    journal = sessions / ID / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    started = next(n for n, line in enumerate(lines) if re.search(rb'"tool_started","call_id":"call-bash"', line))
    journal.write_bytes(b"".join(lines[: started + 1]) + lines[started + 1][:40])
    repaired = ostler("sessions", "repair", ID)
    assert (repaired.code, bool(repaired.stdout)) == (0, True)
    added = [event for event in events(sessions / ID)[started + 1 :] if event["type"] != "notice"]
    assert [event["type"] for event in added] == ["tool_finished", "turn_ended"]
    assert (added[0]["result"]["call_id"], added[0]["result"]["status"]) == ("call-bash", "unknown")
    assert ostler("sessions", "repair", ID).stdout == "no damage found; nothing to repair\n"
