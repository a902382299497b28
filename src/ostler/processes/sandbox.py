"""Open the best sandbox this machine offers, or say why there is none."""

import os
from collections.abc import Sequence
from typing import Any

from ostler.processes import bubblewrap, landlock
from ostler.processes.confinement import Confinement, Layout, SandboxUnavailable, held_in_homes, lay_out
from ostler.processes.git_guard import GitGuard
from ostler.processes.keeping import Keeper, KeeperLost, shared
from ostler.processes.mending import Unlocked
from ostler.processes.other_repositories import OTHERS
from ostler.processes.placeholders import Placeholders, sweep

BACKENDS = ("bubblewrap", "landlock")


class Sandbox:
    """A keeper, and what holds the commands it starts: `name` is a backend, or "none: " and the reason."""

    def __init__(
        self,
        name: str,
        keeper: Keeper | None = None,
        layout: Layout | None = None,
        places: Placeholders | None = None,
    ) -> None:
        self.name = name
        self.layout = layout
        self._keeper = keeper
        self._places = places
        self._locked = {path: _identity(path) for path in _lockable(layout)} if name == "bubblewrap" else {}
        self.guard = GitGuard(layout.writable, self._still_locked) if layout and layout.writable else None

    @property
    def keeper(self) -> Keeper:
        return self._keeper or shared()

    @property
    def alive(self) -> bool:
        return self._keeper is None or self._keeper.alive

    @property
    def intact(self) -> bool:
        """Whether it locks what it locked at first: a file that somebody put in another's place is not locked."""
        return len(self._still_locked()) == len(self._locked)

    def _still_locked(self) -> tuple[str, ...]:
        return tuple(path for path, identity in self._locked.items() if _identity(path) == identity)

    @property
    def statement(self) -> str:
        """What is in force, in a sentence for a person."""
        if self.layout is None:
            return f"commands run without a sandbox ({self.name.removeprefix('none: ')})"
        where = ", ".join((*self.layout.writable, "a temporary folder"))
        network = "with the network" if self.layout.network else "without a network"
        said = f"commands run in {self.name}, {network}, and write only to {where}"
        if self.name == "landlock" and self.layout.writable:
            shut = "; directly in a home they can make nothing new" if self.layout.shut else ""
            return f"{said}{shut}; protected files in there are watched, not locked, and chmod is held nowhere"
        return said

    def unlocked(self) -> Unlocked | None:
        """Protected paths that it does not lock, as they are now; what is of repositories its guard looks after.

        Landlock keeps Ostler's own folder shut, and Ostler itself writes there while commands run.
        """
        if self.layout is None:
            return None
        paths = self.layout.watched
        if self.name == "landlock":
            paths = tuple(path for path in self.layout.protected if path not in self.layout.own)
        return Unlocked(tuple(path for path in paths if not _of_repository(path)), self.layout.writable)

    async def aclose(self) -> None:
        if self._keeper:
            await self._keeper.aclose()
        if self._places:
            self._places.close()


async def open_sandbox(
    confinement: Confinement, temp: str, visible: tuple[str, ...], backends: Sequence[str] = BACKENDS
) -> Sandbox:
    """The first backend that really starts. SandboxUnavailable when one is required and none does."""
    if confinement.mode == "off":
        return Sandbox("none: switched off")
    sweep(held_in_homes())  # what a killed session left in a home troubles its owner
    reasons = []
    for name in backends:
        layout = lay_out(confinement, temp, visible)
        try:
            return await _open(name, layout)
        except KeeperLost as error:
            reasons.append(f"{name}: {error}")
    reason = "; ".join(reasons)
    if confinement.mode == "require":
        hint = "install bubblewrap, or set the sandbox to prefer"
        raise SandboxUnavailable(f"commands must run in a sandbox and none can be had ({reason})", hint=hint)
    return Sandbox(f"none: {reason}")


async def _open(name: str, layout: Layout) -> Sandbox:
    backend = bubblewrap if name == "bubblewrap" else landlock
    if reason := bubblewrap.missing(layout) if name == "bubblewrap" else landlock.missing():
        raise KeeperLost(reason)
    places = Placeholders(layout.absent if name == "bubblewrap" else ())
    try:
        wrapper = bubblewrap.wrapper(layout) if name == "bubblewrap" else []
        try:
            keeper = await _started(wrapper, backend.plan(layout))
        except KeeperLost:
            # What it should hide, such as somebody's socket, may have gone meanwhile.
            if not wrapper or (again := bubblewrap.wrapper(layout)) == wrapper:
                raise
            keeper = await _started(again, backend.plan(layout))
    except BaseException:
        places.close()
        raise
    return Sandbox(name, keeper, layout, places)


async def _started(wrapper: list[str], plan: dict[str, Any]) -> Keeper:
    keeper = Keeper(wrapper, plan)
    try:
        await keeper.ready()
    except BaseException:
        keeper.abandon()
        raise
    return keeper


def _lockable(layout: Layout | None) -> tuple[str, ...]:
    return (*layout.locked, *layout.absent) if layout else ()


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _of_repository(path: str) -> bool:
    return not {".git", *OTHERS}.isdisjoint(path.split("/"))


def room_to_write(environ: dict[str, str], temp: str) -> dict[str, str]:
    """The environment of a confined command: temporary files and caches go where it may write."""
    cache = os.path.join(temp, "cache")
    return {**environ, "TMPDIR": temp, "XDG_CACHE_HOME": cache, "npm_config_cache": os.path.join(cache, "npm")}
