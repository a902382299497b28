"""Changes that are no texts: directories made, names taken away or given anew, bytes put at an end."""

import errno
import os
import stat

from ostler.vocabulary.errors import PathRefused
from ostler.workspace import writing
from ostler.workspace.jail import Jail
from ostler.workspace.save import Target
from ostler.workspace.seen import Seen, Sight, stamp_of


def make_directory(jail: Jail, relative: str) -> bool:
    """Make a directory and its parents; False when it was there."""
    try:
        os.close(jail.directory(relative))
    except FileNotFoundError:
        os.close(jail.directory(relative, create=True))
        return True
    return False


def delete(jail: Jail, seen: Seen, target: Target) -> None:
    """Take away a file, a link (not what it leads to) or an empty directory."""
    with jail.entry(target.relative) as spot:
        found = spot.stat()
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if stat.S_ISDIR(found.st_mode):
            os.rmdir(spot.name, dir_fd=spot.directory)
        else:
            os.unlink(spot.name, dir_fd=spot.directory)
    seen.forget(target.where)


def rename(jail: Jail, seen: Seen, old: Target, new: Target) -> None:
    """Give a file, a link or a directory another name; never the name of something that exists."""
    with jail.entry(old.relative) as source, jail.entry(new.relative, create=True) as goal:
        found = source.stat()
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        with writing.alone(goal.directory):
            if goal.stat() is not None:
                raise PathRefused("already_exists", new.shown, "something is already there")
            try:
                os.rename(source.name, goal.name, src_dir_fd=source.directory, dst_dir_fd=goal.directory)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                raise PathRefused("io_error", new.shown, "it would be on another file system") from None
    seen.moved(old.where, new.where)


def append(jail: Jail, seen: Seen, target: Target, data: bytes) -> int:
    """Put bytes at the end of a file this ground made or has seen whole; the size it has now."""
    with jail.spot(target.relative, create=True) as spot:
        found = spot.stat()
        sight = seen.get(target.where)
        if found is not None:
            if not stat.S_ISREG(found.st_mode):
                raise PathRefused("not_a_file", target.shown, "only to a file can bytes be added")
            if sight is None or sight.stamp != stamp_of(found):
                raise seen.stale(target.where, target.shown, None, found.st_size)
        now = writing.append(spot, data)
    seen.note(target.where, Sight("", size=now.st_size, stamp=stamp_of(now)))
    return now.st_size
