"""Nothing outside the root is ever opened, by whatever name and whatever moves meanwhile."""

import asyncio
import ctypes
import os
import socket
import threading
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ostler.core.errors import PathError, UsageError
from ostler.workspace import openat2
from ostler.workspace.jail import Jail
from ostler.workspace.local_workspace import LocalWorkspace


def links(yard):
    """One of each way to lead somewhere by a link."""
    os.symlink(yard.outside, yard.root / "out")
    os.symlink(yard.outside / "secret.txt", yard.root / "out.txt")
    os.symlink("../outside/secret.txt", yard.root / "rel.txt")
    os.symlink(yard.outside / "not-there", yard.root / "dangling")
    os.symlink("out", yard.root / "chain")
    os.symlink("../..", yard.root / "sub" / "up")
    os.symlink("loop", yard.root / "loop")
    os.symlink("in.txt", yard.root / "to-in")
    os.symlink(yard.root / "sub", yard.root / "abs-sub")
    os.symlink("sub/../in.txt", yard.root / "around")
    os.symlink("new.txt", yard.root / "dangling-in")


ESCAPES = [
    "../outside/secret.txt",
    "sub/../../outside/secret.txt",
    "out/secret.txt",
    "out.txt",
    "rel.txt",
    "chain/secret.txt",
    "chain/deep/secret.txt",
    "sub/up/outside/secret.txt",
    "abs-sub/../../outside/secret.txt",
    "{base}/outside/secret.txt",
    "{base}/w-evil/secret.txt",
    "{base}/w/../outside/secret.txt",
    "{base}/w/out.txt",
    "../w-evil/secret.txt",
    "/etc/passwd",
    "/proc/self/root/etc/passwd",
    "/dev/fd/0",
]


@pytest.mark.req("FS-2")
@pytest.mark.parametrize("path", ESCAPES)
async def test_no_read_leaves(workspace, yard, path):
    links(yard)
    path = path.format(base=yard.base)
    for attempt in (
        workspace.read_text(path),
        workspace.read_bytes(path, 10),
        workspace.entries(path),
        workspace.stat(path),
    ):
        with pytest.raises(PathError) as refused:
            await attempt
        assert refused.value.fault.code == "outside_workspace"
        assert refused.value.reason
    assert not workspace.resolve(path).in_workspace


@pytest.mark.req("FS-2", "FS-3")
@pytest.mark.parametrize("path", [*ESCAPES, "dangling", "out/new.txt", "out/new/deep.txt", "chain/new/x", "../new.txt"])
async def test_no_write_leaves(workspace, yard, path):
    links(yard)
    before = yard.outside_state()
    path = path.format(base=yard.base)
    for attempt in (
        workspace.write_text(path, "x"),
        workspace.append_bytes(path, b"x"),
        workspace.rename("in.txt", f"{path}/x"),
    ):
        with pytest.raises(PathError) as refused:
            await attempt
        assert refused.value.fault.code == "outside_workspace"
    assert yard.outside_state() == before
    assert (yard.root / "in.txt").exists()
    assert not (yard.base / "new.txt").exists()


@pytest.mark.req("FS-2")
async def test_a_directory_is_not_made_outside(workspace, yard):
    links(yard)
    before = yard.outside_state()
    for path in ("out/x", "chain/x/y", "../x", "dangling/x"):
        with pytest.raises(PathError):
            await workspace.make_directory(path)
    assert yard.outside_state() == before
    assert sorted(os.listdir(yard.base)) == ["outside", "w", "w-evil"]


@pytest.mark.req("FS-1", "FS-2")
@pytest.mark.parametrize(
    "path",
    [
        "in.txt",
        "./in.txt",
        "sub/../in.txt",
        "{base}/w/in.txt",
        "to-in",
        "around",
        "abs-sub/../in.txt",
        "{base}/w//in.txt",
    ],
)
async def test_what_stays_inside_is_read_by_any_name(workspace, yard, path):
    links(yard)
    file = await workspace.read_text(path.format(base=yard.base))
    assert (file.path, file.text) == ("in.txt", "inside\n")


