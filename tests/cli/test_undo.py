"""`ostler undo` and `ostler redo` after a run with edits and commands."""

import json
import shutil
import sqlite3

import pytest

from ostler.journal.lock import SessionLock
from ostler.testing.model_server import calls, text

pytestmark = pytest.mark.req("EN-13")


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


@pytest.fixture
def changed(ostler, models):
    """Return a workspace after a turn that edited a file, created one and changed another with a command."""
    (ostler.workspace / "edited.txt").write_text("before\n")
    (ostler.workspace / "sedded.txt").write_text("before\n")
    moves = [
        calls([("read", {"path": "edited.txt"})]),
        calls([("edit", {"path": "edited.txt", "old": "before", "new": "after"})]),
        calls([("write", {"path": "deep/made.txt", "content": "new\n"})]),
        calls([("bash", {"command": "echo more >> sedded.txt"})]),
        text("done"),
    ]
    with models.playing(*moves) as server:
        done = ostler("run", "--write", "--allow", "bash", *at(server), "change things")
    assert done.code == 0, done.stdout
    assert (ostler.workspace / "sedded.txt").read_text() == "before\nmore\n"
    return ostler


def tree(folder):
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_undo_and_redo(changed):
    after = tree(changed.workspace)
    listed = changed("undo", "--list").stdout
    assert listed.count("\n") == 1
    assert "deep, deep/made.txt, edited.txt and 1 more" in listed
    shown = changed("undo", "--dry-run")
    assert shown.code == 0
    assert "restore  edited.txt" in shown.stdout
    assert "remove   deep/made.txt" in shown.stdout
    assert tree(changed.workspace) == after
    done = changed("undo")
    assert done.code == 0, done.stdout
    assert tree(changed.workspace) == {"edited.txt": "before\n", "sedded.txt": "before\n"}
    assert changed("redo").code == 0
    assert tree(changed.workspace) == after


def test_later_user_edit_is_kept(changed):
    (changed.workspace / "edited.txt").write_text("mine\n")
    done = changed("undo")
    assert done.code == 1
    assert "edited.txt" in done.stdout
    assert (changed.workspace / "edited.txt").read_text() == "mine\n"
    assert (changed.workspace / "sedded.txt").read_text() == "before\n"


def test_turn_with_only_conflicts_changes_nothing(changed):
    for path in [path for path in changed.workspace.rglob("*") if path.is_file()]:
        path.write_text("mine\n")
    before = tree(changed.workspace)
    stuck = changed("undo")
    assert stuck.code == 1
    assert "keep     edited.txt" in stuck.stdout and "ostler undo --list" in stuck.stderr
    assert tree(changed.workspace) == before


def scanned_folders(ostler) -> int:
    (store,) = ostler.home.rglob("turns.db")
    with sqlite3.connect(store) as database:
        return database.execute("SELECT COUNT(*) FROM folder").fetchone()[0]


FILE_CALLS = [
    calls([("read", {"path": "edited.txt"})]),
    calls([("edit", {"path": "edited.txt", "old": "before", "new": "after"})]),
    calls([("write", {"path": "deep/made.txt", "content": "new\n"})]),
]


def test_run_that_only_edits_files_is_undone_and_never_scans_the_workspace(ostler, models):
    (ostler.workspace / "edited.txt").write_text("before\n")
    (ostler.workspace / "untouched.txt").write_text("before\n")
    with models.playing(*FILE_CALLS, text("done")) as server:
        assert ostler("run", "--write", *at(server), "edit it").code == 0
    assert scanned_folders(ostler) == 0
    (ostler.workspace / "untouched.txt").write_text("mine\n")
    assert ostler("undo").code == 0
    assert tree(ostler.workspace) == {"edited.txt": "before\n", "untouched.txt": "mine\n"}
    assert ostler("redo").code == 0
    assert tree(ostler.workspace)["deep/made.txt"] == "new\n"
    assert scanned_folders(ostler) == 0


def test_edits_of_a_subagent_are_undone_without_a_scan_and_its_commands_with_one(ostler, models):
    (ostler.workspace / "edited.txt").write_text("before\n")
    task = calls([("task", {"agent": "general", "title": "edit", "prompt": "edit it"})])
    for command in (False, True):
        bash = [calls([("bash", {"command": "echo x > by-command.txt"})])] if command else []
        with models.playing(task, *FILE_CALLS, *bash, text("child done"), text("done")) as server:
            done = ostler("run", "--write", "--allow", "bash", "--allow", "task", *at(server), "let it be edited")
        assert done.code == 0, done.stdout
        assert (ostler.workspace / "edited.txt").read_text() == "after\n"
        assert (scanned_folders(ostler) > 0) == command
        assert ostler("undo").code == 0
        assert tree(ostler.workspace) == {"edited.txt": "before\n"}


