"""A write is whole or not at all, keeps what the file was, and never undoes somebody's change."""

import asyncio
import errno
import os
import subprocess
import sys
import threading

import pytest

from ostler.core.errors import PathError
from ostler.workspace import atomic_write
from ostler.workspace.file_reading import MAX_TEXT_BYTES
from ostler.workspace.local_workspace import LocalWorkspace


def leftovers(yard) -> list[str]:
    return [str(path) for path in yard.root.rglob("*") if "ostler" in path.name]


@pytest.mark.req("FS-5")
async def test_a_write_says_what_it_did(workspace, yard):
    created = await workspace.write_text("new/deep/a.txt", "one\ntwo\n")
    assert (created.path, created.operation, created.additions, created.deletions) == (
        "new/deep/a.txt",
        "created",
        2,
        0,
    )
    assert (yard.root / "new/deep/a.txt").read_bytes() == b"one\ntwo\n"
    updated = await workspace.write_text("new/deep/a.txt", "one\n2\n")
    assert (updated.operation, updated.additions, updated.deletions, updated.size) == ("updated", 1, 1, 6)
    assert "-two" in updated.diff
    assert "+2" in updated.diff
    same = await workspace.write_text("new/deep/a.txt", "one\n2\n")
    assert (same.operation, same.additions, same.deletions, same.diff) == ("unchanged", 0, 0, "")
    assert not leftovers(yard)


@pytest.mark.req("FS-5")
@pytest.mark.parametrize("mode", [0o755, 0o640, 0o600, 0o444 | 0o200])
async def test_the_mode_is_kept(workspace, yard, mode):
    path = yard.root / "in.txt"
    path.chmod(mode)
    await workspace.read_text("in.txt")
    await workspace.write_text("in.txt", "changed\n")
    assert path.stat().st_mode & 0o7777 == mode


@pytest.mark.req("FS-5")
async def test_a_new_file_has_the_mode_the_person_chose_for_new_files(workspace, yard):
    before = os.umask(0o027)
    try:
        await workspace.write_text("new.txt", "x")
    finally:
        os.umask(before)
    assert (yard.root / "new.txt").stat().st_mode & 0o777 == 0o640


@pytest.mark.req("FS-5")
async def test_a_link_is_written_through_and_stays_a_link(workspace, yard):
    os.symlink("sub/file.txt", yard.root / "link")
    os.symlink("link", yard.root / "link2")
    await workspace.read_text("link2")
    written = await workspace.write_text("link2", "through\n")
    assert written.path == "sub/file.txt"
    assert os.readlink(yard.root / "link2") == "link"
    assert (yard.root / "sub/file.txt").read_text() == "through\n"
    assert (await workspace.write_text("sub/file.txt", "again\n")).operation == "updated"


@pytest.mark.req("FS-5")
async def test_all_names_of_a_file_inside_get_the_new_text(workspace, yard):
    os.link(yard.root / "in.txt", yard.root / "sub" / "twin.txt")
    (yard.root / "in.txt").chmod(0o755)
    await workspace.read_text("in.txt")
    for text in ("longer than before\n" * 100, "short\n"):
        await workspace.write_text("in.txt", text)
        assert (yard.root / "sub/twin.txt").read_text() == text
    assert (yard.root / "in.txt").stat().st_nlink == 2
    assert (yard.root / "in.txt").stat().st_mode & 0o777 == 0o755


@pytest.mark.req("FS-3", "FS-5")
async def test_a_name_outside_does_not_get_the_new_text(workspace, yard):
    os.link(yard.outside / "secret.txt", yard.root / "hard.txt")
    before = yard.outside_state()
    await workspace.read_text("hard.txt")
    await workspace.write_text("hard.txt", "mine\n")
    assert (yard.root / "hard.txt").read_text() == "mine\n"
    assert yard.outside_state() == before


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
async def test_a_whole_new_text_takes_the_form_of_the_file(workspace, yard, raw, text, result):
    path = yard.root / "in.txt"
    path.write_bytes(raw)
    await workspace.read_text("in.txt")
    await workspace.write_text("in.txt", text)
    assert path.read_bytes() == result


@pytest.mark.req("FS-5")
async def test_a_character_that_does_not_fit_changes_nothing(workspace, yard):
    raw = "Привет, мир!\n".encode("koi8-r")
    (yard.root / "ru.txt").write_bytes(raw)
    file = await workspace.read_text("ru.txt")
    assert file.encoding == "koi8-r"
    with pytest.raises(PathError, match="line 2 has 'é'") as refused:
        await workspace.write_text("ru.txt", file.text + "é\n")
    assert refused.value.fault.code == "unencodable"
    assert (yard.root / "ru.txt").read_bytes() == raw


async def test_the_encoding_does_not_drift_while_a_session_edits(workspace, yard):
    (yard.root / "ru.txt").write_bytes("Привет, мир!\n".encode("koi8-r"))
    await workspace.read_text("ru.txt")
    await workspace.write_text("ru.txt", "Х\n")
    assert (yard.root / "ru.txt").read_bytes() == "Х\n".encode("koi8-r")
    assert (await workspace.read_text("ru.txt")).text == "Х\n"


