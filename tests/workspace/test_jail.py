"""Nothing outside the root can be opened, by any name and during concurrent changes."""

import asyncio
import ctypes
import os
import resource
import socket
import subprocess
import threading
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.core.errors import PathError, UsageError
from ostler.core.protocols import FileChange
from ostler.workspace import openat2
from ostler.workspace.jail import Jail
from ostler.workspace.local_workspace import LocalWorkspace


def create_links(dirs):
    """Create every kind of symlink."""
    os.symlink(dirs.outside, dirs.root / "out")
    os.symlink(dirs.outside / "secret.txt", dirs.root / "out.txt")
    os.symlink("../outside/secret.txt", dirs.root / "rel.txt")
    os.symlink(dirs.outside / "not-there", dirs.root / "dangling")
    os.symlink("out", dirs.root / "chain")
    os.symlink("../..", dirs.root / "sub" / "up")
    os.symlink("loop", dirs.root / "loop")
    os.symlink("in.txt", dirs.root / "to-in")
    os.symlink(dirs.root / "sub", dirs.root / "abs-sub")
    os.symlink("sub/../in.txt", dirs.root / "around")
    os.symlink("new.txt", dirs.root / "dangling-in")


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
async def test_reads_stay_inside(workspace, dirs, path):
    create_links(dirs)
    path = path.format(base=dirs.base)
    for attempt in (
        workspace.read_text(path),
        workspace.read_bytes(path, 10),
        workspace.entries(path),
        workspace.stat(path),
    ):
        with pytest.raises(PathError) as error:
            await attempt
        assert error.value.fault.code == "outside_workspace"
        assert error.value.reason
    assert not workspace.resolve(path).in_workspace


@pytest.mark.req("FS-2", "FS-3")
@pytest.mark.parametrize("path", [*ESCAPES, "dangling", "out/new.txt", "out/new/deep.txt", "chain/new/x", "../new.txt"])
async def test_writes_stay_inside(workspace, dirs, path):
    create_links(dirs)
    before = dirs.outside_state()
    path = path.format(base=dirs.base)
    for attempt in (
        workspace.write_text(path, "x"),
        workspace.append_bytes(path, b"x"),
        workspace.apply([FileChange("in.txt", new_path=f"{path}/x")]),
    ):
        with pytest.raises(PathError) as error:
            await attempt
        assert error.value.fault.code == "outside_workspace"
    assert dirs.outside_state() == before
    assert (dirs.root / "in.txt").exists()
    assert not (dirs.base / "new.txt").exists()


@pytest.mark.req("FS-2")
async def test_directories_are_not_created_outside(workspace, dirs):
    create_links(dirs)
    before = dirs.outside_state()
    for path in ("out/x", "chain/x/y", "../x", "dangling/x"):
        with pytest.raises(PathError):
            await workspace.make_directory(path)
    assert dirs.outside_state() == before
    assert sorted(os.listdir(dirs.base)) == ["outside", "w", "w-evil"]


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
async def test_file_inside_can_be_read_by_any_name(workspace, dirs, path):
    create_links(dirs)
    file = await workspace.read_text(path.format(base=dirs.base))
    assert (file.path, file.text) == ("in.txt", "inside\n")


async def test_symlink_loop_is_rejected(workspace, dirs):
    create_links(dirs)
    with pytest.raises(PathError):
        await workspace.read_text("loop")
    with pytest.raises(PathError):
        await workspace.write_text("loop", "x")


async def test_write_follows_dangling_symlink_inside(workspace, dirs):
    create_links(dirs)
    written = await workspace.write_text("dangling-in", "x\n")
    assert (written.path, written.operation) == ("new.txt", "created")
    assert (dirs.root / "dangling-in").is_symlink()


@pytest.mark.req("FS-1")
async def test_root_behind_symlink_has_both_names(dirs):
    os.symlink(dirs.root, dirs.base / "alias")
    workspace = LocalWorkspace(str(dirs.base / "alias"))
    assert workspace.root == str(dirs.root)
    assert (await workspace.read_text(f"{dirs.base}/alias/in.txt")).path == "in.txt"
    assert (await workspace.read_text(f"{dirs.root}/in.txt")).path == "in.txt"


@pytest.mark.parametrize("root", ["missing", "in.txt", "a\0b"])
def test_root_must_be_a_directory(dirs, root):
    with pytest.raises(UsageError, match="not a directory"):
        LocalWorkspace(str(dirs.root / root))


@pytest.mark.req("FS-2")
@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "directory"])
async def test_only_regular_files_are_read_and_written(workspace, dirs, kind, monkeypatch):
    monkeypatch.chdir(dirs.root)
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
        with pytest.raises(PathError) as error:
            await asyncio.wait_for(attempt, 60)
        assert error.value.fault.code == "not_a_file"


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
async def test_other_errors_have_their_own_codes(workspace, path, code):
    with pytest.raises(PathError) as error:
        await workspace.read_text(path)
    assert error.value.fault.code == code


