"""Changes that are no texts: directories made, names taken away or given anew, bytes put at an end."""

import errno
import os
import stat

from ostler.core.errors import PathError
from ostler.workspace import atomic_write
from ostler.workspace.jail import Jail
from ostler.workspace.read_tracker import ReadTracker, ReadVersion, stamp_of
from ostler.workspace.text_save import WriteTarget


def make_directory(jail: Jail, relative: str) -> bool:
    """Make a directory and its parents; False when it was there."""
    try:
        os.close(jail.open_directory(relative))
    except FileNotFoundError:
        os.close(jail.open_directory(relative, create=True))
        return True
    return False


def delete(jail: Jail, tracker: ReadTracker, target: WriteTarget) -> None:
    """Take away a file, a link (not what it leads to) or an empty directory."""
    with jail.open_entry(target.relative) as spot:
        found = spot.stat()
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if stat.S_ISDIR(found.st_mode):
            os.rmdir(spot.name, dir_fd=spot.directory_fd)
        else:
            os.unlink(spot.name, dir_fd=spot.directory_fd)
    tracker.forget(target.real_path)


def rename(jail: Jail, tracker: ReadTracker, old: WriteTarget, new: WriteTarget) -> None:
    """Give a file, a link or a directory another name; never the name of something that exists."""
    with jail.open_entry(old.relative) as source, jail.open_entry(new.relative, create=True) as goal:
        found = source.stat()
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        with atomic_write.directory_lock(goal.directory_fd):
            if goal.stat() is not None:
                raise PathError("already_exists", new.display_path, "something is already there")
            try:
                os.rename(source.name, goal.name, src_dir_fd=source.directory_fd, dst_dir_fd=goal.directory_fd)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                raise PathError("io_error", new.display_path, "it would be on another file system") from None
    tracker.rename(old.real_path, new.real_path)


def append(jail: Jail, tracker: ReadTracker, target: WriteTarget, data: bytes) -> int:
    """Put bytes at the end of a file this ground made or has seen whole; the size it has now."""
    with jail.open_target(target.relative, create=True) as spot:
        found = spot.stat()
        sight = tracker.get(target.real_path)
        if found is not None:
            if not stat.S_ISREG(found.st_mode):
                raise PathError("not_a_file", target.display_path, "only to a file can bytes be added")
            if sight is None or sight.stamp != stamp_of(found):
                raise tracker.stale_error(target.real_path, target.display_path, None, found.st_size)
        now = atomic_write.append(spot, data)
    tracker.record(target.real_path, ReadVersion("", size=now.st_size, stamp=stamp_of(now)))
    return now.st_size
