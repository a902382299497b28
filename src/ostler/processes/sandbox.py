"""Opens the best available sandbox or explains why there is none."""

import os
from collections.abc import Sequence
from typing import Any

from ostler.processes import bubblewrap, landlock
from ostler.processes.git_guard import GitGuard
from ostler.processes.other_vcs import OTHER_VCS_FILES
from ostler.processes.placeholder_process import with_placeholders
from ostler.processes.placeholders import remove_stale_placeholders
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
    """A spawner and the sandbox it runs commands in; `name` is a backend or "none: REASON"."""

    def __init__(
        self,
        name: str,
        spawner: SpawnerClient | None = None,
        layout: SandboxLayout | None = None,
        sockets: frozenset[tuple[bytes, bytes]] = frozenset(),
    ) -> None:
        self.name = name
        self.layout = layout
        self.users = 0  # commands and programs that run in it
        self._spawner = spawner
        self._known_sockets = sockets
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
        """Whether all locked paths are still locked (a replaced file is not) and no new socket is visible."""
        return len(self._still_locked()) == len(self._locked) and not self._exposes_new_socket()

    def _exposes_new_socket(self) -> bool:
        if self.name != "bubblewrap" or self.layout is None:  # Landlock's filter refuses all connections
            return False
        new = bubblewrap.bound_sockets() - self._known_sockets
        if bubblewrap.exposes(self.layout, new):
            return True
        self._known_sockets |= new
        return False

    def _still_locked(self) -> tuple[str, ...]:
        return tuple(path for path, identity in self._locked.items() if _identity(path) == identity)

    def unlocked_paths(self) -> UnlockedPaths | None:
        """Return a snapshot of the protected paths that are not locked, without repositories, which the guard covers.

        With Landlock, Ostler's own folder is left out: commands cannot write to it, but Ostler does while they run.
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
        if self.layout and self.name == "bubblewrap":  # left only if the process that removes them was killed
            remove_stale_placeholders(self.layout.must_not_exist)


async def open_sandbox(
    policy: SandboxPolicy, temp: str, visible: tuple[str, ...], backends: Sequence[str] = BACKENDS
) -> Sandbox:
    """Open the first backend that starts. Raises `SandboxUnavailable` if a sandbox is required and none starts."""
    if policy.mode == "off":
        return Sandbox("none: disabled")
    remove_stale_placeholders(home_placeholder_paths())  # left in the home directory by a killed session
    reasons = []
    for name in backends:
        layout = resolve_layout(policy, temp, visible)
        try:
            return await _open(name, layout)
        except SpawnerLost as error:
            reasons.append(f"{name}: {error}")
    reason = "; ".join(reasons)
    if policy.mode == "require":
        hint = 'install bubblewrap, or set security.sandbox to "prefer"'
        raise SandboxUnavailable(f"a sandbox is required and none is available ({reason})", hint=hint)
    return Sandbox(f"none: {reason}")


async def _open(name: str, layout: SandboxLayout) -> Sandbox:
    backend = bubblewrap if name == "bubblewrap" else landlock
    if reason := bubblewrap.unavailable_reason(layout) if name == "bubblewrap" else landlock.unavailable_reason():
        raise SpawnerLost(reason)
    sockets = bubblewrap.bound_sockets()
    wrapper = _wrapper_command(name, layout)
    try:
        spawner = await _start_spawner(wrapper, backend.plan(layout))
    except SpawnerLost:
        # A path to hide, such as a socket, may have been removed in the meantime.
        if not wrapper or (new_wrapper := _wrapper_command(name, layout)) == wrapper:
            raise
        spawner = await _start_spawner(new_wrapper, backend.plan(layout))
    return Sandbox(name, spawner, layout, sockets)


def _wrapper_command(name: str, layout: SandboxLayout) -> list[str]:
    if name != "bubblewrap":
        return []
    return with_placeholders(layout.must_not_exist, bubblewrap.wrapper_command(layout))


async def _start_spawner(wrapper: list[str], plan: dict[str, Any]) -> SpawnerClient:
    spawner = SpawnerClient(wrapper, plan)
    try:
        await spawner.wait_ready()
    except BaseException:
        spawner.kill()
        raise
    return spawner


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
    """Return the environment with temporary files and caches in `temp`, where sandboxed commands can write."""
    cache = os.path.join(temp, "cache")
    return {**environ, "TMPDIR": temp, "XDG_CACHE_HOME": cache, "npm_config_cache": os.path.join(cache, "npm")}
