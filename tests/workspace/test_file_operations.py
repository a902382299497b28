import os

import pytest

from ostler.core.errors import PathError
from ostler.core.protocols import FileChange


async def error_code(attempt) -> str:
    with pytest.raises(PathError) as error:
        await attempt
    return error.value.fault.code


@pytest.mark.req("FS-1")
async def test_make_directory_creates_parents(workspace, dirs):
    assert await workspace.make_directory("a/b/c") is True
    assert await workspace.make_directory("a/b/c/") is False
    assert (dirs.root / "a/b/c").is_dir()
    assert await error_code(workspace.make_directory("in.txt")) == "not_a_directory"
    assert await error_code(workspace.make_directory("in.txt/x")) == "not_a_directory"
    assert await workspace.make_directory("none/../y")


def deletion(path: str) -> list[FileChange]:
    return [FileChange(path, delete=True)]


def renaming(path: str, new_path: str) -> list[FileChange]:
    return [FileChange(path, new_path=new_path)]


@pytest.mark.req("FS-7")
async def test_delete_removes_no_symlink_and_no_folder(workspace, dirs):
    os.symlink("in.txt", dirs.root / "link")
    os.symlink(dirs.outside, dirs.root / "out")
    assert await error_code(workspace.apply(deletion("link"))) == "not_a_file"
    assert await error_code(workspace.apply(deletion("out"))) == "not_a_file"
    assert (dirs.root / "in.txt").exists()
    assert (dirs.outside / "secret.txt").exists()
    await workspace.apply(deletion("in.txt"))
    assert not (dirs.root / "in.txt").exists()
    assert await error_code(workspace.apply(deletion("in.txt"))) == "not_found"
    assert await error_code(workspace.apply(deletion("sub"))) == "not_a_file"
    assert await error_code(workspace.apply(deletion("."))) == "not_a_file"
    assert await error_code(workspace.apply(deletion("sub/.."))) == "not_a_file"
    assert (dirs.root / "sub/file.txt").exists()


async def test_deleted_file_is_treated_as_unread(workspace, dirs):
    await workspace.read_text("in.txt")
    await workspace.apply(deletion("in.txt"))
    (dirs.root / "in.txt").write_text("inside\n")
    assert await error_code(workspace.write_text("in.txt", "x")) == "changed_on_disk"


@pytest.mark.req("FS-7")
async def test_rename_does_not_overwrite(workspace, dirs):
    os.symlink("in.txt", dirs.root / "link")
    await workspace.apply(renaming("in.txt", "deep/er/out.txt"))
    assert (dirs.root / "deep/er/out.txt").read_text() == "inside\n"
    for existing in ("sub/file.txt", "sub", "link"):
        assert await error_code(workspace.apply(renaming("deep/er/out.txt", existing))) == "already_exists"
    assert await error_code(workspace.apply(renaming("none", "x"))) == "not_found"
    assert await error_code(workspace.apply(renaming(".", "x"))) == "not_a_file"
    assert (dirs.root / "deep/er/out.txt").exists()


async def test_renamed_file_stays_read(workspace, dirs):
    await workspace.read_text("in.txt")
    await workspace.apply(renaming("in.txt", "moved.txt"))
    assert (await workspace.write_text("moved.txt", "x\n")).operation == "updated"


@pytest.mark.req("TL-2")
async def test_append_requires_known_version(workspace, dirs):
    assert await workspace.append_bytes("big/out.bin", b"one") == 3
    assert await workspace.append_bytes("big/out.bin", b"\0two") == 7
    assert (dirs.root / "big/out.bin").read_bytes() == b"one\0two"
    (dirs.root / "big/out.bin").write_bytes(b"by another process")
    assert await error_code(workspace.append_bytes("big/out.bin", b"x")) == "changed_on_disk"
    assert await error_code(workspace.append_bytes("in.txt", b"x")) == "changed_on_disk"
    await workspace.write_text("started.txt", "one\n")
    assert await workspace.append_bytes("started.txt", b"two\n") == 8
    await workspace.read_text("in.txt")
    assert await workspace.append_bytes("in.txt", b"more\n") == 12


async def test_appended_file_must_be_read_before_write(workspace):
    await workspace.append_bytes("x.txt", b"one\n")
    assert await error_code(workspace.write_text("x.txt", "other\n")) == "changed_on_disk"
    await workspace.read_text("x.txt")
    assert (await workspace.write_text("x.txt", "other\n")).operation == "updated"