@pytest.mark.parametrize("path", [".", "sub", "sub/", "sub/..", "./"])
async def test_directory_cannot_be_written(workspace, path):
    with pytest.raises(PathError) as error:
        await workspace.write_text(path, "x")
    assert error.value.fault.code == "not_a_file"


@pytest.mark.req("FS-2")
@pytest.mark.parametrize("without_openat2", [False, True])
@pytest.mark.parametrize("path", ["/proc/self/root/etc/passwd", "/proc/self/cwd", "/dev/fd/0", "/proc/self/fd/0"])
async def test_proc_symlinks_are_rejected_even_with_read_anywhere(dirs, without_openat2, path):
    workspace = LocalWorkspace(str(dirs.root), read_anywhere=True, without_openat2=without_openat2)
    with pytest.raises(PathError):
        await workspace.read_bytes(path, 10)


@pytest.fixture
def many_files():
    """Raises the limit of open files: the walk keeps every folder of a path open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize("without_openat2", [False, True])
async def test_deep_path_needs_no_recursion(dirs, without_openat2):
    workspace = LocalWorkspace(str(dirs.root), without_openat2=without_openat2)
    path = "d/" * 1100 + "f"
    try:
        assert (await workspace.write_text(path, "x")).operation == "created"
        assert (await workspace.read_text(path)).text == "x"
    finally:
        subprocess.run(["rm", "-rf", str(dirs.root / "d")], check=True)  # pytest cannot remove such a deep tree


def test_walk_is_used_without_openat2(monkeypatch, dirs):
    monkeypatch.setattr(openat2, "_SYSCALL_NUMBER", 10_000)
    openat2.load_openat2.cache_clear()
    try:
        assert openat2.load_openat2() is None
        jail = Jail(str(dirs.root))
        fd = jail.open("sub/file.txt", os.O_RDONLY)
        assert os.read(fd, 10) == b"inside\n"
        os.close(fd)
    finally:
        openat2.load_openat2.cache_clear()


def test_no_descriptors_leak(dirs):
    create_links(dirs)
    jails = [Jail(str(dirs.root), without_openat2=without_openat2) for without_openat2 in (False, True)]
    before = len(os.listdir("/proc/self/fd"))
    for jail in jails:
        for path in [*ESCAPES, "loop", "to-in", "around", "none/x", "sub/"]:
            path = path.format(base=dirs.base).lstrip("/")
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
@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=PATHS | st.text(max_size=20))
async def test_random_paths_stay_inside(workspace, dirs, path):
    if not (dirs.root / "out").is_symlink():
        create_links(dirs)
    before = dirs.outside_state()
    path = path.replace("{base}", str(dirs.base))
    for attempt in (workspace.read_text(path), workspace.write_text(path, "WRITTEN"), workspace.make_directory(path)):
        try:
            result = await attempt
        except PathError as error:
            assert error.fault.message.encode()
        else:
            assert "SECRET" not in getattr(result, "text", "")
    assert dirs.outside_state() == before
    assert sorted(os.listdir(dirs.base)) == ["outside", "w", "w-evil"]


def swap_paths(path, other) -> bool:
    """Swap two paths atomically."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "renameat2"):
        return False
    return libc.renameat2(-100, os.fsencode(path), -100, os.fsencode(other), 2) == 0


@pytest.mark.req("FS-2")
@pytest.mark.invariant("W3")
async def test_concurrently_swapped_symlink_does_not_lead_outside(workspace, dirs):
    """A thread keeps swapping a directory with a symlink to the outside."""
    before = dirs.outside_state()
    (dirs.root / "swap").mkdir()
    (dirs.root / "swap" / "secret.txt").write_text("inside\n")
    os.symlink(dirs.outside, dirs.root / "evil-link")
    stop = threading.Event()
    if not swap_paths(dirs.root / "swap", dirs.root / "evil-link"):
        pytest.skip("renameat2 is not supported")

    def swap() -> None:
        while not stop.is_set():
            swap_paths(dirs.root / "swap", dirs.root / "evil-link")

    thread = threading.Thread(target=swap)
    thread.start()
    counts = {"read": 0, "rejected": 0}
    try:
        for round_ in range(300):
            try:
                file = await workspace.read_text("swap/secret.txt")
                assert file.text != "SECRET\n"
                counts["read"] += 1
            except PathError:
                counts["rejected"] += 1
            if round_ % 10 == 0:
                try:
                    await workspace.write_text(f"swap/new-{round_}.txt", "x")
                    await workspace.write_text("swap/secret.txt", f"{round_}\n")
                except PathError:
                    counts["rejected"] += 1
    finally:
        stop.set()
        thread.join()
    assert dirs.outside_state() == before
    assert counts["read"] > 0
    assert counts["rejected"] > 0
