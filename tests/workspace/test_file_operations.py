import os

import pytest

from ostler.core.errors import PathError


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


@pytest.mark.req("FS-7")
async def test_delete_removes_symlink_not_target(workspace, dirs):
    os.symlink("in.txt", dirs.root / "link")
    os.symlink(dirs.outside, dirs.root / "out")
    await workspace.delete("link")
    await workspace.delete("out")
    assert (dirs.root / "in.txt").exists()
    assert (dirs.outside / "secret.txt").exists()
    await workspace.delete("in.txt")
    assert not (dirs.root / "in.txt").exists()
    (dirs.root / "empty").mkdir()
    await workspace.delete("empty/")
    assert not (dirs.root / "empty").exists()
    assert await error_code(workspace.delete("in.txt")) == "not_found"
    assert await error_code(workspace.delete("sub")) == "already_exists"
    assert await error_code(workspace.delete(".")) == "not_a_file"
    assert await error_code(workspace.delete("sub/..")) == "not_a_file"
    assert (dirs.root / "sub/file.txt").exists()


async def test_deleted_file_is_treated_as_unread(workspace, dirs):
    await workspace.read_text("in.txt")
    await workspace.delete("in.txt")
    (dirs.root / "in.txt").write_text("inside\n")
    assert await error_code(workspace.write_text("in.txt", "x")) == "changed_on_disk"


@pytest.mark.req("FS-7")
async def test_rename_does_not_overwrite(workspace, dirs):
    os.symlink("in.txt", dirs.root / "link")
    await workspace.rename("in.txt", "deep/er/out.txt")
    assert (dirs.root / "deep/er/out.txt").read_text() == "inside\n"
    await workspace.rename("link", "link2")
    assert os.readlink(dirs.root / "link2") == "in.txt"
    for existing in ("sub/file.txt", "sub", "link2"):
        assert await error_code(workspace.rename("deep/er/out.txt", existing)) == "already_exists"
    assert await error_code(workspace.rename("none", "x")) == "not_found"
    assert await error_code(workspace.rename(".", "x")) == "not_a_file"
    assert (dirs.root / "deep/er/out.txt").exists()


async def test_renamed_file_stays_read(workspace, dirs):
    await workspace.read_text("in.txt")
    await workspace.read_text("sub/file.txt")
    await workspace.rename("in.txt", "moved.txt")
    await workspace.rename("sub", "folder")
    assert (await workspace.write_text("moved.txt", "x\n")).operation == "updated"
    assert (await workspace.write_text("folder/file.txt", "x\n")).operation == "updated"


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
