"""A scan visits only the folders that changed, and finds every change, with one process or several."""

import os
import sqlite3
import sys
import tracemalloc
from pathlib import Path

import pytest
from tests.workspace.stored_changes import changes_in

from ostler.workspace import content_capture, tree_scan, unchanged_folders
from ostler.workspace.checkpoint_store import CheckpointStore

pytestmark = pytest.mark.req("EN-13")


@pytest.fixture(params=[1, 3])
def processes(request, monkeypatch):
    monkeypatch.setattr(unchanged_folders, "MIN_FILES_PER_PROCESS", 1)
    monkeypatch.setattr(unchanged_folders, "_cores", lambda: request.param)
    return request.param


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(content_capture, "_TICK_NS", -1)
    root = tmp_path / "work"
    for folder in ("a", "b/deep/er", "c", "d", "empty"):
        (root / folder).mkdir(parents=True)
    for name in ("top.txt", "a/1", "a/2", "b/1", "b/deep/er/1", "b/deep/er/ü\udcff", "c/1", "d/1", "d/2"):
        (root / name).write_text(f"{name!r} before\n")
    os.symlink("1", root / "d" / "link")
    os.mkfifo(root / "d" / "pipe")
    return root


@pytest.fixture
def store(root, tmp_path):
    store = CheckpointStore(str(root), str(tmp_path / "store"), 1 << 30)
    yield store
    store.close()


@pytest.fixture
def visited(monkeypatch):
    visited: list[str] = []
    real_visit = tree_scan.TreeScanner._visit

    def recording_visit(self, fd, folder, mode, depth):
        visited.append(folder)
        real_visit(self, fd, folder, mode, depth)

    monkeypatch.setattr(tree_scan.TreeScanner, "_visit", recording_visit)
    return visited


def begin(store: CheckpointStore, turn: str = "t"):
    return store.begin(turn, lambda: False)


def finish(store: CheckpointStore, turn: str = "t") -> set[tuple[str, str]]:
    store.finish(turn, lambda: False)
    return set(changes_in(store, turn).items())


def keep_mtime(path: Path, text: str) -> None:
    found = path.stat()
    path.write_text(text)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def replace(path: Path, text: str) -> None:
    (path.parent / "new").write_text(text)
    os.rename(path.parent / "new", path)


def move_and_link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    os.symlink("moved", path)


CHANGES = {
    "content": (lambda root: (root / "a/1").write_text("x"), {("a/1", "modified")}),
    "content of the same size and mtime": (
        lambda root: keep_mtime(root / "c/1", (root / "c/1").read_text().upper()),
        {("c/1", "modified")},
    ),
    "mode of a file": (lambda root: (root / "d/1").chmod(0o600), {("d/1", "modified")}),
    "mode of a folder": (lambda root: (root / "b/deep").chmod(0o700), {("b/deep", "modified")}),
    "mode of an empty folder": (lambda root: (root / "empty").chmod(0o700), {("empty", "modified")}),
    "other file of the same name": (lambda root: replace(root / "d/2", "x"), {("d/2", "modified")}),
    "new file": (lambda root: (root / "b/deep/er/2").write_text("x"), {("b/deep/er/2", "created")}),
    "new folder": (lambda root: (root / "empty/new").mkdir(), {("empty/new", "created")}),
    "deleted file": (lambda root: (root / "a/2").unlink(), {("a/2", "deleted")}),
    "renamed file": (lambda root: (root / "a/2").rename(root / "a/3"), {("a/2", "deleted"), ("a/3", "created")}),
    "link to elsewhere": (lambda root: replace_link(root / "d/link", "2"), {("d/link", "modified")}),
    "folder replaced by a link to it": (
        lambda root: move_and_link(root / "c"),
        {("c", "modified"), ("c/1", "deleted"), ("moved", "created"), ("moved/1", "created")},
    ),
    "file replaced by a folder": (
        lambda root: ((root / "c/1").unlink(), (root / "c/1").mkdir()),
        {("c/1", "modified")},
    ),
    "nothing": (lambda root: None, set()),
}


def replace_link(path: Path, target: str) -> None:
    path.unlink()
    os.symlink(target, path)


@pytest.mark.parametrize("kind", CHANGES)
def test_every_change_of_a_folder_is_found(root, store, processes, kind):
    make_change, expected = CHANGES[kind]
    begin(store)
    make_change(root)
    assert finish(store) == expected
    begin(store, "next")
    assert finish(store, "next") == set()


