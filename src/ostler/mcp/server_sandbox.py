"""The sandbox of a local server whose entry says `"sandbox": true`. Without a sandbox such a server is not started."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ostler.core.errors import ToolError
from ostler.mcp.server_entry import ServerEntry
from ostler.processes.helper_programs import HelperProgram
from ostler.processes.sandbox_policy import SandboxUnavailable
from ostler.processes.session_processes import SessionProcesses
from ostler.workspace.home_paths import repository_folders
from ostler.workspace.session_workspace import running_marks_dir, workspace_policy


class ServerSandbox:
    """Starts the program of one server with the same restrictions as commands. Nothing starts before the program.

    It can also read the paths in its command line and the repositories that contain them. Credentials stay hidden, also
    with network access.
    """

    def __init__(self, entry: ServerEntry) -> None:
        self._name = entry.name
        named = [word for word in (*entry.command, entry.cwd) if word.startswith("/")]
        readable = (*entry.readable, *named, *(folder for word in named for folder in repository_folders(word)))
        policy = workspace_policy(entry.workspace, writable=bool(entry.workspace), mode="require", readable=readable)
        self._processes = SessionProcesses(
            entry.workspace or "/",
            policy=msgspec.structs.replace(policy, network=entry.network),
            marker_dir=running_marks_dir(),
        )

    async def open_program(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], on_stderr: Callable[[bytes], None]
    ) -> HelperProgram:
        """Start the program. Raises `ToolError` if there is no sandbox or the program cannot be started."""
        try:
            return await self._processes.open_program(argv, cwd=cwd, env=env, on_stderr=on_stderr)
        except SandboxUnavailable as error:
            hint = f"install bubblewrap, or set mcp.{self._name}.sandbox to false to run the server with your rights"
            raise ToolError(error.fault.message, code="sandbox_unavailable", hint=hint) from None

    async def aclose(self) -> None:
        """Stop the program and everything it started, and remove its temporary folder."""
        await self._processes.aclose()
