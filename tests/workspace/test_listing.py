import os

import pytest

from ostler.core.errors import PathError
from ostler.core.protocols import DirectoryEntry, FileChange
from ostler.processes.placeholders import Placeholders
from ostler.workspace import listing
from ostler.workspace.checkpoints import Checkpoints
from ostler.workspace.local_workspace import LocalWorkspace


@pytest.mark.req("FS-1")
async def test_a_directory_is_listed_by_name_with_what_each_is(workspace, yard):
    os.symlink("in.txt", yard.root / "link")
    os.mkfifo(yard.root / "pipe")
    (yard.root / ".hidden").write_text("x")
    os.close(os.open(os.fsencode(yard.root) + b"/bad\xff", os.O_CREAT))
    assert list(await workspace.entries(".")) == [
        DirectoryEntry(".hidden", "file", 1),
        DirectoryEntry(r"bad\xff", "file"),
        DirectoryEntry("in.txt", "file", 7),
        DirectoryEntry("link", "link"),
        DirectoryEntry("pipe", "other"),
        DirectoryEntry("sub", "directory"),
    ]
    with pytest.raises(PathError) as refused:
        await workspace.entries("in.txt")
    assert refused.value.fault.code == "not_a_directory"


async def test_a_directory_beyond_all_bounds_is_told_and_not_cut(workspace, yard, monkeypatch):
    monkeypatch.setattr(listing, "MAX_ENTRIES", 3)
    for name in "abcd":
        (yard.root / "sub" / name).touch()
    with pytest.raises(PathError, match="more than 3 entries") as refused:
        await workspace.entries("sub")
    assert refused.value.fault.code == "too_large"


def plant(root, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


async def test_the_files_of_a_tree_without_what_git_ignores(workspace, yard):
    plant(
        yard.root,
        {
            ".gitignore": "*.log\n/build/\nnode_modules\n!keep.log\n",
            ".git/config": "",
            ".env": "",
            "a.log": "",
            "keep.log": "",
            "build/out": "",
            "sub/build/kept": "",
            "sub/.gitignore": "!a.log\nown.txt\n",
            "sub/a.log": "",
            "sub/own.txt": "",
            "sub/node_modules/x/y.js": "",
            "z.txt": "",
        },
    )
    os.symlink(yard.outside, yard.root / "out")
    os.symlink("in.txt", yard.root / "link")
    shown = ["in.txt", "keep.log", "sub/a.log", "sub/build/kept", "sub/file.txt", "z.txt"]
    assert list(workspace.iter_files()) == shown
    assert list(workspace.iter_files(hidden=True)) == sorted([*shown, ".gitignore", ".env", "sub/.gitignore"])
    assert list(workspace.iter_files("sub")) == ["a.log", "build/kept", "file.txt"]
    assert list(workspace.iter_files(limit=2)) == shown[:2]


async def test_a_tree_can_be_left_half_way(workspace, yard):
    before = len(os.listdir("/proc/self/fd"))
    files = workspace.iter_files()
    assert next(files) == "in.txt"
    files.close()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    "rules",
    ["[", "\\", "!", "[z-a]", "**/**/**\n", "*i" * 40 + "z", "\ud800".encode("utf-8", "surrogatepass"), b"\xff\xfe"],
)
async def test_rules_that_make_no_sense_hurt_nobody(workspace, yard, rules):
    (yard.root / ".gitignore").write_bytes(rules if isinstance(rules, bytes) else rules.encode())
    assert set(workspace.iter_files()) <= {"in.txt", "sub/file.txt"}


async def test_rules_that_are_a_pipe_are_not_waited_for(workspace, yard):
    os.mkfifo(yard.root / ".gitignore")
    assert list(workspace.iter_files()) == ["in.txt", "sub/file.txt"]


@pytest.mark.req("SH-8")
async def test_what_keeps_a_place_for_the_sandbox_is_not_shown_and_not_undone(tmp_path):
    root = tmp_path / "w"
    (root / "kept").mkdir(parents=True)
    places = Placeholders([str(root / ".vscode"), str(root / "deep.json"), str(root / ".bash_profile")])
    try:
        workspace = LocalWorkspace(str(root))
        assert [entry.name for entry in await workspace.entries(".")] == ["kept"]
        assert list(workspace.iter_files(hidden=True)) == []
        workspace.close()
        past = Checkpoints(str(root), str(tmp_path / "store"))
        await past.begin("t")
        places.close()
        assert (await past.finish("t")).changed == ()
        past.close()
    finally:
        places.close()


@pytest.mark.req("SH-8", "FS-5")
@pytest.mark.parametrize("name", [".mcp.json", ".bash_profile", ".profile"])
@pytest.mark.parametrize("together", [False, True])
async def test_what_keeps_a_place_gives_way_to_who_may_write_there(tmp_path, name, together):
    places, workspace = Placeholders([str(tmp_path / name)]), LocalWorkspace(str(tmp_path))
    try:
        assert not workspace.resolve(name).exists
        if together:
            await workspace.apply([FileChange(name, text="mine\n")])
        else:
            assert (await workspace.write_text(name, "mine\n")).operation == "created"
    finally:
        workspace.close()
        places.close()
    assert (tmp_path / name).read_text() == "mine\n"
    assert (tmp_path / name).stat().st_mode & 0o7000 == 0
