import os
import subprocess
import sys

import pytest

from ostler.core.commands import CommandRequest, CommandResult
from ostler.core.errors import PathError, ToolError
from ostler.core.protocols import FileChange, Workspace
from ostler.workspace.local_workspace import LocalWorkspace


def as_protocol(workspace: Workspace) -> Workspace:
    return workspace


@pytest.mark.req("FS-1")
async def test_commands_are_passed_to_runner(dirs):
    requests = []

    async def run(request: CommandRequest) -> CommandResult:
        requests.append(request)
        return CommandResult("out", "", 0, 0.1)

    workspace = as_protocol(LocalWorkspace(str(dirs.root), run=run))
    assert (await workspace.run(CommandRequest("ls"))).stdout == "out"
    assert requests == [CommandRequest("ls")]
    with pytest.raises(ToolError, match="commands are not supported"):
        await LocalWorkspace(str(dirs.root)).run(CommandRequest("ls"))


@pytest.mark.req("FS-1")
@pytest.mark.parametrize(
    ("path", "display_path", "inside", "exists"),
    [
        ("in.txt", "in.txt", True, True),
        ("sub/../new.txt", "new.txt", True, False),
        ("{base}/w", ".", True, True),
        ("alias/file.txt", "sub/file.txt", True, True),
        ("out/secret.txt", "{base}/outside/secret.txt", False, True),
        ("../w-evil", "{base}/w-evil", False, True),
        ("{base}/w-evil/x", "{base}/w-evil/x", False, False),
    ],
)
async def test_resolve_follows_symlinks(workspace, dirs, path, display_path, inside, exists):
    os.symlink("sub", dirs.root / "alias")
    os.symlink(dirs.outside, dirs.root / "out")
    resolved = workspace.resolve(path.format(base=dirs.base))
    assert (resolved.display_path, resolved.in_workspace, resolved.exists) == (
        display_path.format(base=dirs.base),
        inside,
        exists,
    )
    assert os.path.isabs(resolved.absolute)


async def test_resolved_path_is_printable(workspace, dirs):
    os.symlink(b"bad\xff", os.fsencode(dirs.root) + b"/odd")
    resolved = workspace.resolve("odd")
    assert (resolved.display_path + resolved.absolute).encode()
    assert resolved.display_path.isprintable()
    assert workspace.resolve("a\nb").display_path == r"a\nb"


@pytest.mark.req("FS-3")
@pytest.mark.parametrize("without_openat2", [False, True])
async def test_read_anywhere_does_not_allow_writing(dirs, without_openat2):
    os.symlink(dirs.outside, dirs.root / "out")
    workspace = LocalWorkspace(str(dirs.root), read_anywhere=True, without_openat2=without_openat2)
    before = dirs.outside_state()
    secret = str(dirs.outside / "secret.txt")
    for path in (secret, "../outside/secret.txt", "out/secret.txt", f"{dirs.root}/../outside/secret.txt"):
        file = await workspace.read_text(path)
        assert (file.path, file.text) == (secret, "SECRET\n")
        with pytest.raises(PathError) as error:
            await workspace.write_text(path, "x")
        assert error.value.fault.code == "outside_workspace"
    assert [entry.name for entry in await workspace.entries("out")] == ["deep", "secret.txt"]
    assert (await workspace.stat(secret)).size == 7
    for attempt in (
        workspace.apply([FileChange(secret, delete=True)]),
        workspace.apply([FileChange("out/secret.txt", delete=True)]),
        workspace.apply([FileChange(secret, new_path="mine")]),
        workspace.apply([FileChange("in.txt", new_path="out/x")]),
        workspace.make_directory("out/x"),
        workspace.append_bytes(secret, b"x"),
    ):
        with pytest.raises(PathError) as error:
            await attempt
        assert error.value.fault.code == "outside_workspace"
    assert dirs.outside_state() == before


@pytest.mark.req("FS-3")
async def test_only_granted_file_can_be_read_outside(workspace, dirs):
    secret = str(dirs.outside / "secret.txt")
    workspace.grant_read(secret)
    assert (await workspace.read_text(secret)).text == "SECRET\n"
    assert (await workspace.read_bytes("../outside/secret.txt", 3)) == b"SEC"
    for path in (str(dirs.outside / "deep/secret.txt"), str(dirs.outside), f"{secret}/../deep/secret.txt"):
        with pytest.raises(PathError):
            await workspace.read_text(path)
    with pytest.raises(PathError):
        await workspace.write_text(secret, "x")


@pytest.mark.req("FS-3")
async def test_grant_does_not_follow_later_symlink(workspace, dirs):
    granted = dirs.outside / "notes.txt"
    granted.write_text("notes\n")
    workspace.grant_read(str(granted))
    granted.unlink()
    os.symlink("deep/secret.txt", granted)
    with pytest.raises(PathError):
        await workspace.read_text(str(granted))


async def test_file_read_completely_as_bytes_can_be_written(workspace):
    assert await workspace.read_bytes("in.txt", 3) == b"ins"
    with pytest.raises(PathError):
        await workspace.write_text("in.txt", "x\n")
    assert await workspace.read_bytes("in.txt", 100) == b"inside\n"
    assert (await workspace.write_text("in.txt", "x\n")).operation == "updated"


async def test_stat_returns_kind_size_and_mode(workspace, dirs):
    os.mkfifo(dirs.root / "pipe")
    os.symlink("in.txt", dirs.root / "link")
    (dirs.root / "in.txt").chmod(0o750)
    found = await workspace.stat("link")
    assert (found.path, found.kind, found.size, found.mode) == ("in.txt", "file", 7, 0o750)
    assert (await workspace.stat("sub")).kind == "directory"
    assert (await workspace.stat("pipe")).kind == "other"
    with pytest.raises(PathError) as error:
        await workspace.stat("none")
    assert error.value.fault.code == "not_found"


async def test_closed_workspace_cannot_open_files(dirs):
    workspace = LocalWorkspace(str(dirs.root))
    workspace.close()
    workspace.close()
    with pytest.raises(PathError):
        await workspace.read_text("in.txt")


def test_import_loads_no_slow_modules():
    script = """
import sys
import ostler.workspace.local_workspace
print([name for name in ("ctypes", "pathspec", "difflib", "dataclasses", "zlib") if name in sys.modules])
"""
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"
