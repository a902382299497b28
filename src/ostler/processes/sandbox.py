"""Open the best sandbox this machine offers, or say why there is none."""

import os
from collections.abc import Sequence
from typing import Any

from ostler.processes import bubblewrap, landlock
from ostler.processes.git_guard import GitGuard
from ostler.processes.other_vcs import OTHER_VCS_FILES
from ostler.processes.placeholders import Placeholders, remove_stale_placeholders
from ostler.processes.protected_paths import UnlockedPaths
from ostler.processes.sandbox_policy import (
    SandboxLayout,
    SandboxPolicy,
    SandboxUnavailable,
    home_placeholder_paths,
    resolve_layout,
)
from ostler.processes.spawner_client import SpawnerClient, SpawnerLost, shared_spawner

BACKENDS = ("bubblewrap", "landlock")


class Sandbox:
    """A keeper, and what holds the commands it starts: `name` is a backend, or "none: " and the reason."""

    def __init__(
        self,
        name: str,
        spawner: SpawnerClient | None = None,
        layout: SandboxLayout | None = None,
        placeholders: Placeholders | None = None,
    ) -> None:
        self.name = name
        self.layout = layout
        self._spawner = spawner
        self._placeholders = placeholders
        self._locked = {path: _identity(path) for path in _lockable_paths(layout)} if name == "bubblewrap" else {}
        self.guard = GitGuard(layout.writable, self._still_locked) if layout and layout.writable else None

    @property
    def spawner(self) -> SpawnerClient:
        return self._spawner or shared_spawner()

    @property
    def is_alive(self) -> bool:
        return self._spawner is None or self._spawner.is_alive

    @property
    def is_intact(self) -> bool:
        """Whether it locks what it locked at first: a file that somebody put in another's place is not locked."""
        return len(self._still_locked()) == len(self._locked)

    def _still_locked(self) -> tuple[str, ...]:
        return tuple(path for path, identity in self._locked.items() if _identity(path) == identity)

    @property
    def description(self) -> str:
        """What is in force, in a sentence for a person."""
        if self.layout is None:
            return f"commands run without a sandbox ({self.name.removeprefix('none: ')})"
        where = ", ".join((*self.layout.writable, "a temporary folder"))
        network = "with the network" if self.layout.network else "without a network"
        said = f"commands run in {self.name}, {network}, and write only to {where}"
        if self.name == "landlock" and self.layout.writable:
            shut = "; directly in a home they can make nothing new" if self.layout.never_writable else ""
            return f"{said}{shut}; protected files in there are watched, not locked, and chmod is held nowhere"
        return said

    def unlocked_paths(self) -> UnlockedPaths | None:
        """Protected paths that it does not lock, as they are now; what is of repositories its guard looks after.

        Landlock keeps Ostler's own folder shut, and Ostler itself writes there while commands run.
        """
        if self.layout is None:
            return None
        paths = self.layout.checked_afterwards
        if self.name == "landlock":
            paths = tuple(path for path in self.layout.protected if path not in self.layout.caller_paths)
        return UnlockedPaths(tuple(path for path in paths if not _is_in_repository(path)), self.layout.writable)

    async def aclose(self) -> None:
        if self._spawner:
            await self._spawner.aclose()
        if self._placeholders:
            self._placeholders.close()


async def open_sandbox(
    policy: SandboxPolicy, temp: str, visible: tuple[str, ...], backends: Sequence[str] = BACKENDS
) -> Sandbox:
    """The first backend that really starts. SandboxUnavailable when one is required and none does."""
    if policy.mode == "off":
        return Sandbox("none: switched off")
    remove_stale_placeholders(home_placeholder_paths())  # what a killed session left in a home troubles its owner
    reasons = []
    for name in backends:
        layout = resolve_layout(policy, temp, visible)
        try:
            return await _open(name, layout)
        except SpawnerLost as error:
            reasons.append(f"{name}: {error}")
    reason = "; ".join(reasons)
    if policy.mode == "require":
        hint = "install bubblewrap, or set the sandbox to prefer"
        raise SandboxUnavailable(f"commands must run in a sandbox and none can be had ({reason})", hint=hint)
    return Sandbox(f"none: {reason}")


async def _open(name: str, layout: SandboxLayout) -> Sandbox:
    backend = bubblewrap if name == "bubblewrap" else landlock
    if reason := bubblewrap.unavailable_reason(layout) if name == "bubblewrap" else landlock.unavailable_reason():
        raise SpawnerLost(reason)
    places = Placeholders(layout.must_not_exist if name == "bubblewrap" else ())
    try:
        wrapper = bubblewrap.wrapper_command(layout) if name == "bubblewrap" else []
        try:
            keeper = await _start_spawner(wrapper, backend.plan(layout))
        except SpawnerLost:
            # What it should hide, such as somebody's socket, may have gone meanwhile.
            if not wrapper or (again := bubblewrap.wrapper_command(layout)) == wrapper:
                raise
            keeper = await _start_spawner(again, backend.plan(layout))
    except BaseException:
        places.close()
        raise
    return Sandbox(name, keeper, layout, places)


async def _start_spawner(wrapper: list[str], plan: dict[str, Any]) -> SpawnerClient:
    keeper = SpawnerClient(wrapper, plan)
    try:
        await keeper.wait_ready()
    except BaseException:
        keeper.kill()
        raise
    return keeper


def _lockable_paths(layout: SandboxLayout | None) -> tuple[str, ...]:
    return (*layout.locked, *layout.must_not_exist) if layout else ()


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_in_repository(path: str) -> bool:
    return not {".git", *OTHER_VCS_FILES}.isdisjoint(path.split("/"))


def with_writable_temp(environ: dict[str, str], temp: str) -> dict[str, str]:
    """The environment of a confined command: temporary files and caches go where it may write."""
    cache = os.path.join(temp, "cache")
    return {**environ, "TMPDIR": temp, "XDG_CACHE_HOME": cache, "npm_config_cache": os.path.join(cache, "npm")}
