"""All processes of a session: commands, background jobs, sandboxes, and their cleanup."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from ostler.core.commands import BackgroundJob, CommandResult
from ostler.core.errors import ToolError
from ostler.processes.background_commands import BackgroundCommands, BackgroundOutput
from ostler.processes.command_environment import command_environment
from ostler.processes.command_runner import CANCEL_GRACE, GRACE, add_note, run_to_end
from ostler.processes.git_guard import guard_command
from ostler.processes.helper_programs import HelperProgram, open_program
from ostler.processes.output import CommandOutput, LiveOutput, SpillFile
from ostler.processes.protected_paths import UnlockedPaths
from ostler.processes.running_command import RunningCommand, SpawnerSource, SpawnRequest
from ostler.processes.sandbox import BACKENDS, Sandbox, open_sandbox, with_writable_temp
from ostler.processes.sandbox_policy import SandboxPolicy
from ostler.processes.spawner_client import SpawnerClient

if TYPE_CHECKING:
    from ostler.processes.session_temp import SessionTempFolder

_MAX_SANDBOXES = 6  # beyond this, unused ones of single commands are closed


class SessionProcesses:
    """The processes of a session. Nothing starts before the first command, and nothing is left after `aclose`.

    Without a `policy`, commands may write to `cwd` and a temporary folder, in a sandbox if one is available. Long
    output goes to files in a folder that is removed with the session. `marker_dir`, which commands cannot write to,
    holds the markers for recovery after a kill.
    """

    def __init__(
        self,
        cwd: str,
        *,
        policy: SandboxPolicy | None = None,
        marker_dir: str = "",
        backends: Sequence[str] = BACKENDS,
        grace: float = GRACE,
    ) -> None:
        self._cwd = os.path.realpath(cwd)
        self._policy = policy or SandboxPolicy(writable=(self._cwd,))
        self._backends = backends
        self._grace = grace
        self._marker_dir = marker_dir
        self._spill_count = 0
        self._temp_folder: SessionTempFolder | None = None
        self._sandboxes: dict[SandboxPolicy, Sandbox] = {}
        self._replaced: list[Sandbox] = []
        self._pending_notes: list[str] = []
        self._was_sandboxed = False
        self._open_lock = asyncio.Lock()
        self._running: set[RunningCommand] = set()
        self._background = BackgroundCommands()
        self._end_tasks: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    async def prepare(self) -> str:
        """Open the sandbox before the first command needs it. Return "bubblewrap", "landlock" or "none: REASON"."""
        return (await self._sandbox(self._policy)).name

    async def run(
        self,
        command: str,
        *,
        timeout: float,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        on_output: Callable[[str], None] | None = None,
        policy: SandboxPolicy | None = None,
    ) -> CommandResult:
        """Run a shell command to completion. A `policy` applies to this command only.

        Cancelling kills the whole process tree before it returns. Raises `ToolError` if the command cannot be started.
        """
        active_policy = policy or self._policy
        sandbox = await self._sandbox(active_policy)
        request = self._request(command, sandbox, cwd, env)
        output = CommandOutput(self._open_spill, LiveOutput(on_output) if on_output else None)
        unlocked = sandbox.unlocked_paths()
        async with _use(sandbox):
            result = await run_to_end(
                self._spawner_source(active_policy),
                request,
                output,
                timeout=timeout,
                grace=self._grace,
                running_commands=self._running,
            )
        self._restore_unlocked(unlocked)
        for line in self._take_notes():
            result = msgspec.structs.replace(result, stderr=add_note(result.stderr, line))
        return result

    async def start_background(
        self,
        command: str,
        *,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        policy: SandboxPolicy | None = None,
        script: str = "",
        interactive: bool = False,
    ) -> str:
        """Start a shell command in the background and return its id. It ends when its last process has ended.

        A `script` is run instead and gets the command as its first argument. `interactive` keeps the input open.
        """
        active_policy = policy or self._policy
        sandbox = await self._sandbox(active_policy)
        request = self._request(command, sandbox, cwd, env, linger=True)
        if script:
            request = msgspec.structs.replace(request, argv=[_shell(), "-c", script, "bash", command])
        unlocked = sandbox.unlocked_paths()
        await _enter(sandbox)
        try:
            id = await self._background.start(
                self._spawner_source(active_policy), request, command, self._spill_folder(), interactive=interactive
            )
        except BaseException:
            await asyncio.shield(_leave(sandbox))
            raise
        self._end_tasks[id] = asyncio.create_task(
            self._wait_and_restore(id, sandbox, unlocked), name=f"cleanup of {id}"
        )
        return id

    async def open_program(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], on_stderr: Callable[[bytes], None]
    ) -> HelperProgram:
        """Start a program in the sandbox, to communicate over its standard streams; `aclose` also stops it.

        An empty `cwd` means the temporary folder. Raises `SandboxUnavailable` if there is no sandbox.
        """
        sandbox = await self._sandbox(msgspec.structs.replace(self._policy, mode="require"))
        assert sandbox.layout is not None
        unlocked = sandbox.unlocked_paths()
        await _enter(sandbox)
        try:
            program = await open_program(
                argv,
                cwd=cwd or sandbox.layout.temp,
                env=with_writable_temp(dict(env), sandbox.layout.temp),
                on_stderr=on_stderr,
                spawner=_source_of(sandbox),
            )
        except BaseException:
            await asyncio.shield(_leave(sandbox))
            raise
        self._running.add(program.command)
        self._end_tasks[f"program {len(self._end_tasks)}"] = asyncio.create_task(
            self._wait_for_program(program.command, sandbox, unlocked), name=f"cleanup of {argv[0]}"
        )
        return program

    async def _wait_for_program(
        self, command: RunningCommand, sandbox: Sandbox, unlocked: UnlockedPaths | None
    ) -> None:
        await command.wait()
        self._running.discard(command)
        await _leave(sandbox)
        self._restore_unlocked(unlocked)

    async def _wait_and_restore(self, id: str, sandbox: Sandbox, unlocked: UnlockedPaths | None) -> None:
        await self._background.wait(id)
        await _leave(sandbox)
        self._restore_unlocked(unlocked)

    def _restore_unlocked(self, unlocked: UnlockedPaths | None) -> None:
        self._pending_notes += unlocked.restore() if unlocked else ()

    def write_background(self, id: str, data: bytes) -> None:
        """Send data to the input of a command that was started as interactive. Raises `ToolError`."""
        self._background.write(id, data)

    def list_background(self) -> list[BackgroundJob]:
        return self._background.list()

    async def read_background(self, id: str, wait: float = 0.0) -> BackgroundOutput:
        """Return the output since the last read, after at most `wait` seconds or when the command ends."""
        if wait > 0:
            await self._background.wait(id, wait)
        output = self._background.read(id)
        if output.job.state != "running":
            await asyncio.shield(self._end_tasks[id])
        notes = "".join(f"[{line}]\n" for line in self._take_notes())
        return msgspec.structs.replace(output, text=output.text + notes)

    async def stop_background(self, id: str) -> BackgroundJob:
        job = await self._background.stop(id, self._grace)
        await asyncio.shield(self._end_tasks[id])
        return job

    async def aclose(self) -> None:
        """Stop everything, then remove the temporary folders."""
        self._closed = True
        await asyncio.gather(
            self._background.aclose(self._grace), *(command.stop(CANCEL_GRACE) for command in set(self._running))
        )
        await asyncio.gather(*self._end_tasks.values(), return_exceptions=True)
        async with self._open_lock:
            await asyncio.gather(*(sandbox.aclose() for sandbox in (*self._sandboxes.values(), *self._replaced)))
            self._sandboxes = {}
        if self._temp_folder:
            await asyncio.to_thread(self._temp_folder.remove)

    def _take_notes(self) -> list[str]:
        """Return and clear the notes of all sandboxes; notes about background commands go with the next result."""
        notes, self._pending_notes = self._pending_notes, []
        guards = [sandbox.guard for sandbox in (*self._sandboxes.values(), *self._replaced)]
        return [*(note for guard in guards if guard for note in guard.take_notes()), *notes]

    def _spawner_source(self, policy: SandboxPolicy) -> SpawnerSource:
        async def get_spawner() -> SpawnerClient:
            return (await self._sandbox(policy)).spawner

        return get_spawner

    async def _sandbox(self, policy: SandboxPolicy) -> Sandbox:
        async with self._open_lock:
            if self._closed:
                raise ToolError("the session is closed; no command can be run", code="closed")
            sandbox = self._sandboxes.get(policy)
            if sandbox and not (sandbox.is_alive and sandbox.is_intact):
                await self._release_sandbox(self._sandboxes.pop(policy))
                sandbox = None
            if not sandbox:
                await self._close_unused()
                temp = self._temp_subfolder("temp") if policy.mode != "off" else ""
                visible = (self._cwd, self._spill_folder())
                self._make_marker_dir()
                sandbox = await open_sandbox(self._require_if_sandboxed_before(policy), temp, visible, self._backends)
                if self._marker_dir:
                    await self._set_marker(sandbox)
                self._sandboxes[policy] = sandbox
                self._was_sandboxed = self._was_sandboxed or sandbox.layout is not None
            return sandbox

    async def _close_unused(self) -> None:
        """Make room for another sandbox. Those of earlier single commands may be in use, for example by a job."""
        unused = [key for key, sandbox in self._sandboxes.items() if key != self._policy and not sandbox.users]
        for policy in unused[: max(0, len(self._sandboxes) + 1 - _MAX_SANDBOXES)]:
            await self._release_sandbox(self._sandboxes.pop(policy))

    def _make_marker_dir(self) -> None:
        """Create the marker folder before the first scan; later it would be attributed to a command."""
        with contextlib.suppress(OSError):  # markers are optional
            for folder in (os.path.dirname(self._marker_dir), self._marker_dir) if self._marker_dir else ():
                os.makedirs(folder, mode=0o700, exist_ok=True)

    async def _set_marker(self, sandbox: Sandbox) -> None:
        from ostler.processes.git_guard_marker import GuardMarker, recover_stale_markers

        self._pending_notes += await recover_stale_markers(self._marker_dir)
        if sandbox.guard:
            sandbox.guard.marker = GuardMarker(self._marker_dir)

    async def _release_sandbox(self, sandbox: Sandbox) -> None:
        """Close a sandbox that is dead or not intact. With commands that may still run, it is closed later."""
        if sandbox.is_alive and (sandbox.users or (sandbox.guard and sandbox.guard.is_busy)):
            self._replaced.append(sandbox)
            return
        self._pending_notes += sandbox.guard.take_notes() if sandbox.guard else ()
        await sandbox.aclose()

    def _require_if_sandboxed_before(self, policy: SandboxPolicy) -> SandboxPolicy:
        """Require a sandbox if one was used before in this session: a command may have made it unavailable."""
        if policy.mode == "prefer" and self._was_sandboxed:
            return msgspec.structs.replace(policy, mode="require")
        return policy

    def _request(
        self, command: str, sandbox: Sandbox, cwd: str, env: Mapping[str, str] | None, linger: bool = False
    ) -> SpawnRequest:
        folder = os.path.realpath(os.path.join(self._cwd, cwd))
        if not os.path.isdir(folder):
            raise ToolError(f"the working directory {folder} does not exist", code="not_started")
        environ = command_environment(os.environ, sandboxed=sandbox.layout is not None)
        if sandbox.layout:
            environ = with_writable_temp(environ, sandbox.layout.temp)
        return SpawnRequest([_shell(), "-c", command], folder, {**environ, **(env or {})}, linger=linger)

    def _spill_folder(self) -> str:
        # Never in a folder that commands can write to: they could replace it with a symlink.
        return self._temp_subfolder("output")

    def _temp_subfolder(self, name: str) -> str:
        if not self._temp_folder:
            from ostler.processes.session_temp import SessionTempFolder

            self._temp_folder = SessionTempFolder()
        return self._temp_folder.subfolder(name)

    def _open_spill(self) -> SpillFile:
        self._spill_count += 1
        return SpillFile(self._spill_folder(), f"command-{os.getpid()}-{self._spill_count}.txt")


@contextlib.asynccontextmanager
async def _use(sandbox: Sandbox) -> AsyncIterator[None]:
    sandbox.users += 1
    try:
        async with guard_command(sandbox.guard):
            yield
    finally:
        sandbox.users -= 1


async def _enter(sandbox: Sandbox) -> None:
    sandbox.users += 1
    try:
        if sandbox.guard:
            await sandbox.guard.command_started()
    except BaseException:
        sandbox.users -= 1
        raise


async def _leave(sandbox: Sandbox) -> None:
    sandbox.users -= 1
    if sandbox.guard:
        await sandbox.guard.command_ended()


def _source_of(sandbox: Sandbox) -> SpawnerSource:
    async def get_spawner() -> SpawnerClient:
        return sandbox.spawner

    return get_spawner


def _shell() -> str:
    if os.access("/bin/bash", os.X_OK):
        return "/bin/bash"
    import shutil

    return shutil.which("bash") or "/bin/sh"
