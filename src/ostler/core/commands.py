"""Commands of the shell: what to run, what came of it, and those that run in the background."""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec


class CommandRequest(msgspec.Struct, frozen=True):
    """A command to run. `on_output` receives output as it arrives; `network` allows network access.

    With `read_only`, it must run in a sandbox in which the workspace is read-only. `readable` are the paths outside
    the workspace that it names, as its permission listed them.
    For background commands: with `interactive` the input stays open; a `script` is run instead of the command and gets
    it as its first argument.
    """

    command: str
    timeout: float = 120.0
    cwd: str = ""
    env: dict[str, str] = {}
    on_output: Callable[[str], None] | None = None
    network: bool = False
    read_only: bool = False
    readable: tuple[str, ...] = ()
    interactive: bool = False
    script: str = ""


class CommandResult(msgspec.Struct, frozen=True):
    """The result of a command. `exit_code` is None if it was killed; `output_file` has truncated output in full.

    `write_denied` means that the output of a `read_only` command mentions a write that the sandbox denied.
    """

    stdout: str
    stderr: str
    exit_code: int | None
    seconds: float
    timed_out: bool = False
    truncated: bool = msgspec.field(name="cut", default=False)
    output_file: str = msgspec.field(name="spill", default="")
    write_denied: bool = False


class BackgroundJob(msgspec.Struct, frozen=True):
    """The state of a background command. `log` is the file with its output, up to a size limit."""

    id: str
    command: str
    state: Literal["running", "exited", "killed"]
    exit_code: int | None
    seconds: float
    log: str


class BackgroundJobs(Protocol):
    """The background commands of a session; all are stopped when it closes."""

    async def start(self, request: CommandRequest) -> str: ...

    def list(self) -> Sequence[BackgroundJob]: ...

    async def read(self, job_id: str, wait: float) -> tuple[str, BackgroundJob]:
        """Return the output since the last read, after at most `wait` seconds or when the command ends."""

    def write(self, job_id: str, text: str) -> None:
        """Send text to the input of an interactive command. Raises `ToolError` if it does not read it."""

    async def stop(self, job_id: str) -> BackgroundJob: ...
