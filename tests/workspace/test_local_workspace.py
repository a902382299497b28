import os
import subprocess
import sys

import pytest

from ostler.core.errors import PathError, ToolError
from ostler.core.protocols import CommandRequest, CommandResult, Workspace
from ostler.workspace.local_workspace import LocalWorkspace


def stands_for(workspace: Workspace) -> Workspace:
    return workspace


@pytest.mark.req("FS-1")
async def test_commands_go_to_whoever_runs_them(yard):
    asked = []

    async def run(running: CommandRequest) -> CommandResult:
        asked.append(running)
        return CommandResult("out", "", 0, 0.1)

    workspace = stands_for(LocalWorkspace(str(yard.root), run=run))
    assert (await workspace.run(CommandRequest("ls"))).stdout == "out"
    assert asked == [CommandRequest("ls")]
    with pytest.raises(ToolError, match="commands are not supported"):
        await LocalWorkspace(str(yard.root)).run(CommandRequest("ls"))


@pytest.mark.req("FS-1")
@pytest.mark.parametrize(
    ("path", "shown", "inside", "exists"),
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
async def test_a_place_is_where_a_path_leads_and_not_what_it_says(workspace, yard, path, shown, inside, exists):
    os.symlink("sub", yard.root / "alias")
    os.symlink(yard.outside, yard.root / "out")
    place = workspace.resolve(path.format(base=yard.base))
    assert (place.display_path, place.in_workspace, place.exists) == (shown.format(base=yard.base), inside, exists)
    assert os.path.isabs(place.absolute)


async def test_a_place_can_always_be_shown_and_sent(workspace, yard):
    os.symlink(b"bad\xff", os.fsencode(yard.root) + b"/odd")
    place = workspace.resolve("odd")
    assert (place.display_path + place.absolute).encode()
    assert place.display_path.isprintable()
    assert workspace.resolve("a\nb").display_path == r"a\nb"


@pytest.mark.req("FS-3")
@pytest.mark.parametrize("by_hand", [False, True])
async def test_reading_anywhere_is_for_reading_only(yard, by_hand):
    os.symlink(yard.outside, yard.root / "out")
    workspace = LocalWorkspace(str(yard.root), read_anywhere=True, without_openat2=by_hand)
    before = yard.outside_state()
    secret = str(yard.outside / "secret.txt")
    for path in (secret, "../outside/secret.txt", "out/secret.txt", f"{yard.root}/../outside/secret.txt"):
        file = await workspace.read_text(path)
        assert (file.path, file.text) == (secret, "SECRET\n")
        with pytest.raises(PathError) as refused:
            await workspace.write_text(path, "x")
        assert refused.value.fault.code == "outside_workspace"
    assert [entry.name for entry in await workspace.entries("out")] == ["deep", "secret.txt"]
    assert (await workspace.stat(secret)).size == 7
    for attempt in (
        workspace.delete(secret),
        workspace.delete("out/secret.txt"),
        workspace.rename(secret, "mine"),
        workspace.rename("in.txt", "out/x"),
        workspace.make_directory("out/x"),
        workspace.append_bytes(secret, b"x"),
    ):
        with pytest.raises(PathError) as refused:
            await attempt
        assert refused.value.fault.code == "outside_workspace"
    assert yard.outside_state() == before


@pytest.mark.req("FS-3")
async def test_a_file_a_person_named_can_be_read_and_no_other(workspace, yard):
    secret = str(yard.outside / "secret.txt")
    workspace.grant_read(secret)
    assert (await workspace.read_text(secret)).text == "SECRET\n"
    assert (await workspace.read_bytes("../outside/secret.txt", 3)) == b"SEC"
    for path in (str(yard.outside / "deep/secret.txt"), str(yard.outside), f"{secret}/../deep/secret.txt"):
        with pytest.raises(PathError):
            await workspace.read_text(path)
    with pytest.raises(PathError):
        await workspace.write_text(secret, "x")


@pytest.mark.req("FS-3")
async def test_a_grant_does_not_follow_a_link_put_in_its_way(workspace, yard):
    wanted = yard.outside / "notes.txt"
    wanted.write_text("notes\n")
    workspace.grant_read(str(wanted))
    wanted.unlink()
    os.symlink("deep/secret.txt", wanted)
    with pytest.raises(PathError):
        await workspace.read_text(str(wanted))


async def test_a_file_seen_whole_as_bytes_may_be_written(workspace):
    assert await workspace.read_bytes("in.txt", 3) == b"ins"
    with pytest.raises(PathError):
        await workspace.write_text("in.txt", "x\n")
    assert await workspace.read_bytes("in.txt", 100) == b"inside\n"
    assert (await workspace.write_text("in.txt", "x\n")).operation == "updated"


async def test_stat_tells_kind_size_and_mode_without_opening(workspace, yard):
    os.mkfifo(yard.root / "pipe")
    os.symlink("in.txt", yard.root / "link")
    (yard.root / "in.txt").chmod(0o750)
    found = await workspace.stat("link")
    assert (found.path, found.kind, found.size, found.mode) == ("in.txt", "file", 7, 0o750)
    assert (await workspace.stat("sub")).kind == "directory"
    assert (await workspace.stat("pipe")).kind == "other"
    with pytest.raises(PathError) as refused:
        await workspace.stat("none")
    assert refused.value.fault.code == "not_found"


async def test_nothing_can_be_opened_once_it_is_closed(yard):
    workspace = LocalWorkspace(str(yard.root))
    workspace.close()
    workspace.close()
    with pytest.raises(PathError):
        await workspace.read_text("in.txt")


def test_importing_the_ground_loads_nothing_heavy():
    script = """
import sys
import ostler.workspace.local_workspace
print([name for name in ("ctypes", "pathspec", "difflib", "dataclasses", "zlib") if name in sys.modules])
"""
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"
