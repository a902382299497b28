"""stat and mkdir."""

import os

import pytest

from ostler.tools.path_needs import write_needs


@pytest.mark.req("TL-2")
async def test_stat_tells_without_reading(room):
    os.utime(room.file("src/a.py", "12345"), (0, 86_400))
    result = await room.ok("stat", path="src/a.py")
    assert result.for_model == "src/a.py: file, 5 bytes, mode 0644, changed 1970-01-02T00:00:00Z"
    assert (result.data["kind"], result.data["size_bytes"], result.data["is_dir"]) == ("file", 5, False)
    assert (await room.ok("stat", path="src")).data["is_dir"] is True


@pytest.mark.req("TL-2")
async def test_mkdir_makes_the_folders_above_too(room):
    assert (await room.ok("mkdir", path="a/b/c")).data == {"path": "a/b/c", "created": True}
    assert (room.root / "a/b/c").is_dir()
    assert (await room.ok("mkdir", path="a/b/c")).for_model == "a/b/c/ already exists"


@pytest.mark.parametrize(
    ("tool", "path", "sentence"),
    [
        ("stat", "gone", "no such file"),
        ("stat", "../outside", "outside the workspace"),
        ("stat", "link/secret.txt", "outside the workspace"),
        ("mkdir", "a.txt", "not a directory"),
        ("mkdir", "a.txt/b", "not a directory"),
        ("mkdir", "\0", "NUL"),
    ],
)
async def test_bad_places(room, tool, path, sentence):
    room.file("a.txt")
    (room.root / "link").symlink_to(room.root.parent / "outside")
    assert sentence in await room.fails(tool, path=path)


@pytest.mark.req("FS-2")
@pytest.mark.parametrize("path", ["../new", "/tmp/new", "link/new"])
async def test_nothing_is_made_outside(room, path):
    (room.root / "link").symlink_to(room.root.parent / "outside")
    assert (await room.call("mkdir", {"path": path})).status == "denied"
    assert sorted(os.listdir(room.root.parent)) == ["outside", "w"]
    assert os.listdir(room.root.parent / "outside") == ["secret.txt"]


@pytest.mark.req("PM-8", "SH-3")
@pytest.mark.parametrize("path", ["HEAD", "x/HEAD", "bare/config", "bare/commondir", "bare/hooks/pre-push", "y/.git"])
def test_what_git_would_take_for_a_repository_s_own_needs_a_person(room, path):
    room.file("bare/HEAD")
    _, (need,) = write_needs("write", path, room.workspace)
    assert (need.danger, "run programs" in need.reason) == ("confirm", True)


@pytest.mark.req("PM-8", "SH-3")
@pytest.mark.parametrize("path", [".hg/hgrc", "deep/.hg/hgrc", ".bash_aliases", ".xprofile", ".local/bin/ls", ".hgrc"])
def test_what_makes_programs_run_later_needs_a_person(room, path):
    _, (need,) = write_needs("write", path, room.workspace)
    assert need.danger == "confirm"


@pytest.mark.parametrize("path", ["config", "x/config", "hooks/use.ts", "bare/readme", "HEAD.md", "head"])
def test_files_of_the_same_names_elsewhere_need_none(room, path):
    room.file("bare/HEAD")
    _, (need,) = write_needs("write", path, room.workspace)
    assert not need.reason
