import os

import pytest
from tests.workspace.stored_changes import stored_changes

from ostler.core.errors import PathError
from ostler.core.protocols import DirectoryEntry, FileChange
from ostler.processes.placeholders import Placeholders
from ostler.workspace import listing
from ostler.workspace.checkpoints import Checkpoints
from ostler.workspace.local_workspace import LocalWorkspace


@pytest.mark.req("FS-1")
async def test_entries_are_sorted_and_have_kinds(workspace, dirs):
    os.symlink("in.txt", dirs.root / "link")
    os.mkfifo(dirs.root / "pipe")
    (dirs.root / ".hidden").write_text("x")
    os.close(os.open(os.fsencode(dirs.root) + b"/bad\xff", os.O_CREAT))
    assert list(await workspace.entries(".")) == [
        DirectoryEntry(".hidden", "file", 1),
        DirectoryEntry(r"bad\xff", "file"),
        DirectoryEntry("in.txt", "file", 7),
        DirectoryEntry("link", "link"),
        DirectoryEntry("pipe", "other"),
        DirectoryEntry("sub", "directory"),
    ]
    with pytest.raises(PathError) as error:
        await workspace.entries("in.txt")
    assert error.value.fault.code == "not_a_directory"


async def test_directory_with_too_many_entries_raises(workspace, dirs, monkeypatch):
    monkeypatch.setattr(listing, "MAX_ENTRIES", 3)
    for name in "abcd":
        (dirs.root / "sub" / name).touch()
    with pytest.raises(PathError, match="more than 3 entries") as error:
        await workspace.entries("sub")
    assert error.value.fault.code == "too_large"


def create_files(root, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


async def test_iter_files_skips_ignored_files(workspace, dirs):
    create_files(
        dirs.root,
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
    os.symlink(dirs.outside, dirs.root / "out")
    os.symlink("in.txt", dirs.root / "link")
    visible = ["in.txt", "keep.log", "sub/a.log", "sub/build/kept", "sub/file.txt", "z.txt"]
    assert list(workspace.iter_files()) == visible
    assert list(workspace.iter_files(hidden=True)) == sorted([*visible, ".gitignore", ".env", "sub/.gitignore"])
    assert list(workspace.iter_files("sub")) == ["a.log", "build/kept", "file.txt"]
    assert list(workspace.iter_files(limit=2)) == visible[:2]


async def test_iteration_can_be_stopped_early(workspace, dirs):
    before = len(os.listdir("/proc/self/fd"))
    files = workspace.iter_files()
    assert next(files) == "in.txt"
    files.close()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    "rules",
    ["[", "\\", "!", "[z-a]", "**/**/**\n", "*i" * 40 + "z", "\ud800".encode("utf-8", "surrogatepass"), b"\xff\xfe"],
)
async def test_invalid_ignore_rules_are_harmless(workspace, dirs, rules):
    (dirs.root / ".gitignore").write_bytes(rules if isinstance(rules, bytes) else rules.encode())
    assert set(workspace.iter_files()) <= {"in.txt", "sub/file.txt"}


async def test_pipe_named_gitignore_does_not_block(workspace, dirs):
    os.mkfifo(dirs.root / ".gitignore")
    assert list(workspace.iter_files()) == ["in.txt", "sub/file.txt"]


@pytest.mark.req("SH-8")
async def test_placeholders_are_not_listed_and_not_undone(tmp_path):
    root = tmp_path / "w"
    (root / "kept").mkdir(parents=True)
    placeholders = Placeholders([str(root / ".vscode"), str(root / "deep.json"), str(root / ".bash_profile")])
    try:
        workspace = LocalWorkspace(str(root))
        assert [entry.name for entry in await workspace.entries(".")] == ["kept"]
        assert list(workspace.iter_files(hidden=True)) == []
        workspace.close()
        checkpoints = Checkpoints(str(root), str(tmp_path / "store"))
        await checkpoints.begin("t")
        placeholders.close()
        await checkpoints.finish("t")
        assert await stored_changes(checkpoints, "t") == {}
        checkpoints.close()
    finally:
        placeholders.close()


@pytest.mark.req("SH-8", "FS-5")
@pytest.mark.parametrize("name", [".mcp.json", ".bash_profile", ".profile"])
@pytest.mark.parametrize("in_transaction", [False, True])
async def test_write_replaces_placeholder(tmp_path, name, in_transaction):
    placeholders, workspace = Placeholders([str(tmp_path / name)]), LocalWorkspace(str(tmp_path))
    try:
        assert not workspace.resolve(name).exists
        if in_transaction:
            await workspace.apply([FileChange(name, text="mine\n")])
        else:
            assert (await workspace.write_text(name, "mine\n")).operation == "created"
    finally:
        workspace.close()
        placeholders.close()
    assert (tmp_path / name).read_text() == "mine\n"
    assert (tmp_path / name).stat().st_mode & 0o7000 == 0
