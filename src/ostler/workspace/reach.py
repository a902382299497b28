"""How far a ground reaches: the workspace always, one file a person named, or, when granted, everything for reading."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from ostler.processes.placeholders import stands_in
from ostler.vocabulary.seams import Place
from ostler.workspace.files import READ
from ostler.workspace.jail import Jail
from ostler.workspace.paths import check, escaped, meant, resolved
from ostler.workspace.refusals import outside, refusal


class Reach:
    """The workspace's jail, and beside it what may be read elsewhere. Nothing outside can be opened for writing."""

    def __init__(self, root: str, *, read_anywhere: bool, by_hand: bool = False) -> None:
        self.jail = Jail(root, by_hand=by_hand)
        self._read_anywhere = read_anywhere
        self._granted: set[str] = set()
        self._folders: set[str] = set()
        self._by_hand = by_hand
        self._world: Jail | None = None

    def close(self) -> None:
        self.jail.close()
        if self._world is not None:
            self._world.close()

    def grant(self, path: str) -> None:
        """Let one file outside be read: the one the path leads to now."""
        self._granted.add(resolved(self.meant(path), self.jail.root))

    def meant(self, path: str) -> str:
        """The path that is meant by one as it is given: names that cannot be shown come in our spelling."""
        return meant(check(path), self.jail.root)

    def grant_folder(self, path: str) -> None:
        """Let all that lies below a folder outside be read."""
        self._folders.add(os.path.realpath(path).rstrip("/"))

    def place(self, path: str) -> Place:
        """Where a path leads, with every link followed."""
        absolute, shown, inside = self.locate(path)
        exists = os.path.lexists(absolute) and not stands_in(absolute)
        return Place(shown, escaped(absolute), inside, exists)

    def locate(self, path: str) -> tuple[str, str, bool]:
        """Where a path leads, how that is shown, and whether it is inside."""
        root = self.jail.root
        absolute = resolved(self.meant(path), root)
        inside = root in (absolute, "/") or absolute.startswith(f"{root}/")
        shown = (absolute[len(root) :].lstrip("/") or ".") if inside else absolute
        return absolute, escaped(shown), inside

    def relative(self, path: str) -> str:
        """How a path inside reads from the root; refused for one that cannot be inside."""
        inside = self.jail.within(self.meant(path))
        if inside is None:
            raise outside(path)
        return inside

    @contextmanager
    def reading(self, path: str, flags: int = READ) -> Iterator[int]:
        """An open descriptor of what a path leads to, for reading."""
        with refusals(path):
            fd = self._open(self.meant(path), flags)
        try:
            yield fd
        finally:
            os.close(fd)

    def _open(self, path: str, flags: int) -> int:
        inside = self.jail.within(path)
        if inside is not None:
            try:
                return self.jail.open(inside, flags)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
        return self._open_outside(path, flags)

    def _open_outside(self, path: str, flags: int) -> int:
        real = resolved(path, self.jail.root)
        named = real in self._granted or any(f"{real}/".startswith(f"{folder}/") for folder in self._folders)
        if not named and not self._read_anywhere:
            raise outside(path)
        if self._world is None:
            self._world = Jail("/", by_hand=self._by_hand)
        if named:  # the very file that was granted: a link put in its way since leads nowhere
            return self._world.open_plain(real.lstrip("/") or ".", flags)
        whole = path if path.startswith("/") else f"{self.jail.root}/{path}"
        return self._world.open(whole.lstrip("/"), flags)


@contextmanager
def refusals(path: str) -> Iterator[None]:
    """Errors of the system inside become refusals of the path."""
    try:
        yield
    except OSError as error:
        raise (outside(path) if error.errno == errno.EXDEV else refusal(error, path)) from None
