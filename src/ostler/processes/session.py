"""The processes of one session: its commands, its background commands, its sandboxes, and their common end."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from ostler.processes.background import Background, BackgroundOutput
from ostler.processes.command import Command, KeeperSource, Request
from ostler.processes.confinement import Confinement
from ostler.processes.environment import for_commands
from ostler.processes.git_guard import GitGuard, guarded
from ostler.processes.keeping import Keeper
from ostler.processes.mending import Unlocked
from ostler.processes.output import MEMORY_CAP, Live, Output, Spill
from ostler.processes.running import CANCEL_GRACE, GRACE, note, run_to_end
from ostler.processes.sandbox import BACKENDS, Sandbox, open_sandbox, room_to_write
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.seams import Job, Ran

if TYPE_CHECKING:
    from ostler.processes.folders import SessionFolder


class Processes:
    """All that a session runs. Nothing starts before the first command, and nothing is left after `aclose`.

    Without a confinement commands may write to `cwd` and their temporary folder, in a sandbox where there is one.
    `env` replaces the environment that is scrubbed for commands. Output too long for memory goes to `spill_dir`, which
    is the caller's to remove; a folder of our own goes with the session. In `marks`, which commands cannot write to, is
    kept what a killed session would leave. `limits` are rlimits by name.
    """

    def __init__(
        self,
        cwd: str,
        *,
        confinement: Confinement | None = None,
        env: Mapping[str, str] | None = None,
        spill_dir: str | None = None,
        marks: str = "",
        limits: Mapping[str, int] | None = None,
        backends: Sequence[str] = BACKENDS,
        grace: float = GRACE,
    ) -> None:
        self._cwd = os.path.realpath(cwd)
        self._confinement = confinement or Confinement(writable=(self._cwd,))
        self._environ = os.environ if env is None else env
        self._limits = tuple({"RLIMIT_CORE": 0, **(limits or {})}.items())
        self._backends = backends
        self._grace = grace
        self._spill_dir = spill_dir or ""
        self._marks = marks
        self._spills = 0
        self._own_folder: SessionFolder | None = None
        self._sandboxes: dict[Confinement, Sandbox] = {}
        self._replaced: list[Sandbox] = []
        self._told: list[str] = []
        self._was_confined = False
        self._opening = asyncio.Lock()
        self._running: set[Command] = set()
        self._background = Background()
        self._ends: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    @property
    def sandbox(self) -> str:
        """What holds the commands: "bubblewrap", "landlock", "none: " and a reason, or "not started"."""
        sandbox = self._sandboxes.get(self._confinement)
        return sandbox.name if sandbox else "not started"

    @property
    def statement(self) -> str:
        """What holds the commands, in a sentence for a person."""
        sandbox = self._sandboxes.get(self._confinement)
        return sandbox.statement if sandbox else "no command has been run yet"

    async def ready(self) -> str:
        """Start what commands need, so that the first one does not wait for it; what is in force."""
        return (await self._sandbox(self._confinement)).name

    async def run(
        self,
        command: str,
        *,
        timeout: float,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        on_output: Callable[[str], None] | None = None,
        stdin: bytes | None = None,
        confinement: Confinement | None = None,
        cap: int = MEMORY_CAP,
    ) -> Ran:
        """Run a shell command to its end. A `confinement` of its own holds for this command alone.

        Cancelling kills all it started and returns when that is gone. ToolFailure when it cannot be started.
        """
        confined = confinement or self._confinement
        sandbox = await self._sandbox(confined)
        request = self._request(command, sandbox, cwd, env)
        output = Output(self._open_spill, Live(on_output) if on_output else None, cap)
        unlocked = sandbox.unlocked()
        async with guarded(sandbox.guard):
            ran = await run_to_end(
                self._source(confined),
                request,
                output,
                timeout=timeout,
                stdin=stdin,
                grace=self._grace,
                running=self._running,
            )
        self._mend(unlocked)
        for line in self._notes():
            ran = msgspec.structs.replace(ran, stderr=note(ran.stderr, line))
        return ran

    async def start_background(
        self,
        command: str,
        *,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        confinement: Confinement | None = None,
    ) -> str:
        """Start a shell command that goes on by itself; what it starts belongs to it. Returns its id."""
        confined = confinement or self._confinement
        sandbox = await self._sandbox(confined)
        request = self._request(command, sandbox, cwd, env, linger=True)
        unlocked = sandbox.unlocked()
        if sandbox.guard:
            await sandbox.guard.enter()
        try:
            id = await self._background.start(self._source(confined), request, command, self._spill_folder())
        except BaseException:
            if sandbox.guard:
                await asyncio.shield(sandbox.guard.leave())
            raise
        self._ends[id] = asyncio.create_task(self._see_out(id, sandbox.guard, unlocked), name=f"the end of {id}")
        return id

    async def _see_out(self, id: str, guard: GitGuard | None, unlocked: Unlocked | None) -> None:
        await self._background.wait(id)
        if guard:
            await guard.leave()
        self._mend(unlocked)

    def _mend(self, unlocked: Unlocked | None) -> None:
        self._told += unlocked.mend() if unlocked else ()

    def background(self) -> list[Job]:
        return self._background.list()

    async def read_background(self, id: str, wait: float = 0.0) -> BackgroundOutput:
        """What it printed since it was last read; with `wait`, after so many seconds or its end."""
        if wait > 0:
            await self._background.wait(id, wait)
        output = self._background.read(id)
        if output.state.state != "running":
            await asyncio.shield(self._ends[id])
        told = "".join(f"[{line}]\n" for line in self._notes())
        return msgspec.structs.replace(output, text=output.text + told)

    async def stop_background(self, id: str) -> Job:
        job = await self._background.stop(id, self._grace)
        await asyncio.shield(self._ends[id])
        return job

    async def aclose(self) -> None:
        """End everything, then remove our own temporary folders."""
        self._closed = True
        await asyncio.gather(
            self._background.aclose(self._grace), *(command.stop(CANCEL_GRACE) for command in set(self._running))
        )
        await asyncio.gather(*self._ends.values(), return_exceptions=True)
        async with self._opening:
            await asyncio.gather(*(sandbox.aclose() for sandbox in (*self._sandboxes.values(), *self._replaced)))
            self._sandboxes = {}
        if self._own_folder:
            await asyncio.to_thread(self._own_folder.remove)

    def _notes(self) -> list[str]:
        """What there is to tell of all sandboxes: a background command's doings go with the next result."""
        told, self._told = self._told, []
        guards = [sandbox.guard for sandbox in (*self._sandboxes.values(), *self._replaced)]
        return [*(note for guard in guards if guard for note in guard.take_notes()), *told]

    def _source(self, confinement: Confinement) -> KeeperSource:
        async def keeper() -> Keeper:
            return (await self._sandbox(confinement)).keeper

        return keeper

    async def _sandbox(self, confinement: Confinement) -> Sandbox:
        async with self._opening:
            if self._closed:
                raise ToolFailure("the session is closed, so no command can be run", code="closed")
            sandbox = self._sandboxes.get(confinement)
            if sandbox and not (sandbox.alive and sandbox.intact):
                await self._let_go(self._sandboxes.pop(confinement))
                sandbox = None
            if not sandbox:
                temp = self._temp(confinement) if confinement.mode != "off" else ""
                seen = (self._cwd, self._spill_folder())
                self._make_own_folder()
                sandbox = await open_sandbox(self._no_weaker(confinement), temp, seen, self._backends)
                if self._marks:
                    await self._keep_marks(sandbox)
                self._sandboxes[confinement] = sandbox
                self._was_confined = self._was_confined or sandbox.layout is not None
            return sandbox

    def _make_own_folder(self) -> None:
        """Before it is looked at: what comes to be while a command runs counts as the command's."""
        with contextlib.suppress(OSError):  # without marks all is as before
            for folder in (os.path.dirname(self._marks), self._marks) if self._marks else ():
                os.makedirs(folder, mode=0o700, exist_ok=True)

    async def _keep_marks(self, sandbox: Sandbox) -> None:
        from ostler.processes.git_marks import Mark, settle_left

        self._told += await settle_left(self._marks)
        if sandbox.guard:
            sandbox.guard.mark = Mark(self._marks)

    async def _let_go(self, sandbox: Sandbox) -> None:
        """One that is dead, or does not lock any more what it should; commands that run in it may end in it."""
        if sandbox.alive and sandbox.guard and sandbox.guard.busy:
            self._replaced.append(sandbox)
            return
        self._told += sandbox.guard.take_notes() if sandbox.guard else ()
        await sandbox.aclose()

    def _no_weaker(self, confinement: Confinement) -> Confinement:
        """What a sandbox held once in this session is not run without one later: a command may have seen to that."""
        if confinement.mode == "prefer" and self._was_confined:
            return msgspec.structs.replace(confinement, mode="require")
        return confinement

    def _request(
        self, command: str, sandbox: Sandbox, cwd: str, env: Mapping[str, str] | None, linger: bool = False
    ) -> Request:
        folder = os.path.realpath(os.path.join(self._cwd, cwd))
        if not os.path.isdir(folder):
            raise ToolFailure(f"the folder {folder} to run the command in does not exist", code="not_started")
        environ = for_commands(self._environ, confined=sandbox.layout is not None)
        if sandbox.layout:
            environ = room_to_write(environ, sandbox.layout.temp)
        return Request([_shell(), "-c", command], folder, {**environ, **(env or {})}, self._limits, linger)

    def _temp(self, confinement: Confinement) -> str:
        if not confinement.temp:
            return self._own("temp")
        os.makedirs(confinement.temp, mode=0o700, exist_ok=True)
        return confinement.temp

    def _spill_folder(self) -> str:
        # Never inside a folder that commands can write to: they could lead us elsewhere by a link.
        return self._spill_dir or self._own("output")

    def _own(self, what: str) -> str:
        if not self._own_folder:
            from ostler.processes.folders import SessionFolder

            self._own_folder = SessionFolder()
        return self._own_folder.sub(what)

    def _open_spill(self) -> Spill:
        self._spills += 1
        return Spill(self._spill_folder(), f"command-{os.getpid()}-{self._spills}.txt")


def _shell() -> str:
    if os.access("/bin/bash", os.X_OK):
        return "/bin/bash"
    import shutil

    return shutil.which("bash") or "/bin/sh"