def test_only_changed_folders_and_those_above_are_visited(root, store, processes, visited):
    begin(store)
    visited.clear()
    (root / "b/deep/er/1").write_text("x")
    finish(store)
    assert visited == ["", "b/", "b/deep/", "b/deep/er/"]
    visited.clear()
    begin(store, "next")
    assert visited == []


def test_folder_with_git_data_is_not_visited_again(root, store, visited):
    (root / ".git").mkdir()
    (root / "c/.git").write_text("gitdir: elsewhere")
    begin(store)
    visited.clear()
    finish(store)
    assert visited == []


def test_file_that_changed_too_recently_is_read_again(root, store, processes, visited, monkeypatch):
    monkeypatch.setattr(content_capture, "_TICK_NS", 10**18)
    begin(store)
    visited.clear()
    finish(store)
    assert {"a/", "b/", "b/deep/er/", "c/", "d/"} <= set(visited)


def test_unsaved_file_is_tried_again(root, store, visited, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(content_capture, "CAPTURE_TIMEOUT_SECONDS", -1.0)
        assert len(begin(store)) == 10  # all but the named pipe
    visited.clear()
    assert begin(store, "next") == []
    assert set(visited) >= {"a/", "b/", "c/", "d/"}


@pytest.mark.parametrize("program", ["", "/bin/false", "/nonexistent"])
def test_helper_that_does_not_work_costs_only_time(root, store, program, monkeypatch):
    monkeypatch.setattr(unchanged_folders, "MIN_FILES_PER_PROCESS", 1)
    monkeypatch.setattr(unchanged_folders, "_cores", lambda: 3)
    monkeypatch.setattr(sys, "executable", program)
    begin(store)
    for name in ("a/1", "d/1"):
        (root / name).write_text("x")
    assert finish(store) == {("a/1", "modified"), ("d/1", "modified")}


def test_cancelled_scan_ends_its_helpers(root, store, tmp_path, monkeypatch):
    helper, pids = tmp_path / "helper", tmp_path / "pids"
    helper.write_text(f"#!/bin/sh\necho $$ >> {pids}\nexec sleep 1000\n")
    helper.chmod(0o755)
    os.mkfifo(pids)
    reader = os.open(pids, os.O_RDWR)
    begin(store)
    monkeypatch.setattr(unchanged_folders, "MIN_FILES_PER_PROCESS", 1)
    monkeypatch.setattr(unchanged_folders, "_cores", lambda: 2)
    monkeypatch.setattr(sys, "executable", str(helper))
    started: list[int] = []

    def is_stopped() -> bool:
        if not started:
            started.append(int(os.read(reader, 100)))  # waits for the helper
        return True

    with pytest.raises(unchanged_folders.ScanStopped):
        store.finish("t", is_stopped)
    os.close(reader)
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


def test_store_of_an_older_version_is_used(root, tmp_path, visited):
    store = CheckpointStore(str(root), str(tmp_path / "store"), 1 << 30)
    begin(store)
    store.close()
    with sqlite3.connect(tmp_path / "store" / "turns.db") as database:
        database.execute("ALTER TABLE folder DROP COLUMN stamps")
    database.close()
    (root / "a/1").write_text("x")
    store = CheckpointStore(str(root), str(tmp_path / "store"), 1 << 30)
    begin(store, "next")
    (root / "c/1").write_text("x")
    assert finish(store, "next") == {("c/1", "modified")}
    visited.clear()
    begin(store, "last")
    assert visited == []
    store.close()


def test_smaller_files_are_saved_first_if_not_all_fit(root, tmp_path):
    for number in range(20):
        (root / f"a/large-{number}").write_bytes(os.urandom(100_000))
        (root / f"d/small-{number}").write_bytes(os.urandom(1_000))
    store = CheckpointStore(str(root), str(tmp_path / "store"), 500_000)
    uncovered = {gap.path for gap in begin(store)}
    assert uncovered and all(path.startswith("a/large-") for path in uncovered)
    store.close()


def test_first_scan_needs_little_memory_for_each_file(tmp_path):
    root, files = tmp_path / "work", 3_000
    for number in range(files):
        folder = root / f"folder-{number // 100}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file-{number}.txt").write_text(f"file {number}\n")
    store = CheckpointStore(str(root), str(tmp_path / "store"), 1 << 30)
    tracemalloc.start()
    try:
        begin(store)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        store.close()
    assert peak / files < 400
