import os

import pytest

from ostler.core.errors import PathError


async def refused(attempt) -> str:
    with pytest.raises(PathError) as error:
        await attempt
    return error.value.fault.code


@pytest.mark.req("FS-1")
async def test_directories_are_made_with_their_parents(workspace, yard):
    assert await workspace.make_directory("a/b/c") is True
    assert await workspace.make_directory("a/b/c/") is False
    assert (yard.root / "a/b/c").is_dir()
    assert await refused(workspace.make_directory("in.txt")) == "not_a_directory"
    assert await refused(workspace.make_directory("in.txt/x")) == "not_a_directory"
    assert await refused(workspace.make_directory("none/../x")) == "not_found"


@pytest.mark.req("FS-7")
async def test_what_is_deleted_is_the_name_itself(workspace, yard):
    os.symlink("in.txt", yard.root / "link")
    os.symlink(yard.outside, yard.root / "out")
    await workspace.delete("link")
    await workspace.delete("out")
    assert (yard.root / "in.txt").exists()
    assert (yard.outside / "secret.txt").exists()
    await workspace.delete("in.txt")
    assert not (yard.root / "in.txt").exists()
    (yard.root / "empty").mkdir()
    await workspace.delete("empty/")
    assert not (yard.root / "empty").exists()
    assert await refused(workspace.delete("in.txt")) == "not_found"
    assert await refused(workspace.delete("sub")) == "already_exists"
    assert await refused(workspace.delete(".")) == "not_a_file"
    assert await refused(workspace.delete("sub/..")) == "not_a_file"
    assert (yard.root / "sub/file.txt").exists()


async def test_a_deleted_file_counts_as_unseen(workspace, yard):
    await workspace.read_text("in.txt")
    await workspace.delete("in.txt")
    (yard.root / "in.txt").write_text("inside\n")
    assert await refused(workspace.write_text("in.txt", "x")) == "changed_on_disk"


@pytest.mark.req("FS-7")
async def test_a_new_name_must_be_free(workspace, yard):
    os.symlink("in.txt", yard.root / "link")
    await workspace.rename("in.txt", "deep/er/out.txt")
    assert (yard.root / "deep/er/out.txt").read_text() == "inside\n"
    await workspace.rename("link", "link2")
    assert os.readlink(yard.root / "link2") == "in.txt"
    for taken in ("sub/file.txt", "sub", "link2"):
        assert await refused(workspace.rename("deep/er/out.txt", taken)) == "already_exists"
    assert await refused(workspace.rename("none", "x")) == "not_found"
    assert await refused(workspace.rename(".", "x")) == "not_a_file"
    assert (yard.root / "deep/er/out.txt").exists()


async def test_what_was_read_is_known_under_its_new_name(workspace, yard):
    await workspace.read_text("in.txt")
    await workspace.read_text("sub/file.txt")
    await workspace.rename("in.txt", "moved.txt")
    await workspace.rename("sub", "folder")
    assert (await workspace.write_text("moved.txt", "x\n")).operation == "updated"
    assert (await workspace.write_text("folder/file.txt", "x\n")).operation == "updated"


@pytest.mark.req("TL-2")
async def test_bytes_are_added_only_to_what_this_ground_left_there(workspace, yard):
    assert await workspace.append_bytes("big/out.bin", b"one") == 3
    assert await workspace.append_bytes("big/out.bin", b"\0two") == 7
    assert (yard.root / "big/out.bin").read_bytes() == b"one\0two"
    (yard.root / "big/out.bin").write_bytes(b"by somebody else")
    assert await refused(workspace.append_bytes("big/out.bin", b"x")) == "changed_on_disk"
    assert await refused(workspace.append_bytes("in.txt", b"x")) == "changed_on_disk"
    await workspace.write_text("begun.txt", "one\n")
    assert await workspace.append_bytes("begun.txt", b"two\n") == 8
    await workspace.read_text("in.txt")
    assert await workspace.append_bytes("in.txt", b"more\n") == 12


async def test_a_file_added_to_must_be_read_before_it_is_replaced(workspace):
    await workspace.append_bytes("x.txt", b"one\n")
    assert await refused(workspace.write_text("x.txt", "other\n")) == "changed_on_disk"
    await workspace.read_text("x.txt")
    assert (await workspace.write_text("x.txt", "other\n")).operation == "updated"