async def test_a_link_in_a_circle_ends(workspace, yard):
    links(yard)
    with pytest.raises(PathError):
        await workspace.read_text("loop")
    with pytest.raises(PathError):
        await workspace.write_text("loop", "x")


async def test_a_dangling_link_that_stays_inside_is_written_through(workspace, yard):
    links(yard)
    written = await workspace.write_text("dangling-in", "x\n")
    assert (written.path, written.operation) == ("new.txt", "created")
    assert (yard.root / "dangling-in").is_symlink()


@pytest.mark.req("FS-1")
async def test_a_root_that_is_reached_through_a_link_has_both_names(yard):
    os.symlink(yard.root, yard.base / "alias")
    workspace = LocalWorkspace(str(yard.base / "alias"))
    assert workspace.root == str(yard.root)
    assert (await workspace.read_text(f"{yard.base}/alias/in.txt")).path == "in.txt"
    assert (await workspace.read_text(f"{yard.root}/in.txt")).path == "in.txt"


@pytest.mark.parametrize("root", ["missing", "in.txt", "a\0b"])
def test_a_root_must_be_a_directory(yard, root):
    with pytest.raises(UsageError, match="not a directory"):
        LocalWorkspace(str(yard.root / root))


@pytest.mark.req("FS-2")
@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "directory"])
async def test_only_files_are_read_and_written(workspace, yard, kind, monkeypatch):
    monkeypatch.chdir(yard.root)
    if kind == "fifo":
        os.mkfifo("thing")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("thing")
    elif kind == "directory":
        os.mkdir("thing")
    else:
        if os.geteuid() != 0:
            pytest.skip("making a device needs root")
        os.mknod("thing", 0o20666, os.makedev(1, 5))
    for attempt in (
        workspace.read_text("thing"),
        workspace.read_bytes("thing", 5),
        workspace.write_text("thing", "x"),
        workspace.append_bytes("thing", b"x"),
    ):
        with pytest.raises(PathError) as refused:
            await asyncio.wait_for(attempt, 60)
        assert refused.value.fault.code == "not_a_file"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("none", "not_found"),
        ("none/x", "not_found"),
        ("in.txt/x", "not_a_directory"),
        ("in.txt/", "not_a_directory"),
        ("sub", "not_a_file"),
        (".", "not_a_file"),
    ],
)
async def test_other_failures_have_their_own_codes(workspace, path, code):
    with pytest.raises(PathError) as refused:
        await workspace.read_text(path)
    assert refused.value.fault.code == code


@pytest.mark.parametrize("path", [".", "sub", "sub/", "sub/..", "./"])
async def test_a_directory_is_not_written(workspace, path):
    with pytest.raises(PathError) as refused:
        await workspace.write_text(path, "x")
    assert refused.value.fault.code == "not_a_file"


@pytest.mark.req("FS-2")
@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("path", ["/proc/self/root/etc/passwd", "/proc/self/cwd", "/dev/fd/0", "/proc/self/fd/0"])
async def test_links_of_the_kernel_lead_nowhere_even_when_all_may_be_read(yard, by_hand, path):
    workspace = LocalWorkspace(str(yard.root), read_anywhere=True, without_openat2=by_hand)
    with pytest.raises(PathError):
        await workspace.read_bytes(path, 10)


