"""A write is atomic, keeps the form of the file, and never overwrites unseen changes."""

import asyncio
import errno
import os
import subprocess
import sys
import threading

import pytest

from ostler.core.errors import PathError
from ostler.core.protocols import FileChange
from ostler.workspace import atomic_write
from ostler.workspace.file_reading import MAX_TEXT_BYTES
from ostler.workspace.local_workspace import LocalWorkspace


def temporary_files(dirs) -> list[str]:
    return [str(path) for path in dirs.root.rglob("*") if "ostler" in path.name]


@pytest.mark.req("FS-5")
async def test_write_result_describes_change(workspace, dirs):
    created = await workspace.write_text("new/deep/a.txt", "one\ntwo\n")
    assert (created.path, created.operation, created.additions, created.deletions) == (
        "new/deep/a.txt",
        "created",
        2,
        0,
    )
    assert (dirs.root / "new/deep/a.txt").read_bytes() == b"one\ntwo\n"
    updated = await workspace.write_text("new/deep/a.txt", "one\n2\n")
    assert (updated.operation, updated.additions, updated.deletions, updated.size) == ("updated", 1, 1, 6)
    assert "-two" in updated.diff
    assert "+2" in updated.diff
    same = await workspace.write_text("new/deep/a.txt", "one\n2\n")
    assert (same.operation, same.additions, same.deletions, same.diff) == ("unchanged", 0, 0, "")
    assert not temporary_files(dirs)


@pytest.mark.req("FS-5")
@pytest.mark.parametrize("mode", [0o755, 0o640, 0o600, 0o444 | 0o200])
async def test_mode_is_kept(workspace, dirs, mode):
    path = dirs.root / "in.txt"
    path.chmod(mode)
    await workspace.read_text("in.txt")
    await workspace.write_text("in.txt", "changed\n")
    assert path.stat().st_mode & 0o7777 == mode


@pytest.mark.req("FS-5")
async def test_new_file_respects_umask(workspace, dirs):
    before = os.umask(0o027)
    try:
        await workspace.write_text("new.txt", "x")
    finally:
        os.umask(before)
    assert (dirs.root / "new.txt").stat().st_mode & 0o777 == 0o640


@pytest.mark.req("FS-5")
async def test_write_follows_symlink(workspace, dirs):
    os.symlink("sub/file.txt", dirs.root / "link")
    os.symlink("link", dirs.root / "link2")
    await workspace.read_text("link2")
    written = await workspace.write_text("link2", "through\n")
    assert written.path == "sub/file.txt"
    assert os.readlink(dirs.root / "link2") == "link"
    assert (dirs.root / "sub/file.txt").read_text() == "through\n"
    assert (await workspace.write_text("sub/file.txt", "again\n")).operation == "updated"


@pytest.mark.req("FS-5")
async def test_write_updates_all_hard_links_inside(workspace, dirs):
    os.link(dirs.root / "in.txt", dirs.root / "sub" / "twin.txt")
    (dirs.root / "in.txt").chmod(0o755)
    await workspace.read_text("in.txt")
    for text in ("longer than before\n" * 100, "short\n"):
        await workspace.write_text("in.txt", text)
        assert (dirs.root / "sub/twin.txt").read_text() == text
    assert (dirs.root / "in.txt").stat().st_nlink == 2
    assert (dirs.root / "in.txt").stat().st_mode & 0o777 == 0o755


@pytest.mark.req("FS-3", "FS-5")
async def test_write_does_not_change_hard_link_outside(workspace, dirs):
    os.link(dirs.outside / "secret.txt", dirs.root / "hard.txt")
    before = dirs.outside_state()
    await workspace.read_text("hard.txt")
    await workspace.write_text("hard.txt", "mine\n")
    assert (dirs.root / "hard.txt").read_text() == "mine\n"
    assert dirs.outside_state() == before