def test_manual_edit_after_a_read_only_turn_does_not_block_undo(changed, models):
    with models.playing(calls([("read", {"path": "edited.txt"})]), text("read")) as server:
        assert changed("run", "--write", "--continue", *at(server), "read it").code == 0
    (changed.workspace / "mine.txt").write_text("mine\n")
    listed = changed("undo", "--list").stdout
    assert listed.count("\n") == 1 and "mine.txt" not in listed
    done = changed("undo")
    assert done.code == 0, done.stdout
    assert tree(changed.workspace) == {"edited.txt": "before\n", "sedded.txt": "before\n", "mine.txt": "mine\n"}


def test_turn_of_another_session_is_undone_only_by_name(changed, models):
    after = tree(changed.workspace)
    with models.playing(text("nothing to do")) as server:
        assert changed("run", "--write", *at(server), "look").code == 0
    turn, rest = changed("undo", "--list").stdout.split(maxsplit=1)
    assert "(of another session: name the turn to undo it)" in rest
    for flags in ((), ("--dry-run",)):
        done = changed("undo", *flags)
        assert (done.code, done.stdout) == (2, "")
        assert "nothing to undo in session " in done.stderr
        assert f"`ostler undo {turn}`" in done.stderr
    assert tree(changed.workspace) == after
    assert changed("undo", "--dry-run", turn).stdout.startswith(f"turn     {turn}\n")
    assert changed("undo", turn).code == 0
    assert tree(changed.workspace) == {"edited.txt": "before\n", "sedded.txt": "before\n"}
    assert "(undone)" in changed("undo", "--list").stdout


def test_last_session_is_the_one_that_was_used_last(changed, models):
    with models.playing(calls([("write", {"path": "second.txt", "content": "x"})]), text("done")) as server:
        assert changed("run", "--write", *at(server), "write").code == 0
    first = changed("undo", "--list").stdout.split("/")[0]
    with models.playing(text("nothing")) as server:
        assert changed("run", "--write", "--resume", first, *at(server), "look").code == 0
    assert changed("undo").code == 0
    assert tree(changed.workspace) == {"edited.txt": "before\n", "sedded.txt": "before\n", "second.txt": "x"}


def test_nothing_to_undo(ostler):
    for command in ("undo", "redo"):
        done = ostler(command)
        assert (done.code, f"nothing to {command} in this workspace" in done.stderr) == (2, True)
    assert "nothing can be undone" in ostler("undo", "--list").stdout


def test_redo_leaves_no_sandbox_files(changed):
    after = sorted(path.name for path in changed.workspace.iterdir())
    assert changed("undo").code == 0
    assert changed("redo").code == 0
    assert sorted(path.name for path in changed.workspace.iterdir()) == after


def test_model_is_notified_of_an_undo(changed, models):
    assert changed("undo").code == 0
    with models.playing(text("I see")) as server:
        done = changed("run", "--continue", *at(server), "go on")
        (request,) = server.requests
    assert done.code == 0, done.stderr
    notices = [message["content"] for message in request.json["messages"] if "user undid" in str(message["content"])]
    assert len(notices) == 1 and "edited.txt" in str(notices) and "deep/made.txt" in str(notices)


def test_open_session_cannot_be_notified(changed):
    (journal,) = changed.home.rglob("journal.jsonl")
    lock = SessionLock(journal.parent, journal.parent.name)
    try:
        done = changed("undo")
    finally:
        lock.release()
    assert done.code == 0
    assert "the session could not be notified" in done.stderr and "open in another process" in done.stderr


def test_list_marks_undone_turns(changed):
    assert "(undone)" not in changed("undo", "--list").stdout
    assert changed("undo").code == 0
    assert changed("undo", "--list").stdout.endswith("  (undone)\n")
    assert changed("redo").code == 0
    assert "(undone)" not in changed("undo", "--list").stdout


def test_run_reports_that_undo_is_off_if_no_snapshot_can_be_saved(changed, models):
    (store,) = changed.home.rglob("checkpoints")
    shutil.rmtree(store)
    store.write_text("in the way")
    with models.playing(calls([("bash", {"command": "echo more >> sedded.txt"})]), text("done")) as server:
        done = changed("run", "--write", "--allow", "bash", *at(server), "change it again")
    (line,) = [line for line in (done.stdout + done.stderr).splitlines() if "undo" in line]
    assert line.startswith("! undo is off: no snapshot can be saved in ") and "File exists" in line


@pytest.mark.parametrize("by", ["--allow", "rule", "mode"])
def test_change_that_a_rule_or_mode_allows_can_be_undone(ostler, models, by):
    config = ostler.home / ".ostler" / "config.json"
    config.parent.mkdir(exist_ok=True)
    config.write_text(json.dumps({"permission": {"write": "allow"}} if by == "rule" else {}))
    flags = {"--allow": ["--allow", "write:*.txt"], "rule": [], "mode": ["--mode", "accept-edits"]}[by]
    with models.playing(calls([("write", {"path": "b.txt", "content": "x"})]), text("done")) as server:
        assert ostler("run", *flags, *at(server), "go").code == 0
    assert (ostler.workspace / "b.txt").exists()
    assert ostler("undo").code == 0
    assert not (ostler.workspace / "b.txt").exists()