@pytest.mark.req("FS-6")
async def test_a_file_that_was_never_read_is_not_overwritten(workspace, yard):
    with pytest.raises(PathError, match="has not been read in this session") as refused:
        await workspace.write_text("in.txt", "mine\n")
    assert refused.value.fault.code == "changed_on_disk"
    assert "read it first" in refused.value.fault.hint
    assert (yard.root / "in.txt").read_text() == "inside\n"
    assert (await workspace.write_text("in.txt", "inside\n")).operation == "unchanged"
    assert (await workspace.write_text("in.txt", "mine\n")).operation == "updated"


@pytest.mark.req("FS-6")
async def test_a_file_that_changed_since_is_not_overwritten_and_the_change_is_shown(workspace, yard):
    await workspace.read_text("in.txt")
    (yard.root / "in.txt").write_text("inside\nby a person\n")
    with pytest.raises(PathError) as refused:
        await workspace.write_text("in.txt", "mine\n")
    assert refused.value.fault.code == "changed_on_disk"
    assert "+by a person" in refused.value.fault.hint
    assert (yard.root / "in.txt").read_text() == "inside\nby a person\n"
    await workspace.read_text("in.txt")
    assert (await workspace.write_text("in.txt", "mine\n")).operation == "updated"


@pytest.mark.req("FS-6")
async def test_a_change_of_the_same_size_and_time_is_still_a_change(workspace, yard):
    path = yard.root / "in.txt"
    await workspace.read_text("in.txt")
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_text("INSIDE\n")
    os.utime(path, ns=times)
    with pytest.raises(PathError, match="changed on disk"):
        await workspace.write_text("in.txt", "mine\n")


@pytest.mark.req("FS-6")
async def test_a_large_change_is_told_by_size(workspace, yard):
    (yard.root / "in.txt").write_text("x\n" * 200_000)
    await workspace.read_text("in.txt")
    (yard.root / "in.txt").write_text("y\n")
    with pytest.raises(PathError, match="had 400,000 bytes and has 2 now"):
        await workspace.write_text("in.txt", "mine\n")


@pytest.mark.req("FS-6")
async def test_an_edit_made_from_an_old_version_does_not_undo_a_newer_one(workspace, yard):
    """Two calls of one session read the same text; the second to write must see the first's change."""
    base = (await workspace.read_text("in.txt")).version
    await workspace.write_text("in.txt", "first\n", base_version=base)
    with pytest.raises(PathError, match="another call of this session") as refused:
        await workspace.write_text("in.txt", "second\n", base_version=base)
    assert refused.value.fault.code == "changed_on_disk"
    assert (yard.root / "in.txt").read_text() == "first\n"


@pytest.mark.req("FS-6")
async def test_a_deleted_file_is_not_brought_back_by_an_edit(workspace, yard):
    base = (await workspace.read_text("in.txt")).version
    (yard.root / "in.txt").unlink()
    with pytest.raises(PathError, match="deleted"):
        await workspace.write_text("in.txt", "x", base_version=base)
    assert (await workspace.write_text("in.txt", "x")).operation == "created"


@pytest.mark.req("FS-6")
async def test_a_change_in_the_last_moment_is_seen(workspace, yard, monkeypatch):
    await workspace.read_text("in.txt")
    sync = os.fsync

    def meanwhile(fd: int) -> None:
        (yard.root / "in.txt").write_text("a person was quicker\n")
        sync(fd)

    monkeypatch.setattr(atomic_write.os, "fsync", meanwhile)
    with pytest.raises(PathError) as refused:
        await workspace.write_text("in.txt", "mine\n")
    assert refused.value.fault.code == "changed_on_disk"
    assert (yard.root / "in.txt").read_text() == "a person was quicker\n"
    assert not leftovers(yard)


