"""Reads and quarantines the files by which a git directory can make git run programs."""

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
_TICK_NS = 100_000_000  # nanoseconds in which two changes of a file can get the same timestamp
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CONFIG_FILES: tuple[tuple[str, "ExecFileKind"], ...] = (
    ("config", "settings"),
    ("config.worktree", "settings"),
    ("commondir", "common"),
)


ExecFileKind = Literal["settings", "common", "hook", "pointer", "other"]


class GitExecFile(msgspec.Struct, frozen=True):
    """A file that can make git run programs.

    `data` is None if it is unreadable, too large or not a regular file. `points_to` is the target of a pointer.
    """

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
    """Read all such files of the found directories, by path. Known files with an unchanged stamp are not read again."""
    files: GitExecFiles = {}
    for folder in found.other_vcs:
        files |= {path: file for path in _other_vcs_paths(folder) if (file := _read_exec_file(path, "other", known))}
    pending = list(found.directories)
    for pointer in found.pointers:
        if file := _read_exec_file(pointer, "pointer", known):
            target = pointer_target(pointer, file.data)
            files[pointer] = msgspec.structs.replace(file, points_to=target)
            pending.append(target)
    seen: set[str] = set()
    while pending:
        directory = pending.pop()
        if directory in seen or not containing_root(directory, roots):
            continue
        seen.add(directory)
        files |= {path: file for path, kind in _exec_paths(directory) if (file := _read_exec_file(path, kind, known))}
        if common := files.get(f"{directory}/commondir"):
            target = pointer_target(f"{directory}/commondir", common.data)
            files[f"{directory}/commondir"] = msgspec.structs.replace(common, points_to=target)
            pending.append(target)
    return files


def pointer_target(path: str, data: bytes | None) -> str:
    """Return the path that a git pointer, a symlink or a file with a path, refers to."""
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
    existing = [path for path in pointers if os.path.islink(path) or os.path.isfile(path)]
    return existing or [f"{folder}/{name}" for name in OTHER_VCS_FILES[kind]]


def _exec_paths(directory: str) -> Iterator[tuple[str, ExecFileKind]]:
    yield from ((f"{directory}/{name}", kind) for name, kind in _CONFIG_FILES)
    hooks = f"{directory}/hooks"
    if os.path.islink(hooks):
        yield hooks, "hook"
    try:
        names = os.listdir(hooks)
    except PermissionError:
        yield hooks, "hook"  # git can still open the hooks in it by name
    except OSError:
        return
    else:
        for name in names:
            if not name.endswith((".sample", QUARANTINE_SUFFIX)) and os.access(f"{hooks}/{name}", os.X_OK):
                yield f"{hooks}/{name}", "hook"


def _read_exec_file(path: str, kind: ExecFileKind, known: Mapping[str, GitExecFile]) -> GitExecFile | None:
    try:
        link_stat = found = os.lstat(path)
    except OSError:
        return None
    is_link = stat.S_ISLNK(link_stat.st_mode)
    if is_link:
        with contextlib.suppress(OSError):
            found = os.stat(path)
    stamp = (link_stat.st_ino, link_stat.st_ctime_ns, found.st_ino, found.st_ctime_ns, found.st_size)
    settled = not is_link and time.time_ns() - found.st_ctime_ns > _TICK_NS
    old = known.get(path)
    if settled and old and old.kind == kind and old.stamp == stamp:
        return old
    data = _read(path)
    trusted = settled or is_link or data is None
    return GitExecFile(kind, stamp if trusted else (), stat.S_IMODE(found.st_mode), data, is_link)


def _read(path: str) -> bytes | None:
    """Read a file like git does, following symlinks but without blocking on pipes."""
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
    """Rename a file so that git ignores it, and write `replacement` in its place if given. Raises `OSError`."""
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
    """Create a symlink. Raises `OSError`."""
    folder, name = os.path.split(path)
    with _open_folder(folder, containing_root(path, roots)) as fd:
        os.symlink(target, name, dir_fd=fd)


def _rename(name: str, fd: int) -> None:
    for number in ("", *(f"-{number}" for number in range(2, 100))):
        new_name = f"{name}{number}{QUARANTINE_SUFFIX}"
        try:
            os.stat(new_name, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            os.rename(name, new_name, src_dir_fd=fd, dst_dir_fd=fd)
            return
    os.unlink(name, dir_fd=fd)  # all quarantine names are taken


def _write(temp_name: str, name: str, fd: int, data: bytes, mode: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temp_name, dir_fd=fd)
    out = os.open(temp_name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=fd)
    try:
        os.write(out, data)
        os.fchmod(out, mode & 0o777)
    finally:
        os.close(out)
    os.rename(temp_name, name, src_dir_fd=fd, dst_dir_fd=fd)


@contextlib.contextmanager
def _open_folder(folder: str, root: str) -> Iterator[int]:
    """Open a folder without following symlinks, so that it cannot be outside the root."""
    fd = os.open(root, _FOLDER_FLAGS)
    try:
        for name in os.path.relpath(folder, root).split("/"):
            child = os.open(name, _FOLDER_FLAGS, dir_fd=fd)
            os.close(fd)
            fd = child
        yield fd
    finally:
        os.close(fd)
