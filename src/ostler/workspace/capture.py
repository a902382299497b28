"""What a count found changed, read and put on the shelf before anything can change it again."""

import os
import stat
import time
from collections.abc import Callable

from ostler.workspace.census import LARGEST, Fresh, Item, StoppedError, Tree
from ostler.workspace.contents import LARGE, Contents
from ostler.workspace.files import READ, read_up_to
from ostler.workspace.jail import DIRECTORY, Jail

_TICK = 100_000_000  # nanoseconds within which two changes may bear the same time
_COARSE_TICK = 2_000_000_000
_TRIES = 3
_BATCH = 500
PATIENCE = 20.0


class Capture:
    """Reads fresh files into the contents, as far as the room for them and the time for it go."""

    def __init__(self, jail: Jail, contents: Contents, room: int, stopped: Callable[[], bool]) -> None:
        self._jail = jail
        self._contents = contents
        self._limit = contents.used + room
        self._stopped = stopped
        self._deadline = time.monotonic() + PATIENCE
        self._folder = ""
        self._fd = -1

    def take(self, fresh: Fresh, tree: Tree, pause: Callable[[], None]) -> None:
        """Put the item of every fresh file into the tree; `pause` is called now and then, to let others write."""
        if sum(item.size for _, _, item in fresh) > self._limit - self._contents.used:
            fresh = sorted(fresh, key=lambda each: each[2].size)  # when not all fit, as many as possible do
        try:
            for count, (folder, name, seen) in enumerate(fresh, 1):
                if self._stopped():
                    raise StoppedError
                item = self._item(folder, name, seen)
                if item is not None:
                    tree[folder][name] = item
                if count % _BATCH == 0:
                    pause()
        finally:
            self._leave()
            self._contents.flush()

    def _item(self, folder: str, name: str, seen: Item) -> Item | None:
        """What stands there, None when it is gone by now."""
        no_room = seen.size > LARGEST or self._contents.used + seen.size > self._limit
        if no_room or time.monotonic() > self._deadline:
            return seen  # not kept this time; the next count tries again, if it is not too large
        try:
            directory = self._enter(folder)
            if stat.S_ISLNK(seen.mode):
                return _settled(seen, os.fsencode(os.readlink(name, dir_fd=directory)))
            fd = os.open(name, READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        except FileNotFoundError:
            return None
        except OSError:
            return seen
        try:
            return self._read(fd, seen)
        finally:
            os.close(fd)

    def _read(self, fd: int, seen: Item) -> Item | None:
        """The item of an open file; when it is being written meanwhile, of what was read last."""
        for _ in range(_TRIES):
            content = self._keep(fd, seen.size)
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                return None
            before, seen = seen, Item(found.st_ctime_ns, found.st_ino, found.st_size, found.st_mode, b"")
            if before == seen:
                return _settled(seen, content)
        return Item(-1, *seen[1:4], content)

    def _keep(self, fd: int, size: int) -> bytes:
        try:
            if size > LARGE:
                return self._contents.put_file(fd)
            return self._contents.put(os.pread(fd, size + 1, 0) if size else read_up_to(fd, LARGE))
        except OSError:
            return b""

    def _enter(self, folder: str) -> int:
        if self._fd < 0 or folder != self._folder:
            self._leave()
            self._fd = self._jail.open_plain(folder or ".", DIRECTORY)
            self._folder = folder
        return self._fd

    def _leave(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _settled(seen: Item, content: bytes) -> Item:
    """An item with its content; one that may yet change without bearing a later time will be read again."""
    tick = _TICK if seen.changed % 1_000_000_000 else _COARSE_TICK
    early = content and time.time_ns() - seen.changed <= tick
    return Item(-1 if early else seen.changed, seen.inode, seen.size, seen.mode, content)
