"""The stat and mkdir tools, and the needs of protected paths."""

import os

import pytest

from ostler.tools.path_needs import write_needs


@pytest.mark.req("TL-2")
async def test_stat(harness):
    os.utime(harness.file("src/a.py", "12345"), (0, 86_400))
    result = await harness.ok("stat", path="src/a.py")
    assert result.for_model == "src/a.py: file, 5 bytes, mode 0644, changed 1970-01-02T00:00:00Z"
    assert (result.data["kind"], result.data["size_bytes"], result.data["is_dir"]) == ("file", 5, False)
    assert (await harness.ok("stat", path="src")).data["is_dir"] is True


@pytest.mark.req("TL-2")
async def test_mkdir_creates_parents(harness):
    assert (await harness.ok("mkdir", path="a/b/c")).data == {"path": "a/b/c", "created": True}
    assert (harness.root / "a/b/c").is_dir()
    assert (await harness.ok("mkdir", path="a/b/c")).for_model == "a/b/c/ already exists"


@pytest.mark.parametrize(
    ("tool", "path", "message"),
    [
        ("stat", "gone", "no such file"),
        ("stat", "../outside", "outside the workspace"),
        ("stat", "link/secret.txt", "outside the workspace"),
        ("mkdir", "a.txt", "not a directory"),
        ("mkdir", "a.txt/b", "not a directory"),
        ("mkdir", "\0", "NUL"),
    ],
)
async def test_invalid_paths(harness, tool, path, message):
    harness.file("a.txt")
    (harness.root / "link").symlink_to(harness.root.parent / "outside")
    assert message in await harness.fails(tool, path=path)


@pytest.mark.req("FS-2")
@pytest.mark.parametrize("path", ["../new", "/tmp/new", "link/new"])
async def test_nothing_is_created_outside(harness, path):
    (harness.root / "link").symlink_to(harness.root.parent / "outside")
    assert (await harness.call("mkdir", {"path": path})).status == "denied"
    assert sorted(os.listdir(harness.root.parent)) == ["outside", "w"]
    assert os.listdir(harness.root.parent / "outside") == ["secret.txt"]


@pytest.mark.req("PM-8", "SH-3")
@pytest.mark.parametrize("path", ["HEAD", "x/HEAD", "bare/config", "bare/commondir", "bare/hooks/pre-push", "y/.git"])
def test_files_of_a_git_repository_need_confirmation(harness, path):
    harness.file("bare/HEAD")
    _, (need,) = write_needs("write", path, harness.workspace)
    assert (need.danger, "run programs" in need.reason) == ("confirm", True)


@pytest.mark.req("PM-8", "SH-3")
@pytest.mark.parametrize("path", [".hg/hgrc", "deep/.hg/hgrc", ".bash_aliases", ".xprofile", ".local/bin/ls", ".hgrc"])
def test_files_that_make_programs_run_need_confirmation(harness, path):
    _, (need,) = write_needs("write", path, harness.workspace)
    assert need.danger == "confirm"


@pytest.mark.parametrize("path", ["config", "x/config", "hooks/use.ts", "bare/readme", "HEAD.md", "head"])
def test_similar_names_need_no_confirmation(harness, path):
    harness.file("bare/HEAD")
    _, (need,) = write_needs("write", path, harness.workspace)
    assert not need.reason
