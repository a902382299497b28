"""The workspace of a session: files, and a shell with its sandbox."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from ostler.core.commands import BackgroundJob, CommandRequest, CommandResult
from ostler.core.errors import ToolError
from ostler.settings.home import find_real_home
from ostler.text.lazy_regex import lazy_regex
from ostler.workspace.local_workspace import LocalWorkspace

_HARMLESS_REDIRECTION = lazy_regex(r"[0-9]?>&[012](?=[\s;|&)]|$)|(?:[0-9]|&)?>{1,2} {0,8}/dev/null(?=[\s;|&)]|$)")

if TYPE_CHECKING:
    from ostler.processes.sandbox_policy import SandboxPolicy
    from ostler.processes.session_processes import SessionProcesses


class SessionShell:
    """Runs the foreground and background commands of one session. Starts nothing before the first command."""

    def __init__(self, root: str, *, writable: bool, sandbox: str, readable: Sequence[str] = ()) -> None:
        """`readable` are paths in home directories that commands may read, besides those of `home_paths`."""
        self._root = root
        self._readable = tuple(readable)
        self._writable = writable
        self._sandbox = sandbox
        self.is_agent_read_only: Callable[[], bool] = lambda: False
        self._checked_read_only = False
        self._processes: SessionProcesses | None = None
        self._policy: SandboxPolicy | None = None

    def for_child(self) -> "SessionShell":
        """Return a separate shell with the same settings for a child session."""
        return SessionShell(self._root, writable=self._writable, sandbox=self._sandbox, readable=self._readable)

    def grant_folders(self, paths: Sequence[str]) -> None:
        """Allow commands to read these folders; called before the first command."""
        self._readable = (*self._readable, *paths)

    @property
    def read_only(self) -> bool:
        """Whether the agent is read-only now, or was when the permission of the last command was checked."""
        return self.is_agent_read_only() or self._checked_read_only

    async def is_sandboxed(self) -> bool:
        """Return whether the next command runs in the sandbox; one that is allowed as read-only stays read-only."""
        self._checked_read_only = self.is_agent_read_only()
        return await self.has_sandbox()

    async def has_sandbox(self) -> bool:
        """Return whether there is a sandbox."""
        return not (await self._ensure_processes().prepare()).startswith("none")

    def is_read_only_command(self, command: str) -> bool:
        """Return whether a command only looks at files, so that it runs with the workspace read-only."""
        from ostler.policy.shell.looking import only_looks  # imports a parser that only commands need

        return only_looks(command)

    async def can_write(self) -> bool:
        """Whether a command could change the workspace; only a sandbox can keep it from that."""
        return (self._writable and not self.read_only) or not await self.has_sandbox()

    async def run(self, request: CommandRequest) -> CommandResult:
        result = await self._ensure_processes().run(
            request.command,
            timeout=request.timeout,
            cwd=request.cwd,
            env=request.env,
            on_output=request.on_output,
            policy=await self._policy_for(request),
        )
        if result.exit_code and await self.has_sandbox():
            result = self._explain_hidden_paths(result)
        if not request.read_only:
            return result
        from ostler.workspace.write_denials import mentions_denied_write  # imported late: most commands may write

        sandbox = await self._ensure_processes().prepare()
        denied = mentions_denied_write(f"{result.stdout}\n{result.stderr}", sandbox)
        return msgspec.structs.replace(result, write_denied=denied)

    def _explain_hidden_paths(self, result: CommandResult) -> CommandResult:
        from ostler.workspace.home_paths import HIDDEN_NOTE, mentions_hidden_path

        if not mentions_hidden_path(result.stderr):
            return result
        return msgspec.structs.replace(result, stderr=f"{result.stderr.rstrip()}\n{HIDDEN_NOTE}\n")

    async def start(self, request: CommandRequest) -> str:
        policy = await self._policy_for(request)
        return await self._ensure_processes().start_background(
            request.command,
            cwd=request.cwd,
            env=request.env,
            policy=policy,
            script=request.script,
            interactive=request.interactive,
        )

    def is_busy(self) -> bool:
        """Return whether a background command is running."""
        return self._processes is not None and any(job.state == "running" for job in self._processes.list_background())

    def list(self) -> Sequence[BackgroundJob]:
        return self._ensure_processes().list_background()

    async def read(self, job_id: str, wait: float) -> tuple[str, BackgroundJob]:
        output = await self._ensure_processes().read_background(job_id, wait)
        return output.text, output.job

    def write(self, job_id: str, text: str) -> None:
        self._ensure_processes().write_background(job_id, text.encode("utf-8", "replace"))

    async def stop(self, job_id: str) -> BackgroundJob:
        return await self._ensure_processes().stop_background(job_id)

    async def aclose(self) -> None:
        if self._processes:
            await self._processes.aclose()

    def _sandbox_policy(self) -> "SandboxPolicy":
        if self._policy is None:
            self._policy = workspace_policy(
                self._root, writable=self._writable, mode=self._sandbox, readable=self._readable
            )
        return self._policy

    async def _policy_for(self, request: CommandRequest) -> "SandboxPolicy":
        """Return the sandbox policy of one command.

        Raises `ToolError` for a redirection into a file if writing is not allowed and there is no sandbox.
        """
        if request.read_only and not await self.has_sandbox():
            raise ToolError("the sandbox is gone, so the command did not run", hint="run it again")
        if (
            (self.read_only or not self._writable)
            and redirects_to_file(request.command)
            and not await self.has_sandbox()
        ):
            raise ToolError(
                "this session is read-only, and no sandbox confines the redirection",
                hint="run the command without it",
            )
        read_only = (
            self.read_only or request.read_only or (not request.network and self.is_read_only_command(request.command))
        )
        from ostler.processes.sandbox_policy import leads_through
        from ostler.workspace.home_paths import network_credentials

        named = tuple(path for path in request.readable if not leads_through(path, self._root))
        default = self._sandbox_policy()
        default = msgspec.structs.replace(default, readable=(*default.readable, *named))
        if read_only:
            return msgspec.structs.replace(default, writable=(), network=request.network)
        if not request.network:
            return default
        hidden = tuple(path for path in default.hidden if os.path.realpath(path) in default.read_only)
        readable = (*default.readable, *network_credentials())
        return msgspec.structs.replace(default, network=True, hidden=hidden, readable=readable)

    def _ensure_processes(self) -> "SessionProcesses":
        if self._processes is None:
            from ostler.processes.session_processes import SessionProcesses

            self._processes = SessionProcesses(
                self._root, policy=self._sandbox_policy(), marker_dir=running_marks_dir()
            )
        return self._processes


def workspace_policy(root: str, *, writable: bool, mode: str, readable: Sequence[str] = ()) -> "SandboxPolicy":
    """Return a policy without network access, with which programs can write at most to the workspace.

    Ostler's own folder is read-only. Home directories are hidden except for tools and `readable` paths, and credentials
    are hidden everywhere.
    """
    from ostler.processes.sandbox_policy import SandboxPolicy, is_inside
    from ostler.workspace.home_paths import existing_credentials, hidden_homes, readable_paths

    home, real_root = find_real_home(os.environ), os.path.realpath(root)
    is_ostlers = bool(home) and is_inside(real_root, home) and not is_inside(real_root, f"{home}/worktrees")
    return SandboxPolicy(
        mode=mode,  # type: ignore[arg-type]  # validated by the settings
        writable=(root,) if writable and not is_ostlers else (),
        read_only=(home,) if home else (),
        hidden=existing_credentials(root),
        homes=hidden_homes(),
        readable=readable_paths(root, readable, os.environ),
    )


def redirects_to_file(command: str) -> bool:
    """Return whether a command could redirect output to a file other than `/dev/null`."""
    return ">" in _HARMLESS_REDIRECTION.sub("", command)


def running_marks_dir() -> str:
    """Return the folder of the markers of running sessions, or an empty string without a home folder."""
    home = find_real_home(os.environ)
    return os.path.join(home, "running") if home else ""


async def clean_up_killed_sessions(notify: Callable[[str], None]) -> None:
    """Quarantine files that commands of killed sessions left for git to run, and report them."""
    try:
        markers = os.listdir(running_marks_dir())
    except OSError:
        return
    if markers:
        from ostler.processes.git_guard_marker import recover_stale_markers

        for note in await recover_stale_markers(running_marks_dir()):
            notify(note)


class SessionWorkspace(LocalWorkspace):
    """A local workspace with the session's shell."""

    def __init__(self, root: str, shell: SessionShell, *, read_anywhere: bool) -> None:
        super().__init__(root, run=shell.run, read_anywhere=read_anywhere)
        self._shell = shell
        self._read_anywhere = read_anywhere
        self._granted_folders: tuple[str, ...] = ()

    def grant_folders(self, paths: Sequence[str], *, to_commands: bool = True) -> None:
        """Allow reading folders outside the workspace; without `to_commands` only by file tools, call by call."""
        super().grant_folders(paths)
        self._granted_folders = (*self._granted_folders, *paths)
        if to_commands:
            self._shell.grant_folders(paths)

    def for_child(self) -> "SessionWorkspace":
        """Return the workspace of a child session: the same files, but its own commands and read state."""
        workspace = self._copy()
        workspace.grant_folders(self._granted_folders, to_commands=False)  # the shell has been copied with its own
        workspace.before_change = self.before_change
        return workspace

    def _copy(self) -> "SessionWorkspace":
        return SessionWorkspace(self.root, self._shell.for_child(), read_anywhere=self._read_anywhere)

    @property
    def shell(self) -> SessionShell:
        return self._shell

    @property
    def jobs(self) -> SessionShell:
        return self._shell

    async def is_sandboxed(self) -> bool:
        return await self._shell.is_sandboxed()

    async def has_sandbox(self) -> bool:
        return await self._shell.has_sandbox()

    def is_read_only_command(self, command: str) -> bool:
        return self._shell.is_read_only_command(command)

    async def can_commands_write(self) -> bool:
        return await self._shell.can_write()

    async def aclose(self) -> None:
        """Stop all commands and close the workspace."""
        await self._shell.aclose()
        self.close()