@pytest.mark.req("FS-5")
@pytest.mark.parametrize(
    ("raw", "text", "result"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\rb\r", "x\ny\n", b"x\ry\r"),
        (b"a\nb\r\n", "x\ny\r\n", b"x\ny\r\n"),
        (b"a\r\nb", "x\r\ny", b"x\r\ny"),
        (b"\xef\xbb\xbfa\n", "x\n", b"\xef\xbb\xbfx\n"),
        ("\ufeffa\r\n".encode("utf-16-le"), "é\n", "\ufeffé\r\n".encode("utf-16-le")),
        ("déjà vu\n".encode("cp1252"), "déjà été\n", "déjà été\n".encode("cp1252")),
        (b"a\n", "x", b"x"),
        (b"a", "x\n", b"x\n"),
        (b"", "x\n", b"x\n"),
    ],
)
async def test_write_keeps_encoding_and_newlines(workspace, dirs, raw, text, result):
    path = dirs.root / "in.txt"
    path.write_bytes(raw)
    await workspace.read_text("in.txt")
    await workspace.write_text("in.txt", text)
    assert path.read_bytes() == result


@pytest.mark.req("FS-5")
async def test_unencodable_character_changes_nothing(workspace, dirs):
    raw = "Привет, мир!\n".encode("koi8-r")
    (dirs.root / "ru.txt").write_bytes(raw)
    file = await workspace.read_text("ru.txt")
    assert file.encoding == "koi8-r"
    with pytest.raises(PathError, match="line 2 has 'é'") as error:
        await workspace.write_text("ru.txt", file.text + "é\n")
    assert error.value.fault.code == "unencodable"
    assert (dirs.root / "ru.txt").read_bytes() == raw


async def test_encoding_stays_the_same_during_session(workspace, dirs):
    (dirs.root / "ru.txt").write_bytes("Привет, мир!\n".encode("koi8-r"))
    await workspace.read_text("ru.txt")
    await workspace.write_text("ru.txt", "Х\n")
    assert (dirs.root / "ru.txt").read_bytes() == "Х\n".encode("koi8-r")
    assert (await workspace.read_text("ru.txt")).text == "Х\n"


@pytest.mark.req("FS-6")
async def test_unread_file_is_not_overwritten(workspace, dirs):
    with pytest.raises(PathError, match="has not been read in this session") as error:
        await workspace.write_text("in.txt", "mine\n")
    assert error.value.fault.code == "changed_on_disk"
    assert "read it before" in error.value.fault.hint
    assert (dirs.root / "in.txt").read_text() == "inside\n"
    assert (await workspace.write_text("in.txt", "inside\n")).operation == "unchanged"
    assert (await workspace.write_text("in.txt", "mine\n")).operation == "updated"


@pytest.mark.req("FS-6")
@pytest.mark.invariant("W4")
async def test_changed_file_is_not_overwritten_and_diff_is_shown(workspace, dirs):
    await workspace.read_text("in.txt")
    (dirs.root / "in.txt").write_text("inside\nby the user\n")
    with pytest.raises(PathError) as error:
        await workspace.write_text("in.txt", "mine\n")
    assert error.value.fault.code == "changed_on_disk"
    assert "+by the user" in error.value.fault.hint
    assert (dirs.root / "in.txt").read_text() == "inside\nby the user\n"
    await workspace.read_text("in.txt")
    assert (await workspace.write_text("in.txt", "mine\n")).operation == "updated"


@pytest.mark.req("FS-6")
async def test_change_with_same_size_and_time_is_detected(workspace, dirs):
    path = dirs.root / "in.txt"
    await workspace.read_text("in.txt")
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_text("INSIDE\n")
    os.utime(path, ns=times)
    with pytest.raises(PathError, match="changed on disk"):
        await workspace.write_text("in.txt", "mine\n")


@pytest.mark.req("FS-6")
async def test_large_change_is_described_by_size(workspace, dirs):
    (dirs.root / "in.txt").write_text("x\n" * 200_000)
    await workspace.read_text("in.txt")
    (dirs.root / "in.txt").write_text("y\n")
    with pytest.raises(PathError, match="had 400,000 bytes and has 2 now"):
        await workspace.write_text("in.txt", "mine\n")


@pytest.mark.req("FS-6")
async def test_edit_of_old_version_is_rejected(workspace, dirs):
    """Two calls of one session read the same text; the second write must notice the first."""
    base = (await workspace.read_text("in.txt")).version
    await workspace.apply([FileChange("in.txt", "first\n", base)])
    with pytest.raises(PathError, match="another call of this session") as error:
        await workspace.apply([FileChange("in.txt", "second\n", base)])
    assert error.value.fault.code == "changed_on_disk"
    assert (dirs.root / "in.txt").read_text() == "first\n"


