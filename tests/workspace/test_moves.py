import os

import pytest

from ostler.vocabulary.errors import PathRefused


async def refused(attempt) -> str:
    with pytest.raises(PathRefused) as error:
        await attempt
    return error.value.fault.code


@pytest.mark.req("FS-1")
async def test_directories_are_made_with_their_parents(ground, yard):
    assert await ground.make_directory("a/b/c") is True
    assert await ground.make_directory("a/b/c/") is False
    assert (yard.root / "a/b/c").is_dir()
    assert await refused(ground.make_directory("in.txt")) == "not_a_directory"
    assert await refused(ground.make_directory("in.txt/x")) == "not_a_directory"
    assert await refused(ground.make_directory("none/../x")) == "not_found"


@pytest.mark.req("FS-7")
async def test_what_is_deleted_is_the_name_itself(ground, yard):
    os.symlink("in.txt", yard.root / "link")
    os.symlink(yard.outside, yard.root / "out")
    await ground.delete("link")
    await ground.delete("out")
    assert (yard.root / "in.txt").exists()
    assert (yard.outside / "secret.txt").exists()
    await ground.delete("in.txt")
    assert not (yard.root / "in.txt").exists()
    (yard.root / "empty").mkdir()
    await ground.delete("empty/")
    assert not (yard.root / "empty").exists()
    assert await refused(ground.delete("in.txt")) == "not_found"
    assert await refused(ground.delete("sub")) == "already_exists"
    assert await refused(ground.delete(".")) == "not_a_file"
    assert await refused(ground.delete("sub/..")) == "not_a_file"
    assert (yard.root / "sub/file.txt").exists()


async def test_a_deleted_file_counts_as_unseen(ground, yard):
    await ground.read_text("in.txt")
    await ground.delete("in.txt")
    (yard.root / "in.txt").write_text("inside\n")
    assert await refused(ground.write_text("in.txt", "x")) == "changed_on_disk"


@pytest.mark.req("FS-7")
async def test_a_new_name_must_be_free(ground, yard):
    os.symlink("in.txt", yard.root / "link")
    await ground.rename("in.txt", "deep/er/out.txt")
    assert (yard.root / "deep/er/out.txt").read_text() == "inside\n"
    await ground.rename("link", "link2")
    assert os.readlink(yard.root / "link2") == "in.txt"
    for taken in ("sub/file.txt", "sub", "link2"):
        assert await refused(ground.rename("deep/er/out.txt", taken)) == "already_exists"
    assert await refused(ground.rename("none", "x")) == "not_found"
    assert await refused(ground.rename(".", "x")) == "not_a_file"
    assert (yard.root / "deep/er/out.txt").exists()


async def test_what_was_read_is_known_under_its_new_name(ground, yard):
    await ground.read_text("in.txt")
    await ground.read_text("sub/file.txt")
    await ground.rename("in.txt", "moved.txt")
    await ground.rename("sub", "folder")
    assert (await ground.write_text("moved.txt", "x\n")).operation == "updated"
    assert (await ground.write_text("folder/file.txt", "x\n")).operation == "updated"


@pytest.mark.req("TL-2")
async def test_bytes_are_added_only_to_what_this_ground_left_there(ground, yard):
    assert await ground.append_bytes("big/out.bin", b"one") == 3
    assert await ground.append_bytes("big/out.bin", b"\0two") == 7
    assert (yard.root / "big/out.bin").read_bytes() == b"one\0two"
    (yard.root / "big/out.bin").write_bytes(b"by somebody else")
    assert await refused(ground.append_bytes("big/out.bin", b"x")) == "changed_on_disk"
    assert await refused(ground.append_bytes("in.txt", b"x")) == "changed_on_disk"
    await ground.write_text("begun.txt", "one\n")
    assert await ground.append_bytes("begun.txt", b"two\n") == 8
    await ground.read_text("in.txt")
    assert await ground.append_bytes("in.txt", b"more\n") == 12


async def test_a_file_added_to_must_be_read_before_it_is_replaced(ground):
    await ground.append_bytes("x.txt", b"one\n")
    assert await refused(ground.write_text("x.txt", "other\n")) == "changed_on_disk"
    await ground.read_text("x.txt")
    assert (await ground.write_text("x.txt", "other\n")).operation == "updated"
