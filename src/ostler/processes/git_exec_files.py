"""The files by which a git directory makes git run programs: what they hold now, and one of them put aside."""

import contextlib
import os
import stat
import time
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from ostler.processes.git_config import MAX_CONFIG_BYTES
from ostler.processes.git_discovery import GitDirectories
from ostler.processes.other_vcs import OTHER_VCS_FILES, POINTER_FILES

QUARANTINE_SUFFIX = ".set-aside-by-ostler"
_TICK_NS = 100_000_000  # nanoseconds within which two changes of a file may bear the same time
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CONFIG_FILES: tuple[tuple[str, "ExecFileKind"], ...] = (
    ("config", "settings"),
    ("config.worktree", "settings"),
    ("commondir", "common"),
)


ExecFileKind = Literal["settings", "common", "hook", "pointer", "other"]


class GitExecFile(msgspec.Struct, frozen=True):
    """`data` is None for what is no readable file of sensible size; `leads_to` is where a pointer ends."""

    kind: ExecFileKind
    stamp: tuple[int, ...]
    mode: int
    data: bytes | None
    is_link: bool = False
    points_to: str = msgspec.field(name="leads_to", default="")

    def is_same(self, other: "GitExecFile | None") -> bool:
        if other is None or self.points_to != other.points_to or self.mode != other.mode:
            return False
        if self.is_link and self.stamp[:2] != other.stamp[:2]:
            return False
        return self.stamp == other.stamp if self.data is None or other.data is None else self.data == other.data


GitExecFiles = dict[str, GitExecFile]


def read_exec_files(found: GitDirectories, roots: tuple[str, ...], known: Mapping[str, GitExecFile]) -> GitExecFiles:
    """By path, all that was found; what has the stamps of a known piece is not read again."""
    pieces: GitExecFiles = {}
    for folder in found.other_vcs:
        pieces |= {path: piece for path in _other_vcs_paths(folder) if (piece := _read_exec_file(path, "other", known))}
    ahead = list(found.directories)
    for pointer in found.pointers:
        if piece := _read_exec_file(pointer, "pointer", known):
            target = pointer_target(pointer, piece.data)
            pieces[pointer] = msgspec.structs.replace(piece, points_to=target)
            ahead.append(target)
    seen: set[str] = set()
    while ahead:
        directory = ahead.pop()
        if directory in seen or not containing_root(directory, roots):
            continue
        seen.add(directory)
        pieces |= {
            path: piece for path, kind in _exec_paths(directory) if (piece := _read_exec_file(path, kind, known))
        }
        if common := pieces.get(f"{directory}/commondir"):
            target = pointer_target(f"{directory}/commondir", common.data)
            pieces[f"{directory}/commondir"] = msgspec.structs.replace(common, points_to=target)
            ahead.append(target)
    return pieces


def pointer_target(path: str, data: bytes | None) -> str:
    """Where a pointer of git's leads, a link or a file with a path in it."""
    if os.path.islink(path) and os.path.isdir(path):
        return os.path.realpath(path)
    target = os.fsdecode((data or b"").removeprefix(b"gitdir:").strip()).split("\0")[0]
    return os.path.realpath(os.path.join(os.path.dirname(path), target)) if target else ""


def containing_root(path: str, roots: tuple[str, ...]) -> str:
    return next((root for root in roots if path == root or path.startswith(root.rstrip("/") + "/")), "")


def _other_vcs_paths(folder: str) -> list[str]:
    if os.path.islink(folder):
        return [folder]
    kind = os.path.basename(folder)
    pointers = [f"{folder}/{name}" for name in POINTER_FILES.get(kind, ())]
    leading = [path for path in pointers if os.path.islink(path) or os.path.isfile(path)]
    return leading or [f"{folder}/{name}" for name in OTHER_VCS_FILES[kind]]


def _exec_paths(directory: str) -> Iterator[tuple[str, ExecFileKind]]:
    yield from ((f"{directory}/{name}", kind) for name, kind in _CONFIG_FILES)
    hooks = f"{directory}/hooks"
    if os.path.islink(hooks):
        yield hooks, "hook"
    try:
        names = os.listdir(hooks)
    except PermissionError:
        yield hooks, "hook"  # git finds what is in there by name
    except OSError:
        return
    else:
        for name in names:
            if not name.endswith((".sample", QUARANTINE_SUFFIX)) and os.access(f"{hooks}/{name}", os.X_OK):
                yield f"{hooks}/{name}", "hook"


def _read_exec_file(path: str, kind: ExecFileKind, known: Mapping[str, GitExecFile]) -> GitExecFile | None:
    try:
        itself = found = os.lstat(path)
    except OSError:
        return None
    is_link = stat.S_ISLNK(itself.st_mode)
    if is_link:
        with contextlib.suppress(OSError):
            found = os.stat(path)
    stamp = (itself.st_ino, itself.st_ctime_ns, found.st_ino, found.st_ctime_ns, found.st_size)
    settled = not is_link and time.time_ns() - found.st_ctime_ns > _TICK_NS
    old = known.get(path)
    if settled and old and old.kind == kind and old.stamp == stamp:
        return old
    data = _read(path)
    trusted = settled or is_link or data is None
    return GitExecFile(kind, stamp if trusted else (), stat.S_IMODE(found.st_mode), data, is_link)


def _read(path: str) -> bytes | None:
    """A file as git would read it, by way of links too; a pipe is never waited for."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_CONFIG_BYTES:
            return None
        data = os.read(fd, MAX_CONFIG_BYTES + 1)
        return data if len(data) <= MAX_CONFIG_BYTES else None
    except OSError:
        return None
    finally:
        os.close(fd)


def quarantine(path: str, roots: tuple[str, ...], replacement: bytes | None, mode: int) -> None:
    """Give a file a name that means nothing to git, and put another in its place; OSError when that cannot be."""
    folder, name = os.path.split(path)
    with _open_folder(folder, containing_root(path, roots)) as fd:
        try:
            _rename(name, fd)
        except PermissionError:
            os.fchmod(fd, stat.S_IMODE(os.fstat(fd).st_mode) | 0o700)
            _rename(name, fd)
        if replacement is not None:
            _write(name + QUARANTINE_SUFFIX + "-new", name, fd, replacement, mode)


def restore_link(path: str, roots: tuple[str, ...], target: str) -> None:
    """A link where nothing is; OSError when that cannot be."""
    folder, name = os.path.split(path)
    with _open_folder(folder, containing_root(path, roots)) as fd:
        os.symlink(target, name, dir_fd=fd)


def _rename(name: str, fd: int) -> None:
    for number in ("", *(f"-{number}" for number in range(2, 100))):
        aside = f"{name}{number}{QUARANTINE_SUFFIX}"
        try:
            os.stat(aside, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            os.rename(name, aside, src_dir_fd=fd, dst_dir_fd=fd)
            return
    os.unlink(name, dir_fd=fd)  # ninety-eight are kept already


def _write(scratch: str, name: str, fd: int, data: bytes, mode: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(scratch, dir_fd=fd)
    out = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=fd)
    try:
        os.write(out, data)
        os.fchmod(out, mode & 0o777)
    finally:
        os.close(out)
    os.rename(scratch, name, src_dir_fd=fd, dst_dir_fd=fd)


@contextlib.contextmanager
def _open_folder(folder: str, root: str) -> Iterator[int]:
    """A folder reached without any link, so that nobody can lead us out of the root meanwhile."""
    fd = os.open(root, _FOLDER_FLAGS)
    try:
        for name in os.path.relpath(folder, root).split("/"):
            below = os.open(name, _FOLDER_FLAGS, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)