@pytest.mark.req("FS-6")
async def test_edit_does_not_recreate_deleted_file(workspace, dirs):
    base = (await workspace.read_text("in.txt")).version
    (dirs.root / "in.txt").unlink()
    with pytest.raises(PathError, match="no such file"):
        await workspace.apply([FileChange("in.txt", "x", base)])
    assert (await workspace.write_text("in.txt", "x")).operation == "created"


@pytest.mark.req("FS-6")
@pytest.mark.invariant("W4")
async def test_change_at_last_moment_is_detected(workspace, dirs, monkeypatch):
    await workspace.read_text("in.txt")
    sync = os.fsync

    def sync_after_change(fd: int) -> None:
        (dirs.root / "in.txt").write_text("changed by the user\n")
        sync(fd)

    monkeypatch.setattr(atomic_write.os, "fsync", sync_after_change)
    with pytest.raises(PathError) as error:
        await workspace.write_text("in.txt", "mine\n")
    assert error.value.fault.code == "changed_on_disk"
    assert (dirs.root / "in.txt").read_text() == "changed by the user\n"
    assert not temporary_files(dirs)


@pytest.mark.req("FS-6")
async def test_file_created_at_last_moment_is_kept(workspace, dirs, monkeypatch):
    sync = os.fsync

    def sync_after_change(fd: int) -> None:
        (dirs.root / "new.txt").write_text("by another process\n")
        sync(fd)

    monkeypatch.setattr(atomic_write.os, "fsync", sync_after_change)
    with pytest.raises(PathError):
        await workspace.write_text("new.txt", "mine\n")
    assert (dirs.root / "new.txt").read_text() == "by another process\n"
    assert not temporary_files(dirs)


@pytest.mark.req("FS-5")
@pytest.mark.parametrize("call", ["write", "fsync", "rename", "fchmod"])
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "io_error"),
        (errno.EDQUOT, "io_error"),
        (errno.EROFS, "denied_by_system"),
        (errno.EIO, "io_error"),
    ],
)
async def test_failed_write_leaves_old_file_and_no_temporary_files(workspace, dirs, monkeypatch, call, number, code):
    await workspace.read_text("in.txt")

    def fail(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(atomic_write.os, call, fail)
    with pytest.raises(PathError) as error:
        await workspace.write_text("in.txt", "half\n" * 1000)
    monkeypatch.undo()
    assert error.value.fault.code == code
    assert (dirs.root / "in.txt").read_text() == "inside\n"
    assert not temporary_files(dirs)
    assert (await workspace.write_text("in.txt", "whole\n")).operation == "updated"


@pytest.mark.req("FS-5")
async def test_full_disk_while_overwriting_restores_old_bytes(workspace, dirs, monkeypatch):
    os.link(dirs.root / "in.txt", dirs.root / "twin.txt")
    await workspace.read_text("in.txt")
    write, calls = os.write, []

    def fail_once(fd: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) == 1:
            return write(fd, data[:10])
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data)

    monkeypatch.setattr(atomic_write.os, "write", fail_once)
    with pytest.raises(PathError, match="disk is full"):
        await workspace.write_text("in.txt", "much more text\n" * 100)
    assert (dirs.root / "twin.txt").read_text() == "inside\n"


@pytest.mark.req("FS-5")
async def test_file_in_read_only_directory_can_be_written(workspace, dirs, monkeypatch):
    await workspace.read_text("in.txt")
    real = os.open

    def deny_creation(path, flags, *args, **kwargs):
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(atomic_write.os, "open", deny_creation)
    assert (await workspace.write_text("in.txt", "changed\n")).operation == "updated"
    assert (dirs.root / "in.txt").read_text() == "changed\n"
    with pytest.raises(PathError) as error:
        await workspace.write_text("new.txt", "x")
    assert error.value.fault.code == "denied_by_system"


async def test_file_without_write_permission_is_not_changed(workspace, dirs, monkeypatch):
    await workspace.read_text("in.txt")
    monkeypatch.setattr("ostler.workspace.text_save.os.access", lambda *args, **kwargs: False)
    with pytest.raises(PathError) as error:
        await workspace.write_text("in.txt", "x")
    assert error.value.fault.code == "denied_by_system"