@pytest.mark.parametrize("by_hand", [False, True])
async def test_a_deep_path_is_made_without_depth_of_calls(yard, by_hand):
    workspace = LocalWorkspace(str(yard.root), without_openat2=by_hand)
    path = "d/" * 1100 + "f"
    assert (await workspace.write_text(path, "x")).operation == "created"
    assert (await workspace.read_text(path)).text == "x"
    fd = os.open(yard.root, os.O_RDONLY)
    for _ in range(1100):  # too deep a tree for the temporary directory's own clean-up
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.unlink("f", dir_fd=fd)
    for _ in range(1100):
        above = os.open("..", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        os.rmdir("d", dir_fd=above)
        fd = above
    os.close(fd)


def test_without_the_system_call_the_walk_takes_over(monkeypatch, yard):
    monkeypatch.setattr(openat2, "_SYSCALL_NUMBER", 10_000)
    openat2.load_openat2.cache_clear()
    try:
        assert openat2.load_openat2() is None
        jail = Jail(str(yard.root))
        fd = jail.open("sub/file.txt", os.O_RDONLY)
        assert os.read(fd, 10) == b"inside\n"
        os.close(fd)
    finally:
        openat2.load_openat2.cache_clear()


def test_no_descriptor_is_left_open(yard):
    links(yard)
    jails = [Jail(str(yard.root), without_openat2=by_hand) for by_hand in (False, True)]
    before = len(os.listdir("/proc/self/fd"))
    for jail in jails:
        for path in [*ESCAPES, "loop", "to-in", "around", "none/x", "sub/"]:
            path = path.format(base=yard.base).lstrip("/")
            with suppress(OSError):
                os.close(jail.open(path, os.O_RDONLY))
            with suppress(OSError), jail.open_target(path):
                pass
    assert len(os.listdir("/proc/self/fd")) == before


NAMES = st.sampled_from(
    ["..", ".", "", "out", "out.txt", "rel.txt", "chain", "sub", "up", "in.txt", "secret.txt", "outside", "w", "w-evil"]  # noqa: RUF005
    + ["abs-sub", "dangling", "loop", "deep", "new", "~", "\0", "\ud800", "...", " ", "con", "a\nb", "x" * 300]
)
PATHS = st.builds(
    lambda lead, parts: lead + "/".join(parts),
    st.sampled_from(["", "/", "./", "{base}/", "//"]),
    st.lists(NAMES, max_size=7),
)


@pytest.mark.req("FS-2", "FS-3")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=PATHS | st.text(max_size=20))
async def test_no_path_however_nasty_reads_or_writes_outside(workspace, yard, path):
    if not (yard.root / "out").is_symlink():
        links(yard)
    before = yard.outside_state()
    path = path.replace("{base}", str(yard.base))
    for attempt in (workspace.read_text(path), workspace.write_text(path, "WRITTEN"), workspace.make_directory(path)):
        try:
            result = await attempt
        except PathError as refused:
            assert refused.fault.message.encode()
        else:
            assert "SECRET" not in getattr(result, "text", "")
    assert yard.outside_state() == before
    assert sorted(os.listdir(yard.base)) == ["outside", "w", "w-evil"]


def exchange(one, other) -> bool:
    """Two names change places in one step."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "renameat2"):
        return False
    return libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2) == 0


@pytest.mark.req("FS-2")
async def test_a_link_swapped_while_files_are_used_opens_no_way_out(workspace, yard):
    """Somebody turns a directory into a link to the outside and back, as fast as they can."""
    before = yard.outside_state()
    (yard.root / "swap").mkdir()
    (yard.root / "swap" / "secret.txt").write_text("inside\n")
    os.symlink(yard.outside, yard.root / "evil-link")
    stop = threading.Event()
    if not exchange(yard.root / "swap", yard.root / "evil-link"):
        pytest.skip("no way to exchange two names at once here")

    def swap() -> None:
        while not stop.is_set():
            exchange(yard.root / "swap", yard.root / "evil-link")

    thread = threading.Thread(target=swap)
    thread.start()
    done = {"read": 0, "refused": 0}
    try:
        for round_ in range(300):
            try:
                file = await workspace.read_text("swap/secret.txt")
                assert file.text != "SECRET\n"
                done["read"] += 1
            except PathError:
                done["refused"] += 1
            if round_ % 10 == 0:
                try:
                    await workspace.write_text(f"swap/new-{round_}.txt", "x")
                    await workspace.write_text("swap/secret.txt", f"{round_}\n")
                except PathError:
                    done["refused"] += 1
    finally:
        stop.set()
        thread.join()
    assert yard.outside_state() == before
    assert done["read"] > 0
    assert done["refused"] > 0
