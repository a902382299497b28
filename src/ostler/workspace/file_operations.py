"""Creates directories, deletes and renames files, and appends to them."""

import errno
import os
import stat

from ostler.core.errors import PathError
from ostler.workspace import atomic_write
from ostler.workspace.jail import Jail
from ostler.workspace.read_tracker import ReadTracker, ReadVersion, stamp_of
from ostler.workspace.text_save import WriteTarget


def make_directory(jail: Jail, relative: str) -> bool:
    """Create a directory and its parents. Return False if it existed."""
    try:
        os.close(jail.open_directory(relative))
    except FileNotFoundError:
        os.close(jail.open_directory(relative, create=True))
        return True
    return False


def delete(jail: Jail, tracker: ReadTracker, target: WriteTarget) -> None:
    """Delete a file."""
    with jail.open_entry(target.relative) as entry:
        os.unlink(entry.name, dir_fd=entry.directory_fd)
    tracker.forget(target.real_path)


def rename(jail: Jail, tracker: ReadTracker, old: WriteTarget, new: WriteTarget) -> None:
    """Rename a file. Raises `PathError` if the new path exists."""
    with (
        jail.open_entry(old.relative) as source,
        jail.open_entry(new.relative, create=True) as destination,
        atomic_write.directory_lock(destination.directory_fd),
    ):
        if destination.stat() is not None:
            raise PathError("already_exists", new.display_path, "it already exists")
        try:
            os.rename(
                source.name, destination.name, src_dir_fd=source.directory_fd, dst_dir_fd=destination.directory_fd
            )
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            raise PathError("io_error", new.display_path, "the new path is on another file system") from None
    tracker.rename(old.real_path, new.real_path)


def append(jail: Jail, tracker: ReadTracker, target: WriteTarget, data: bytes) -> int:
    """Append bytes to a file and return its new size. Raises if it exists and its current version was not read here."""
    with jail.open_target(target.relative, create=True) as entry:
        found = entry.stat()
        last = tracker.get(target.real_path)
        if found is not None:
            if not stat.S_ISREG(found.st_mode):
                raise PathError("not_a_file", target.display_path, "only a regular file can be appended to")
            if last is None or last.stamp != stamp_of(found):
                raise tracker.stale_error(target.real_path, target.display_path, None, found.st_size)
        found = atomic_write.append(entry, data)
    tracker.record(target.real_path, ReadVersion("", size=found.st_size, stamp=stamp_of(found)))
    return found.st_size
