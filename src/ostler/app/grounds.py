"""Makes the ground of a session: the workspace's files, and commands through the session's own processes."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ostler.app.options import RunOptions
from ostler.policy.wildcard import folder_of
from ostler.settings.effective import Settings
from ostler.settings.home import find_home
from ostler.text.regex import regex
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.seams import Job, Ran, Running
from ostler.workspace.ground import Workspace

CREDENTIALS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".ostler"),
    *(".docker/config.json", ".config/gcloud", ".config/gh", ".config/op", ".claude", ".codex"),
)
_TO_NOWHERE = regex(r"[0-9]?>&[012](?=[\s;|&)]|$)|(?:[0-9]|&)?>{1,2} {0,8}/dev/null(?=[\s;|&)]|$)")

if TYPE_CHECKING:
    from ostler.processes.confinement import Confinement
    from ostler.processes.session import Processes


class Shell:
    """The commands of one session, in the foreground and behind; nothing starts before the first."""

    def __init__(self, root: str, *, writable: bool, sandbox: str) -> None:
        self._root = root
        self._writable = writable
        self._sandbox = sandbox
        self.read_only = False
        self._processes: Processes | None = None

    def another(self) -> "Shell":
        """The same for a child session: its commands are its own."""
        return Shell(self._root, writable=self._writable, sandbox=self._sandbox)

    async def confined(self) -> bool:
        return not (await self._started().ready()).startswith("none")

    async def run(self, running: Running) -> Ran:
        return await self._started().run(
            running.command,
            timeout=running.timeout,
            cwd=running.cwd,
            env=running.env,
            on_output=running.on_output,
            confinement=await self._of(running),
        )

    async def start(self, running: Running) -> str:
        confinement = await self._of(running)
        return await self._started().start_background(
            running.command, cwd=running.cwd, env=running.env, confinement=confinement
        )

    def busy(self) -> bool:
        """Whether a background command runs."""
        return self._processes is not None and any(job.state == "running" for job in self._processes.background())

    def list(self) -> Sequence[Job]:
        return self._started().background()

    async def read(self, job_id: str, wait: float) -> tuple[str, Job]:
        output = await self._started().read_background(job_id, wait)
        return output.text, output.state

    async def stop(self, job_id: str) -> Job:
        return await self._started().stop_background(job_id)

    async def aclose(self) -> None:
        if self._processes:
            await self._processes.aclose()

    def _confinement(self) -> "Confinement":
        from ostler.processes.confinement import Confinement

        own = _own_home()
        writable = (self._root,) if self._writable and not (own and _inside(self._root, own)) else ()
        return Confinement(
            mode=self._sandbox,  # type: ignore[arg-type]  # settings took only these
            writable=writable,
            read_only=(own,) if own else (),
            hidden=_credentials(self._root),
        )

    async def _of(self, running: Running) -> "Confinement | None":
        """What differs from the usual for one command: the network it may have, the workspace it may not change."""
        if (self.read_only or not self._writable) and redirects(running.command) and not await self.confined():
            raise ToolFailure(
                "nothing may be written here, and there is no sandbox that would hold a redirection",
                hint="leave the redirection out",
            )
        if not (running.network or self.read_only):
            return None
        usual = self._confinement()
        if not self.read_only:
            ours = tuple(path for path in usual.hidden if os.path.realpath(path) in usual.read_only)
            return msgspec.structs.replace(usual, network=True, hidden=ours)
        return msgspec.structs.replace(usual, writable=(), network=running.network)

    def _started(self) -> "Processes":
        if self._processes is None:
            from ostler.processes.session import Processes

            self._processes = Processes(self._root, confinement=self._confinement(), marks=marks())
        return self._processes


def redirects(command: str) -> bool:
    """Whether a command line could send output into a file; what goes nowhere, or with the rest, is none."""
    return ">" in _TO_NOWHERE.sub("", command)


def marks() -> str:
    """Where it is kept what commands of a session that is killed may leave; nowhere without a home."""
    own = _own_home()
    return os.path.join(own, "running") if own else ""


async def settle_killed(say: Callable[[str], None]) -> None:
    """Before anybody works here: what commands of killed sessions left for git to run is set aside, and told."""
    try:
        left = os.listdir(marks())
    except OSError:
        return
    if left:
        from ostler.processes.git_marks import settle_left

        for note in await settle_left(marks()):
            say(note)


def _own_home() -> str:
    found = find_home(os.environ)
    return os.path.realpath(found) if found else ""


def _inside(path: str, folder: str) -> bool:
    return f"{os.path.realpath(path)}/".startswith(f"{folder}/")


def _credentials(root: str) -> tuple[str, ...]:
    """Where keys lie in a home, and in ours; without a network no honest command needs them."""
    home = os.path.expanduser("~")
    kept = {*(os.path.join(home, name) for name in CREDENTIALS), *filter(None, [_own_home()])}
    return tuple(path for path in sorted(kept) if os.path.lexists(path) and not _inside(root, path))


class SessionGround(Workspace):
    """A workspace with a shell."""

    def __init__(self, root: str, shell: Shell, *, read_anywhere: bool) -> None:
        super().__init__(root, run=shell.run, read_anywhere=read_anywhere)
        self._shell = shell
        self._read_anywhere = read_anywhere
        self._named: tuple[str, ...] = ()

    def grant_folders(self, paths: Sequence[str]) -> None:
        super().grant_folders(paths)
        self._named = (*self._named, *paths)

    def for_child(self) -> "SessionGround":
        """The same files as a child session sees them: its commands, and what it has read, are its own."""
        ground = self._alike()
        ground.grant_folders(self._named)
        return ground

    def _alike(self) -> "SessionGround":
        return SessionGround(self.root, self._shell.another(), read_anywhere=self._read_anywhere)

    @property
    def shell(self) -> Shell:
        return self._shell

    @property
    def jobs(self) -> Shell:
        return self._shell

    async def confined(self) -> bool:
        return await self._shell.confined()

    async def aclose(self) -> None:
        """End whatever still runs, and let the folder go."""
        await self._shell.aclose()
        self.close()


def make_ground(cwd: Path, settings: Settings, options: RunOptions, *, attended: bool) -> SessionGround:
    """The ground for one session; without a person and without --write, commands cannot write in the workspace."""
    root = str(cwd)
    shell = Shell(root, writable=attended or options.write, sandbox=settings.config.security.sandbox)
    outside = _outside(settings)
    ground = SessionGround(root, shell, read_anywhere=options.yolo or "" in outside)
    ground.grant_folders([folder for folder in outside if folder.startswith("/")])
    return ground


def _outside(settings: Settings) -> list[str]:
    """Where rules let files be read outside, each as its rule says: the policy has the word on every call."""
    rules = (rule for rule in settings.rules() if rule.key == "external_directory" and rule.action != "deny")
    return [folder_of(rule.pattern) for rule in rules]
