"""Open the best sandbox this machine offers, or say why there is none."""

import os
from collections.abc import Sequence

from ostler.processes import bubblewrap, landlock
from ostler.processes.confinement import Confinement, Layout, SandboxUnavailable, lay_out
from ostler.processes.git_guard import GitGuard
from ostler.processes.keeping import Keeper, KeeperLost, shared
from ostler.processes.watch import Placeholders

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
        locked = (*layout.locked, *layout.absent) if layout and name != "landlock" else ()
        self.guard = GitGuard(layout.writable, locked) if layout and layout.writable else None

    @property
    def keeper(self) -> Keeper:
        return self._keeper or shared()

    @property
    def alive(self) -> bool:
        return self._keeper is None or self._keeper.alive

    @property
    def statement(self) -> str:
        """What is in force, in a sentence for a person."""
        if self.layout is None:
            return f"commands run without a sandbox ({self.name.removeprefix('none: ')})"
        where = ", ".join((*self.layout.writable, "a temporary folder"))
        network = "with the network" if self.layout.network else "without a network"
        said = f"commands run in {self.name}, {network}, and write only to {where}"
        if self.name == "landlock" and self.layout.writable:
            return f"{said}; protected files in there are watched, not locked, and chmod is not held"
        return said

    @property
    def watched(self) -> tuple[str, ...]:
        """Protected paths that this sandbox does not lock."""
        if self.layout is None:
            return ()
        paths = self.layout.protected if self.name == "landlock" else self.layout.watched
        return tuple(path for path in paths if "/.git/" not in f"{path}/")  # more than watched: see `git_guard`

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
        keeper = Keeper(bubblewrap.wrapper(layout) if name == "bubblewrap" else (), backend.plan(layout))
        try:
            await keeper.ready()
        except BaseException:
            keeper.abandon()
            raise
    except BaseException:
        places.close()
        raise
    return Sandbox(name, keeper, layout, places)


def room_to_write(environ: dict[str, str], temp: str) -> dict[str, str]:
    """The environment of a confined command: temporary files and caches go where it may write."""
    cache = os.path.join(temp, "cache")
    return {**environ, "TMPDIR": temp, "XDG_CACHE_HOME": cache, "npm_config_cache": os.path.join(cache, "npm")}