@pytest.mark.req("FS-6")
async def test_a_file_that_appears_in_the_last_moment_is_kept(workspace, yard, monkeypatch):
    sync = os.fsync

    def meanwhile(fd: int) -> None:
        (yard.root / "new.txt").write_text("somebody's\n")
        sync(fd)

    monkeypatch.setattr(atomic_write.os, "fsync", meanwhile)
    with pytest.raises(PathError):
        await workspace.write_text("new.txt", "mine\n")
    assert (yard.root / "new.txt").read_text() == "somebody's\n"
    assert not leftovers(yard)


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
async def test_a_failure_leaves_the_old_file_and_nothing_else(workspace, yard, monkeypatch, call, number, code):
    await workspace.read_text("in.txt")

    def fail(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(atomic_write.os, call, fail)
    with pytest.raises(PathError) as refused:
        await workspace.write_text("in.txt", "half\n" * 1000)
    monkeypatch.undo()
    assert refused.value.fault.code == code
    assert (yard.root / "in.txt").read_text() == "inside\n"
    assert not leftovers(yard)
    assert (await workspace.write_text("in.txt", "whole\n")).operation == "updated"


@pytest.mark.req("FS-5")
async def test_a_full_disk_found_half_way_through_a_shared_file_puts_the_old_bytes_back(workspace, yard, monkeypatch):
    os.link(yard.root / "in.txt", yard.root / "twin.txt")
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
    assert (yard.root / "twin.txt").read_text() == "inside\n"


@pytest.mark.req("FS-5")
async def test_a_directory_that_takes_no_new_names_still_lets_its_files_be_written(workspace, yard, monkeypatch):
    await workspace.read_text("in.txt")
    real = os.open

    def no_new_names(path, flags, *args, **kwargs):
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(atomic_write.os, "open", no_new_names)
    assert (await workspace.write_text("in.txt", "changed\n")).operation == "updated"
    assert (yard.root / "in.txt").read_text() == "changed\n"
    with pytest.raises(PathError) as refused:
        await workspace.write_text("new.txt", "x")
    assert refused.value.fault.code == "denied_by_system"


async def test_a_file_the_person_may_not_write_is_left_alone(workspace, yard, monkeypatch):
    await workspace.read_text("in.txt")
    monkeypatch.setattr("ostler.workspace.text_save.os.access", lambda *args, **kwargs: False)
    with pytest.raises(PathError) as refused:
        await workspace.write_text("in.txt", "x")
    assert refused.value.fault.code == "denied_by_system"


@pytest.mark.req("FS-4")
async def test_what_is_too_large_or_no_text_is_neither_read_nor_written(workspace, yard):
    with (yard.root / "huge").open("wb") as file:
        file.truncate(MAX_TEXT_BYTES + 1)
    with pytest.raises(PathError) as refused:
        await workspace.read_text("huge")
    assert refused.value.fault.code == "too_large"
    assert len(await workspace.read_bytes("huge", 100)) == 100
    (yard.root / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    for attempt in (workspace.read_text("image.png"), workspace.write_text("image.png", "x")):
        with pytest.raises(PathError, match="a PNG image of 10 bytes") as refused:
            await attempt
        assert refused.value.fault.code == "binary"
    with pytest.raises(PathError) as refused:
        await workspace.write_text("new.txt", "x" * (MAX_TEXT_BYTES + 1))
    assert refused.value.fault.code == "too_large"
    assert not (yard.root / "new.txt").exists()


async def test_a_large_text_is_read_and_written_too(workspace, yard):
    text = "line é\n" * 300_000
    assert (await workspace.write_text("big.txt", text)).additions == 300_000
    assert (await workspace.read_text("big.txt")).text == text


@pytest.mark.req("FS-6")
async def test_eight_writers_lose_no_line(yard):
    """Eight grounds add lines to one file, each again and again until its own is in."""
    path = yard.root / "list.txt"
    path.write_text("")

    async def add(workspace: LocalWorkspace, lines: list[str]) -> None:
        for line in lines:
            while True:
                file = await workspace.read_text("list.txt")
                try:
                    await workspace.write_text("list.txt", file.text + line, base_version=file.version)
                    break
                except PathError as refused:
                    assert refused.fault.code == "changed_on_disk"

    grounds = [LocalWorkspace(str(yard.root)) for _ in range(8)]
    wanted = [[f"{n}-{i}\n" for i in range(4)] for n in range(8)]
    async with asyncio.timeout(30):
        await asyncio.gather(*(add(workspace, lines) for workspace, lines in zip(grounds, wanted, strict=True)))
    assert sorted(path.read_text().splitlines(True)) == sorted(line for lines in wanted for line in lines)


@pytest.mark.req("FS-6")
def test_two_processes_lose_no_line(yard):
    path = yard.root / "list.txt"
    path.write_text("")
    script = """
import asyncio, sys
from ostler.core.errors import PathError
from ostler.workspace.local_workspace import LocalWorkspace
async def main():
    ground = LocalWorkspace(sys.argv[1])
    for i in range(15):
        while True:
            file = await ground.read_text("list.txt")
            try:
                await ground.write_text("list.txt", file.text + f"{sys.argv[2]}-{i}\\n")
                break
            except PathError:
                pass
asyncio.run(main())
"""
    workers = [
        subprocess.Popen([sys.executable, "-c", script, str(yard.root), name], env={**os.environ, "PYTHONDEVMODE": ""})
        for name in ("a", "b")
    ]
    assert [worker.wait(30) for worker in workers] == [0, 0]
    assert sorted(path.read_text().split()) == sorted(f"{name}-{i}" for name in ("a", "b") for i in range(15))


@pytest.mark.req("FS-5")
async def test_a_reader_sees_the_old_text_or_the_new_and_nothing_between(workspace, yard):
    texts = ["a" * 50_000, "b" * 70_000]
    await workspace.write_text("flip.txt", texts[0])
    stop = threading.Event()
    seen: set[str] = set()

    def watch() -> None:
        while not stop.is_set():
            seen.add((yard.root / "flip.txt").read_text())

    thread = threading.Thread(target=watch)
    thread.start()
    for round_ in range(40):
        await workspace.write_text("flip.txt", texts[round_ % 2])
    stop.set()
    thread.join()
    assert seen <= set(texts)


async def test_a_cancelled_write_is_finished_before_the_ground_is_free_again(workspace, yard, monkeypatch):
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
