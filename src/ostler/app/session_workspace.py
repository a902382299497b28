"""Makes the ground of a session: the workspace's files, and commands through the session's own processes."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ostler.app.run_options import RunOptions
from ostler.core.errors import ToolError
from ostler.core.protocols import BackgroundJob, CommandRequest, CommandResult
from ostler.policy.wildcard import pattern_folder
from ostler.settings.effective import Settings
from ostler.settings.home import find_home
from ostler.text.lazy_regex import lazy_regex
from ostler.workspace.local_workspace import LocalWorkspace

CREDENTIAL_PATHS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".ostler"),
    *(".docker/config.json", ".config/gcloud", ".config/gh", ".config/op", ".claude", ".codex"),
)
_HARMLESS_REDIRECTION = lazy_regex(r"[0-9]?>&[012](?=[\s;|&)]|$)|(?:[0-9]|&)?>{1,2} {0,8}/dev/null(?=[\s;|&)]|$)")

if TYPE_CHECKING:
    from ostler.processes.sandbox_policy import SandboxPolicy
    from ostler.processes.session_processes import SessionProcesses


class SessionShell:
    """The commands of one session, in the foreground and behind; nothing starts before the first."""

    def __init__(self, root: str, *, writable: bool, sandbox: str) -> None:
        self._root = root
        self._writable = writable
        self._sandbox = sandbox
        self.read_only = False
        self._processes: SessionProcesses | None = None

    def for_child(self) -> "SessionShell":
        """The same for a child session: its commands are its own."""
        return SessionShell(self._root, writable=self._writable, sandbox=self._sandbox)

    async def is_sandboxed(self) -> bool:
        return not (await self._ensure_processes().prepare()).startswith("none")

    async def can_write(self) -> bool:
        """Whether a command could change the workspace; only a sandbox can keep it from that."""
        return (self._writable and not self.read_only) or not await self.is_sandboxed()

    async def run(self, request: CommandRequest) -> CommandResult:
        return await self._ensure_processes().run(
            request.command,
            timeout=request.timeout,
            cwd=request.cwd,
            env=request.env,
            on_output=request.on_output,
            policy=await self._policy_for(request),
        )

    async def start(self, request: CommandRequest) -> str:
        confinement = await self._policy_for(request)
        return await self._ensure_processes().start_background(
            request.command, cwd=request.cwd, env=request.env, policy=confinement
        )

    def is_busy(self) -> bool:
        """Whether a background command runs."""
        return self._processes is not None and any(job.state == "running" for job in self._processes.list_background())

    def list(self) -> Sequence[BackgroundJob]:
        return self._ensure_processes().list_background()

    async def read(self, job_id: str, wait: float) -> tuple[str, BackgroundJob]:
        output = await self._ensure_processes().read_background(job_id, wait)
        return output.text, output.job

    async def stop(self, job_id: str) -> BackgroundJob:
        return await self._ensure_processes().stop_background(job_id)

    async def aclose(self) -> None:
        if self._processes:
            await self._processes.aclose()

    def _sandbox_policy(self) -> "SandboxPolicy":
        from ostler.processes.sandbox_policy import SandboxPolicy

        own = _ostler_home()
        writable = (self._root,) if self._writable and not (own and _is_inside(self._root, own)) else ()
        return SandboxPolicy(
            mode=self._sandbox,  # type: ignore[arg-type]  # settings took only these
            writable=writable,
            read_only=(own,) if own else (),
            hidden=_existing_credentials(self._root),
        )

    async def _policy_for(self, request: CommandRequest) -> "SandboxPolicy | None":
        """What differs from the usual for one command: the network it may have, the workspace it may not change."""
        if (
            (self.read_only or not self._writable)
            and redirects_to_file(request.command)
            and not await self.is_sandboxed()
        ):
            raise ToolError(
                "nothing may be written here, and there is no sandbox that would hold a redirection",
                hint="leave the redirection out",
            )
        if not (request.network or self.read_only):
            return None
        usual = self._sandbox_policy()
        if not self.read_only:
            ours = tuple(path for path in usual.hidden if os.path.realpath(path) in usual.read_only)
            return msgspec.structs.replace(usual, network=True, hidden=ours)
        return msgspec.structs.replace(usual, writable=(), network=request.network)

    def _ensure_processes(self) -> "SessionProcesses":
        if self._processes is None:
            from ostler.processes.session_processes import SessionProcesses

            self._processes = SessionProcesses(
                self._root, policy=self._sandbox_policy(), marker_dir=running_marks_dir()
            )
        return self._processes


def redirects_to_file(command: str) -> bool:
    """Whether a command line could send output into a file; what goes nowhere, or with the rest, is none."""
    return ">" in _HARMLESS_REDIRECTION.sub("", command)


def running_marks_dir() -> str:
    """Where it is kept what commands of a session that is killed may leave; nowhere without a home."""
    own = _ostler_home()
    return os.path.join(own, "running") if own else ""


async def clean_up_killed_sessions(notify: Callable[[str], None]) -> None:
    """Before anybody works here: what commands of killed sessions left for git to run is set aside, and told."""
    try:
        left = os.listdir(running_marks_dir())
    except OSError:
        return
    if left:
        from ostler.processes.git_guard_marker import recover_stale_markers

        for note in await recover_stale_markers(running_marks_dir()):
            notify(note)


def _ostler_home() -> str:
    found = find_home(os.environ)
    return os.path.realpath(found) if found else ""


def _is_inside(path: str, folder: str) -> bool:
    return f"{os.path.realpath(path)}/".startswith(f"{folder}/")


def _existing_credentials(root: str) -> tuple[str, ...]:
    """Where keys lie in a home, and in ours; without a network no honest command needs them."""
    home = os.path.expanduser("~")
    kept = {*(os.path.join(home, name) for name in CREDENTIAL_PATHS), *filter(None, [_ostler_home()])}
    return tuple(path for path in sorted(kept) if os.path.lexists(path) and not _is_inside(root, path))


class SessionWorkspace(LocalWorkspace):
    """A workspace with a shell."""

    def __init__(self, root: str, shell: SessionShell, *, read_anywhere: bool) -> None:
        super().__init__(root, run=shell.run, read_anywhere=read_anywhere)
        self._shell = shell
        self._read_anywhere = read_anywhere
        self._granted_folders: tuple[str, ...] = ()

    def grant_folders(self, paths: Sequence[str]) -> None:
        super().grant_folders(paths)
        self._granted_folders = (*self._granted_folders, *paths)

    def for_child(self) -> "SessionWorkspace":
        """The same files as a child session sees them: its commands, and what it has read, are its own."""
        workspace = self._copy()
        workspace.grant_folders(self._granted_folders)
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

    async def can_commands_write(self) -> bool:
        return await self._shell.can_write()

    async def aclose(self) -> None:
        """End whatever still runs, and let the folder go."""
        await self._shell.aclose()
        self.close()


def make_workspace(cwd: Path, settings: Settings, options: RunOptions, *, interactive: bool) -> SessionWorkspace:
    """The ground for one session; without a person and without --write, commands cannot write in the workspace."""
    root = str(cwd)
    shell = SessionShell(root, writable=interactive or options.write, sandbox=settings.config.security.sandbox)
    outside = _readable_outside(settings)
    workspace = SessionWorkspace(root, shell, read_anywhere=options.yolo or "" in outside)
    workspace.grant_folders([folder for folder in outside if folder.startswith("/")])
    return workspace


def _readable_outside(settings: Settings) -> list[str]:
    """Where rules let files be read outside, each as its rule says: the policy has the word on every call."""
    rules = (rule for rule in settings.rules() if rule.key == "external_directory" and rule.action != "deny")
    return [pattern_folder(rule.pattern) for rule in rules]