@pytest.mark.req("FS-4")
async def test_large_and_binary_files_are_rejected(workspace, dirs):
    with (dirs.root / "huge").open("wb") as file:
        file.truncate(MAX_TEXT_BYTES + 1)
    with pytest.raises(PathError) as error:
        await workspace.read_text("huge")
    assert error.value.fault.code == "too_large"
    assert len(await workspace.read_bytes("huge", 100)) == 100
    (dirs.root / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    for attempt in (workspace.read_text("image.png"), workspace.write_text("image.png", "x")):
        with pytest.raises(PathError, match="a PNG image of 10 bytes") as error:
            await attempt
        assert error.value.fault.code == "binary"
    with pytest.raises(PathError) as error:
        await workspace.write_text("new.txt", "x" * (MAX_TEXT_BYTES + 1))
    assert error.value.fault.code == "too_large"
    assert not (dirs.root / "new.txt").exists()


async def test_large_text_is_read_and_written(workspace, dirs):
    text = "line é\n" * 300_000
    assert (await workspace.write_text("big.txt", text)).additions == 300_000
    assert (await workspace.read_text("big.txt")).text == text


@pytest.mark.req("FS-6")
async def test_concurrent_writers_lose_no_lines(dirs):
    """Eight workspaces append lines to one file, each retrying until its write succeeds."""
    path = dirs.root / "list.txt"
    path.write_text("")

    async def add(workspace: LocalWorkspace, lines: list[str]) -> None:
        for line in lines:
            while True:
                file = await workspace.read_text("list.txt")
                try:
                    await workspace.write_text("list.txt", file.text + line)
                    break
                except PathError as error:
                    assert error.fault.code == "changed_on_disk"

    workspaces = [LocalWorkspace(str(dirs.root)) for _ in range(8)]
    expected = [[f"{n}-{i}\n" for i in range(4)] for n in range(8)]
    async with asyncio.timeout(30):
        await asyncio.gather(*(add(workspace, lines) for workspace, lines in zip(workspaces, expected, strict=True)))
    assert sorted(path.read_text().splitlines(True)) == sorted(line for lines in expected for line in lines)


@pytest.mark.req("FS-6")
def test_concurrent_processes_lose_no_lines(dirs):
    path = dirs.root / "list.txt"
    path.write_text("")
    script = """
import asyncio, sys
from ostler.core.errors import PathError
from ostler.workspace.local_workspace import LocalWorkspace
async def main():
    workspace = LocalWorkspace(sys.argv[1])
    for i in range(15):
        while True:
            file = await workspace.read_text("list.txt")
            try:
                await workspace.write_text("list.txt", file.text + f"{sys.argv[2]}-{i}\\n")
                break
            except PathError:
                pass
asyncio.run(main())
"""
    workers = [
        subprocess.Popen([sys.executable, "-c", script, str(dirs.root), name], env={**os.environ, "PYTHONDEVMODE": ""})
        for name in ("a", "b")
    ]
    assert [worker.wait(30) for worker in workers] == [0, 0]
    assert sorted(path.read_text().split()) == sorted(f"{name}-{i}" for name in ("a", "b") for i in range(15))


@pytest.mark.req("FS-5")
async def test_reader_sees_old_or_new_text(workspace, dirs):
    texts = ["a" * 50_000, "b" * 70_000]
    await workspace.write_text("flip.txt", texts[0])
    stop = threading.Event()
    texts_read: set[str] = set()

    def watch() -> None:
        while not stop.is_set():
            texts_read.add((dirs.root / "flip.txt").read_text())

    thread = threading.Thread(target=watch)
    thread.start()
    for round_ in range(40):
        await workspace.write_text("flip.txt", texts[round_ % 2])
    stop.set()
    thread.join()
    assert texts_read <= set(texts)


async def test_cancelled_write_finishes_before_lock_is_released(workspace, dirs, monkeypatch):
    entered, proceed = threading.Event(), threading.Event()
    sync = os.fsync

    def slow(fd: int) -> None:
        entered.set()
        assert proceed.wait(5)
        sync(fd)

    monkeypatch.setattr(atomic_write.os, "fsync", slow)
    task = asyncio.create_task(workspace.write_text("slow.txt", "x\n"))
    assert await asyncio.to_thread(entered.wait, 60)
    task.cancel()
    reader = asyncio.create_task(workspace.read_text("slow.txt"))
    proceed.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await reader).text == "x\n"
